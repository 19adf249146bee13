"""A Gaussian process over the logarithm of one quantity, fitted to the runs so far.

Hyperparameters are not chosen but averaged over: every choice of :mod:`.kernel` counts by how likely it makes the runs
(Bayesian model averaging; Rasmussen & Williams, 2006, sections 2.3, 5.2 and 5.4.1). Two things keep its intervals
honest: a run that its neighbours and repeats contradict gets more noise of its own, and where runs are predicted worse
from the others than the model says (leave-one-out), all variances are widened by that much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from powerlab.search.kernel import Hyperparameters, Kernel, Matrix, choices
from powerlab.search.prior import prior_of
from powerlab.search.space import Space

_KEPT = 0.03
"""Choices less likely than this share of the best are left out."""
_DOUBT = 6.0
"""A run off by more than the square root of this, in standard deviations, is taken to be noisier than others."""
_LEAST_FOR_LEAVE_ONE_OUT = 6
_JITTER = 1e-9
_AT_ONCE = 1 << 21
"""Numbers in the covariances that are taken at once: 16 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prediction:
    """What is known of a quantity's logarithm at every point of a space.

    Attributes:
        mean: by point.
        variance: by point, of the quantity itself, without the noise of a run.
        covariance: by point, with the point that was asked for.
        noise: variance of one run.
    """

    mean: Matrix
    variance: Matrix
    covariance: Matrix
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fit:
    choice: Hyperparameters
    weight: float
    root: Matrix
    inverse: Matrix
    solved: Matrix
    across: Matrix
    mean: Matrix


class Surface:
    """One quantity over a space, fitted to some runs.

    Attributes:
        mean: by point, what is expected of the quantity's logarithm.
    """

    def __init__(self, space: Space, quantity: str, places: Sequence[int], values: Sequence[float]) -> None:
        """Fit.

        Args:
            space: the points.
            quantity: one of :data:`powerlab.search.prior.QUANTITIES`.
            places: the point of each run, at least one.
            values: natural logarithm of what each run measured.
        """
        self._space, self._prior = space, prior_of(quantity, space.names, space.on_gpu)
        self._at = np.array(places, dtype=np.int64)
        self._everywhere = Kernel(space, self._prior, self._at, np.arange(len(space.points)))
        self._values = np.array(values, dtype=np.float64)
        self._among = Kernel(space, self._prior, self._at, self._at)
        self._fits = self._fitted(np.ones(len(self._at)))
        if len(self._at) >= _LEAST_FOR_LEAVE_ONE_OUT:
            doubt = self._left_out() / _DOUBT
            if doubt.max() > 1.0:
                self._fits = self._fitted(np.maximum(1.0, doubt))
        self._widening = self._widened()
        self.mean = sum((fit.weight * fit.mean for fit in self._fits), np.zeros(len(space.points)))

    def _fitted(self, noisier: Matrix) -> list[_Fit]:
        centred = self._values - self._among.mean
        found: list[tuple[float, Hyperparameters, Matrix]] = []
        every = list(choices(labelled=self._space.labels.shape[1] > 0))
        step = max(1, _AT_ONCE // len(centred) ** 2)
        for some in (every[begin : begin + step] for begin in range(0, len(every), step)):
            covariance = self._among.by_choice(some)
            noise = np.array([[one.noise_sd**2] for one in some]) * noisier + _JITTER
            np.einsum("cii->ci", covariance)[...] += noise
            lower = np.linalg.cholesky(covariance)
            half = np.linalg.solve(lower, centred)
            determinant = np.log(np.einsum("cii->ci", lower)).sum(axis=1)
            likelihoods = -0.5 * (half**2).sum(axis=1) - determinant
            found += zip(likelihoods.tolist(), some, lower, strict=True)
        best = max(likelihood for likelihood, _, _ in found)
        kept = [(math.exp(one - best), choice, lower) for one, choice, lower in found if one > best + math.log(_KEPT)]
        total = sum(weight for weight, _, _ in kept)
        return [self._fit(weight / total, choice, lower, centred) for weight, choice, lower in kept]

    def _fit(self, weight: float, choice: Hyperparameters, lower: Matrix, centred: Matrix) -> _Fit:
        inverse_lower: Matrix = np.linalg.inv(lower).astype(np.float64, copy=False)
        inverse = inverse_lower.T @ inverse_lower
        solved = inverse @ centred
        across = self._everywhere.between(choice)
        return _Fit(
            choice=choice,
            weight=weight,
            root=inverse_lower,
            inverse=inverse,
            solved=solved,
            across=across,
            mean=self._everywhere.mean + across.T @ solved,
        )

    def _left_out(self) -> Matrix:
        """Return each run's squared distance from what the others say of it, in variances (section 5.4.2)."""
        return sum((fit.weight * fit.solved**2 / np.diag(fit.inverse) for fit in self._fits), np.zeros(len(self._at)))

    def _widened(self) -> float:
        if len(self._at) < _LEAST_FOR_LEAVE_ONE_OUT:
            return 1.0
        return max(1.0, float(self._left_out().mean()))

    def against(self, place: int) -> Prediction:
        """Return what is known at every point, and how it hangs together with one of them."""
        count = len(self._space.points)
        here = Kernel(self._space, self._prior, np.array([place]), np.arange(count))
        second, joint, noise = np.zeros(count), np.zeros(count), 0.0
        for fit in self._fits:
            half = fit.root @ fit.across
            own = here.variances(fit.choice) - (half**2).sum(axis=0)
            shared = here.between(fit.choice)[0] - half[:, place] @ half
            apart = fit.mean - self.mean
            second += fit.weight * (own + apart**2)
            joint += fit.weight * (shared + apart * apart[place])
            noise += fit.weight * fit.choice.noise_sd**2
        return Prediction(
            mean=self.mean,
            variance=self._widening * np.maximum(second, 0.0),
            covariance=self._widening * joint,
            noise=noise,
        )
