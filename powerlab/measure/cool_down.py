"""Waiting until a device is as cool as it was when the first run in its power mode began."""

from __future__ import annotations

import time
from dataclasses import dataclass

from powerlab.measure.temperature import Zones
from powerlab.sysroot import Sysroot

TOLERANCE_C = 1.0
"""The step of coarse zones. Leakage, a fifth of the power or so, grows by one to two per cent a kelvin."""
_LOOK_PERIOD_S = 0.5


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


def cool_down(sysroot: Sysroot, like_c: float | None, longest_s: float, look_period_s: float = _LOOK_PERIOD_S) -> Start:
    """Wait until the hottest zone is no warmer than it should be, within 1 °C.

    A device that is cooler than that need not wait: its warm-up heats it.

    Args:
        sysroot: where the zones are.
        like_c: the temperature to come down to; None for the first run, which sets it.
        longest_s: when to give up; 0 waits for nothing and says nothing.
        look_period_s: time between two looks.
    """
    zones = Zones(sysroot)
    celsius = zones.hottest_c()
    if celsius is None or like_c is None or longest_s <= 0 or celsius <= like_c + TOLERANCE_C:
        return Start(celsius=celsius)
    begin_s = time.monotonic()
    while celsius > like_c + TOLERANCE_C and (left_s := longest_s - (time.monotonic() - begin_s)) > 0:
        time.sleep(min(look_period_s, left_s))
        now_c = zones.hottest_c()
        celsius = celsius if now_c is None else now_c
    waited_s = time.monotonic() - begin_s
    if celsius <= like_c + TOLERANCE_C:
        return Start(celsius=celsius, waited_s=waited_s)
    sentence = (
        f"the run began at {celsius:.1f} °C after a cool-down of {waited_s:.0f} s, and the first one in its mode at "
        f"{like_c:.1f} °C (up to {TOLERANCE_C:g} °C more may be)"
    )
    return Start(celsius=celsius, waited_s=waited_s, sentences=(sentence,))
