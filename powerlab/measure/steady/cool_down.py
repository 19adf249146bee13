"""Cool-down before a run, so that all runs in a power mode start at the same temperature.

The first run in a mode waits until the temperature no longer changes: a board that was just switched on, or that comes
from another mode, is warmer or cooler than it ever is again between two runs. Every other run waits until the hottest
zone is back at what the first one began with.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from powerlab.measure.steady.drift import Answer, Drift, drift
from powerlab.sysroot import Sysroot
from powerlab.throttling.zones import Zones

TOLERANCE_C = 1.0
"""The step of coarse zones. Leakage, a fifth of the power or so, grows by one to two per cent a kelvin."""
LOOK_PERIOD_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How warm a run begins.

    Attributes:
        celsius: the hottest zone; None without zones.
        waited_s: how long the device was left to cool; 0 where it was cool enough.
        sentences: what was not reached; none where it was.
    """

    celsius: float | None
    waited_s: float = 0.0
    sentences: tuple[str, ...] = ()


def cool_down(
    sysroot: Sysroot,
    like_c: float | None,
    longest_s: float,
    look_period_s: float = LOOK_PERIOD_S,
    *,
    begins: Callable[[], None] = lambda: None,
) -> Start:
    """Wait until the hottest zone is no warmer than it should be, within 1 °C.

    A device that is cooler than that need not wait: its warm-up heats it.

    Args:
        sysroot: where the zones are.
        like_c: the temperature to come down to; None for the first run, which waits for one that lasts.
        longest_s: when to give up; 0 waits for nothing and says nothing.
        look_period_s: time between two looks.
        begins: called once before it waits; not where the device is cool enough.
    """
    zones = Zones(sysroot)
    celsius = zones.hottest_c()
    if celsius is None or longest_s <= 0:
        return Start(celsius=celsius)
    looks = _Looks(zones, celsius, longest_s, look_period_s, begins)
    return _settled(looks) if like_c is None else _cooled(looks, like_c)


class _Looks:
    """Looks at the hottest zone, until the longest time is over; one that cannot be read is as it was."""

    def __init__(
        self, zones: Zones, celsius: float, longest_s: float, period_s: float, begins: Callable[[], None]
    ) -> None:
        self._zones, self._period_s, self._begins = zones, period_s, begins
        self._begin_s = time.monotonic()
        self.longest_s = longest_s
        self.time_s, self.celsius = [0.0], [celsius]

    @property
    def waited_s(self) -> float:
        return self.time_s[-1]

    @property
    def now_c(self) -> float:
        return self.celsius[-1]

    def again(self) -> bool:
        """Wait for a period and look; say whether there was time for that."""
        left_s = self.longest_s - (time.monotonic() - self._begin_s)
        if left_s <= 0:
            return False
        if len(self.time_s) == 1:
            self._begins()
        time.sleep(min(self._period_s, left_s))
        found = self._zones.hottest_c()
        self.time_s.append(time.monotonic() - self._begin_s)
        self.celsius.append(self.now_c if found is None else found)
        return True

    def drift(self) -> Drift:
        """Return how far the temperature would go if it was given the longest time once more."""
        time_s, celsius = np.array(self.time_s), np.array(self.celsius)
        late = time_s >= self.waited_s / 2
        return drift(time_s[late], celsius[late], self.longest_s)


def _cooled(looks: _Looks, like_c: float) -> Start:
    while looks.now_c > like_c + TOLERANCE_C and looks.again():
        pass
    if looks.now_c <= like_c + TOLERANCE_C:
        return Start(celsius=looks.now_c, waited_s=looks.waited_s)
    sentence = (
        f"the run began at {looks.now_c:.1f} °C after a cool-down of {looks.waited_s:.0f} s, and the first one in its "
        f"mode at {like_c:.1f} °C (limit {TOLERANCE_C:g} °C more)"
    )
    return Start(celsius=looks.now_c, waited_s=looks.waited_s, sentences=(sentence,))


def _settled(looks: _Looks) -> Start:
    found = looks.drift()
    while looks.again():
        # Zones that read in whole degrees stand still for a while: a quarter of the time is looked at in any case.
        if looks.waited_s >= looks.longest_s / 4 and (found := looks.drift()).answer(TOLERANCE_C) is Answer.STEADY:
            break
    else:
        found = looks.drift()
    sentence = (
        f"the first run in its mode began at {looks.now_c:.1f} °C, while the device went on "
        f"{'warming up' if found.value > 0 else 'cooling down'} by {abs(found.value):.1f} °C in "
        f"{looks.longest_s:.0f} s (limit {TOLERANCE_C:g} °C)"
    )
    drifting = found.answer(TOLERANCE_C) is Answer.DRIFTING
    return Start(celsius=looks.now_c, waited_s=looks.waited_s, sentences=(sentence,) if drifting else ())
