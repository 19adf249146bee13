"""The loss of one point's metric against a baseline of several sweeps, and how sure it is.

A sweep counts as one observation: its repeats share what the device was like then, so they say nothing about the
difference between days. Sweeps measured in one go are put together before (:mod:`.occasions`). Loss is counted on
logarithms, positive where the candidate is worse. Its standard error comes from the scatter between sweeps of the same
side, pooled over both sides (Student's t for two samples; Student, Biometrika 6, 1908), with a part for a candidate of
fewer repeats than the baseline.

No systematic uncertainty is added: both sides are the same point on the same device by the same sensor, so an error of
the sensor is either the same in both and cancels, or differs from run to run and is in the scatter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, harmonic_mean

from powerlab.analysis.gate.samples import Sample
from powerlab.domain.quantity import METRICS
from powerlab.domain.students_t import two_sided_level

_HALVINGS = 100
_CLOSE = 1e-9
_INTERVAL_TAIL = 0.025
_MOST_EXPONENT = 690.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A loss with its uncertainty, on logarithms.

    Attributes:
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        logarithm: the loss: positive where the candidate is worse.
        deviation: standard deviation between sweeps of one side.
        error: standard error of the loss.
        degrees: degrees of freedom of both.
    """

    metric: str
    logarithm: float
    deviation: float
    error: float
    degrees: int

    def level_above(self, limit: float) -> float:
        """Return the error level of saying that the true loss is above a limit; both are parts, 0.02 for 2 %."""
        return self._tail(self.logarithm - to_logarithm(self.metric, limit))

    def level_below(self, limit: float) -> float:
        """Return the error level of saying that the true loss is below a limit."""
        return self._tail(to_logarithm(self.metric, limit) - self.logarithm)

    def interval(self) -> tuple[float, float]:
        """Return the ends of the 95 % interval of the loss, as parts."""
        reach = upper_quantile(_INTERVAL_TAIL, self.degrees) * self.error
        return to_part(self.metric, self.logarithm - reach), to_part(self.metric, self.logarithm + reach)

    @property
    def part(self) -> float:
        """The loss: 0.03 for 3 % less img/s, or 3 % more ms; negative for a gain."""
        return to_part(self.metric, self.logarithm)

    def _tail(self, distance: float) -> float:
        if self.error == 0:
            return 0.5 if distance == 0 else float(distance < 0)
        half = two_sided_level(distance / self.error, self.degrees) / 2
        return half if distance >= 0 else 1 - half


def loss(name: str, baseline: Sequence[Sample], candidate: Sequence[Sample]) -> Loss | None:
    """Return the loss of the candidate's sweeps against the baseline's; None where no side has two sweeps."""
    degrees = len(baseline) + len(candidate) - 2
    if not baseline or not candidate or degrees < 1:
        return None
    sides = [[one.logarithm for one in side] for side in (baseline, candidate)]
    means = [fmean(side) for side in sides]
    squares = math.fsum((value - mean) ** 2 for side, mean in zip(sides, means, strict=True) for value in side)
    error_squared = squares / degrees * (1 / len(baseline) + 1 / len(candidate)) + _fewer_repeats(baseline, candidate)
    worse = means[0] - means[1] if METRICS[name].higher_is_better else means[1] - means[0]
    return Loss(
        metric=name,
        logarithm=worse,
        deviation=math.sqrt(squares / degrees),
        error=math.sqrt(error_squared),
        degrees=degrees,
    )


def _fewer_repeats(baseline: Sequence[Sample], candidate: Sequence[Sample]) -> float:
    """Return the variance that a candidate's mean has on top because its sweeps hold fewer repeats."""
    counts = [harmonic_mean([one.count for one in side]) for side in (baseline, candidate)]
    seen = [(one.variance, one.count - 1) for one in (*baseline, *candidate) if one.variance is not None]
    if counts[1] >= counts[0] or not seen:
        return 0.0
    within = math.fsum(value * weight for value, weight in seen) / sum(weight for _, weight in seen)
    return within * (1 / counts[1] - 1 / counts[0]) / len(candidate)


def to_logarithm(name: str, part: float) -> float:
    """Return a loss of that part on the logarithm: 3 % more ms is ln 1.03, 3 % less img/s is -ln 0.97."""
    return -math.log1p(-part) if METRICS[name].higher_is_better else math.log1p(part)


def to_part(name: str, logarithm: float) -> float:
    """Return the part that a loss on the logarithm stands for; the inverse of :func:`to_logarithm`."""
    kept = max(-_MOST_EXPONENT, min(logarithm, _MOST_EXPONENT))
    return -math.expm1(-kept) if METRICS[name].higher_is_better else math.expm1(kept)


@lru_cache(maxsize=4096)
def upper_quantile(tail: float, degrees: int) -> float:
    """Return the value that Student's t exceeds with probability ``tail``, below one half, found by bisection."""
    high = 1.0
    while two_sided_level(high, degrees) / 2 > tail:
        high *= 2
    low = 0.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_level(middle, degrees) / 2 > tail else (low, middle)
        if high - low <= _CLOSE * high:
            break
    return high
