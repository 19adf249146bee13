"""The covariance of a quantity's logarithm between points, for one choice of hyperparameters.

A sum of what may differ (Rasmussen & Williams, Gaussian Processes for Machine Learning, 2006, sections 2.7 and 4.2.4):

- a level that nobody knows (a wide constant),
- the linear model of :mod:`.prior` (``B S B'``),
- an offset for every label (engine, governor): ``label_sd**2`` where two points share it,
- a smooth remainder over the numbers, alike for all labels in part: ``remainder_sd**2 exp(-d**2 / (2 octaves**2))``,
  times :data:`SHARED` for each label in which two points differ;
- what a point has for itself (a batch that does not fill the vectors): ``own_sd**2``, which only repeats of it share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from powerlab.search.prior import Prior, basis
from powerlab.search.space import Space

Matrix = NDArray[np.float64]

LEVEL_SD = 10.0
SHARED = 0.5
"""How much of the smooth remainder two engines, or two governors, have in common."""
_REMAINDER_SD = (0.03, 0.1, 0.3)
_OCTAVES = (1.5, 4.0)
_LABEL_SD = (0.1, 0.4)
_OWN_SD = (0.002, 0.02, 0.08)
"""Up to a tenth of a time: what a batch that does not fill the vectors costs, or an unlucky split among threads."""
_NOISE_SD = (0.002, 0.005, 0.015, 0.05, 0.15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hyperparameters:
    """One choice: natural logarithms but for ``octaves``, the distance over which the remainder is alike."""

    remainder_sd: float
    octaves: float
    label_sd: float
    own_sd: float
    noise_sd: float


def choices(labelled: bool) -> Iterator[Hyperparameters]:
    """Yield every choice that is weighed against the others; without labels their offsets need no choice."""
    labels = _LABEL_SD if labelled else _LABEL_SD[:1]
    for remainder, octaves, label, own, noise in product(_REMAINDER_SD, _OCTAVES, labels, _OWN_SD, _NOISE_SD):
        yield Hyperparameters(remainder_sd=remainder, octaves=octaves, label_sd=label, own_sd=own, noise_sd=noise)


class Kernel:
    """The parts of the covariance between two sets of points of a space that need no hyperparameters."""

    def __init__(self, space: Space, prior: Prior, ones: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        columns = basis(space.numbers)
        scaled = columns * prior.deviation
        self._labels = space.labels.shape[1]
        self._of_linear = (scaled[others] ** 2).sum(axis=1)
        self._linear = LEVEL_SD**2 + scaled[ones] @ scaled[others].T
        self.mean = columns[others] @ prior.mean
        squares = (space.numbers**2).sum(axis=1)
        inner = space.numbers[ones] @ space.numbers[others].T
        distance = np.maximum(squares[ones][:, None] + squares[others][None, :] - 2 * inner, 0.0)
        self._itself = (ones[:, None] == others[None, :]).astype(np.float64)
        alike = space.labels[ones][:, None, :] == space.labels[others][None, :, :]
        self._same = alike.sum(axis=2, dtype=np.float64)
        share = SHARED ** (self._labels - self._same)
        self._smooth = {octaves: np.exp(-distance / (2 * octaves**2)) * share for octaves in _OCTAVES}

    def between(self, choice: Hyperparameters) -> Matrix:
        """Return ones x others."""
        return np.asarray(self.by_choice([choice])[0])

    def by_choice(self, chosen: Sequence[Hyperparameters]) -> Matrix:
        """Return choices x ones x others."""
        squares = [(one.label_sd**2, one.remainder_sd**2, one.own_sd**2) for one in chosen]
        label, remainder, own = np.array(squares).T[..., None, None]
        smooth = np.stack([self._smooth[one.octaves] for one in chosen])
        return np.asarray(self._linear + label * self._same + remainder * smooth + own * self._itself)

    def variances(self, choice: Hyperparameters) -> Matrix:
        """Return the variance of each of the other points by itself."""
        own = LEVEL_SD**2 + choice.label_sd**2 * self._labels + choice.remainder_sd**2 + choice.own_sd**2
        return np.asarray(own + self._of_linear)
