"""How exact an engine's outputs are: signal to quantisation noise, and how often the first choice is the same.

The reference are the outputs of the built-in engine in fp32 for the same inputs. With random weights, as in the zoo, no
answer is right or wrong; how much of it a low precision loses can be told all the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.accuracy import LabelledAccuracy, OutputAccuracy, sqnr_db
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.statistics import NORMAL_95, mean_half_width

Outputs = Mapping[str, NDArray[np.float32]]


def outputs_sqnr_db(expected: NDArray[np.float32], found: NDArray[np.float32]) -> float:
    """Return the signal to quantisation noise ratio of an output in dB; as :func:`powerlab.domain.accuracy.sqnr_db`."""
    signal = expected.astype(np.float64)
    return sqnr_db(float(np.square(signal).sum()), float(np.square(signal - found).sum()))


def accuracy_of(
    expected: Sequence[Outputs], found: Sequence[Outputs], batch_size: int, least_sqnr_db: float
) -> OutputAccuracy:
    """Compare the outputs of several batches, image by image.

    Args:
        expected: the reference's outputs, batch by batch.
        found: the engine's, of the same names and shapes.
        batch_size: images in a batch; an output whose first dimension is another number is compared as a whole.
        least_sqnr_db: what the plan asks for at least.
    """
    pairs = [pair for batch in zip(expected, found, strict=True) for pair in _by_image(*batch, batch_size)]
    ratios = [min(outputs_sqnr_db(right[name], seen[name]) for name in right) for right, seen in pairs]
    classes = next((name for name, value in pairs[0][0].items() if value.ndim == 1 and value.size > 1), None)
    return OutputAccuracy(
        images=len(pairs),
        sqnr_db=math.fsum(ratios) / len(ratios),
        sqnr_half_width_db=mean_half_width(ratios),
        agreeing=None if classes is None else sum(_agree(right[classes], seen[classes]) for right, seen in pairs),
        least_sqnr_db=least_sqnr_db,
    )


def accuracy_metrics(accuracy: OutputAccuracy, provenance: Provenance) -> Iterator[Metric]:
    """Yield the figures with their 95 % intervals: of the mean ratio by Student's t, of the share by Wilson's score."""
    half = accuracy.sqnr_half_width_db
    yield Metric(
        name="output_sqnr_db",
        value=accuracy.sqnr_db,
        low=None if half is None else accuracy.sqnr_db - half,
        high=None if half is None else accuracy.sqnr_db + half,
        provenance=provenance,
    )
    if accuracy.agreeing is not None:
        yield _share("top1_agreement_percent", accuracy.agreeing, accuracy.images, provenance)


def label_metrics(accuracy: LabelledAccuracy, provenance: Provenance) -> Iterator[Metric]:
    """Yield the share of right answers with its 95 % interval by Wilson's score."""
    yield _share("top1_accuracy_percent", accuracy.right, accuracy.images, provenance)


def _share(name: str, hits: int, count: int, provenance: Provenance) -> Metric:
    low, high = wilson_95(hits, count)
    return Metric(name=name, value=100 * hits / count, low=100 * low, high=100 * high, provenance=provenance)


def wilson_95(hits: int, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share by Wilson's score (JASA 22, 1927; Brown, Cai and DasGupta, 2001)."""
    share, spread = hits / count, NORMAL_95**2 / count
    middle = (share + spread / 2) / (1 + spread)
    half = math.sqrt(spread * share * (1 - share) + spread * spread / 4) / (1 + spread)
    return max(0.0, middle - half) if hits else 0.0, min(1.0, middle + half) if hits < count else 1.0


def _by_image(right: Outputs, seen: Outputs, batch_size: int) -> Iterator[tuple[Outputs, Outputs]]:
    """Yield each image's outputs by name, as expected and as found."""
    if any(not value.ndim or value.shape[0] != batch_size for value in right.values()):
        yield right, seen
        return
    for image in range(batch_size):
        yield {name: value[image] for name, value in right.items()}, {name: seen[name][image] for name in right}


def _agree(right: NDArray[np.float32], seen: NDArray[np.float32]) -> bool:
    return bool(np.argmax(right) == np.argmax(seen))
