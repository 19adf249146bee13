"""What stands between a rail's true power and a reading of it, the same for every simulated sensor.

In this order: a first-order lag (the filter before the converter), the mean over a window, an error of gain, noise,
rounding, and a value that only changes once a period. The true power is taken as constant between two looks.
"""

from __future__ import annotations

import math
import random
from collections import deque

_FULL_NOISE_W = 0.3


class Sensor:
    """One channel of a power sensor."""

    def __init__(
        self,
        update_period_s: float,
        *,
        averaging_s: float = 0.0,
        lag_s: float = 0.0,
        gain: float = 1.0,
        noise_relative: float = 0.0,
        noise_w: float = 0.0,
        step_w: float = 0.0,
    ) -> None:
        """Describe the sensor.

        Args:
            update_period_s: how often its value changes, in s.
            averaging_s: the window it averages over, in s; 0: the present value.
            lag_s: the time constant of its first-order lag, in s; 0: none.
            gain: what it shows of a watt; 1: no error.
            noise_relative: the standard deviation of its noise as a share of the power.
            noise_w: the constant part of it, in W; it fades below 0.3 W, so that a rail that is off reads 0.
            step_w: the step of its readings, in W; 0: none.
        """
        self._period_ns = round(update_period_s * 1e9)
        self._window_ns = round(averaging_s * 1e9)
        self._lag_ns = lag_s * 1e9
        self._gain = gain
        self._noise_relative, self._noise_w, self._step_w = noise_relative, noise_w, step_w
        self._last_ns: int | None = None
        self._due_ns = 0
        self._lagged_w = 0.0
        self._sum = 0.0
        self._sums: deque[tuple[int, float]] = deque()
        """(moment, W·ns up to it): the mean of a window is a difference of two."""

    def observe(self, now_ns: int, true_w: float, noise: random.Random) -> float | None:
        """Return the sensor's new reading in W, None while it still shows the last one.

        ``true_w`` is what the rail has drawn since the last call.
        """
        if self._last_ns is None:
            self._lagged_w, self._last_ns, self._due_ns = true_w, now_ns, now_ns
            self._sums.append((now_ns, 0.0))
        self._follow(now_ns, true_w)
        if now_ns < self._due_ns:
            return None
        # Due at the period's own marks, wherever the looks fall: a late look does not delay the next value.
        periods = (now_ns - self._due_ns) // self._period_ns + 1 if self._period_ns else 0
        self._due_ns += periods * self._period_ns
        value_w = self._gain * self._mean_w(now_ns)
        spread_w = self._noise_relative * value_w + self._noise_w * min(1.0, value_w / _FULL_NOISE_W)
        if spread_w > 0.0:
            value_w = max(0.0, noise.gauss(value_w, spread_w))
        return round(value_w / self._step_w) * self._step_w if self._step_w else value_w

    def _follow(self, now_ns: int, true_w: float) -> None:
        passed_ns = now_ns - (self._last_ns or now_ns)
        self._last_ns = now_ns
        mean_w = true_w
        if self._lag_ns and passed_ns:
            decay = math.exp(-passed_ns / self._lag_ns)
            # The mean of an exponential approach over the time that passed, and where it has come to.
            mean_w = true_w + (self._lagged_w - true_w) * (1.0 - decay) * self._lag_ns / passed_ns
            self._lagged_w = true_w + (self._lagged_w - true_w) * decay
        elif not self._lag_ns:
            self._lagged_w = true_w
        if self._window_ns and passed_ns:
            self._sum += mean_w * passed_ns
            self._sums.append((now_ns, self._sum))
            while len(self._sums) > 2 and self._sums[1][0] <= now_ns - self._window_ns:
                self._sums.popleft()

    def _mean_w(self, now_ns: int) -> float:
        if not self._window_ns or len(self._sums) < 2:
            return self._lagged_w
        (first_ns, first), (next_ns, following) = self._sums[0], self._sums[1]
        start_ns = max(first_ns, now_ns - self._window_ns)
        at_start = first + (following - first) * (start_ns - first_ns) / (next_ns - first_ns)
        return (self._sum - at_start) / (now_ns - start_ns)
