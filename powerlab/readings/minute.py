"""The last minute of a rail, or of the total."""

from __future__ import annotations

import statistics
from collections import deque
from dataclasses import dataclass

_MINUTE_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class Recent:
    """Power now and in the last minute, in W; ``power_w`` is None where it cannot be read now.

    Mean and peak are over the readings of the last minute, and so is ``history_w``, the oldest one first.
    """

    power_w: float | None
    history_w: tuple[float, ...] = ()

    @property
    def mean_w(self) -> float | None:
        """The mean of the readings; None without any."""
        return statistics.fmean(self.history_w) if self.history_w else None

    @property
    def peak_w(self) -> float | None:
        """The highest reading; None without any."""
        return max(self.history_w, default=None)


class Minute:
    """The readings of the last minute."""

    def __init__(self) -> None:
        self._readings: deque[tuple[int, float]] = deque()

    def add(self, time_ns: int, power_w: float | None) -> Recent:
        """Note a reading, forget those older than a minute, and return what there is."""
        if power_w is not None:
            self._readings.append((time_ns, power_w))
        while self._readings and self._readings[0][0] < time_ns - _MINUTE_NS:
            self._readings.popleft()
        return Recent(power_w, tuple(watts for _, watts in self._readings))
