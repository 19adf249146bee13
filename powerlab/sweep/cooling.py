"""Wait before a run until the device is cool enough."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from dataclasses import dataclass

from powerlab.domain.sweep import SweepPlan
from powerlab.domain.temperature import Reading, hottest
from powerlab.measure.heat.judge import BLIND_S, NO_TEMPERATURE, TOO_HOT
from powerlab.sweep.events import CoolingDown
from powerlab.sysroot import Sysroot
from powerlab.throttling.temperatures import Temperatures

LOOK_PERIOD_S = 0.5
TELL_PERIOD_S = 10.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a run is not begun: the name of its finding, and a sentence."""

    rule: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooled:
    """What came of waiting: whether there was any, and why the run must not begin, None where it may."""

    waited: bool = False
    refusal: Refusal | None = None


def wait_until_cool(
    sysroot: Sysroot, plan: SweepPlan, stop: threading.Event | None = None
) -> Generator[CoolingDown, None, Cooled]:
    """Wait until every zone is below what a run may begin at; a plan without limits waits for nothing.

    Args:
        sysroot: where the temperatures are.
        plan: its limits, and how long to wait at most.
        stop: ends the waiting when set.

    Yields:
        what is waited for, at once and every ten seconds.

    Returns:
        what came of it: a device that is too hot for too long, or that gives no temperature, must not begin.
    """
    below_c = plan.temperature_limits.begins_below_c
    if below_c is None:
        return Cooled()
    begin_s = time.monotonic()
    told_s, seen_s = -TELL_PERIOD_S, 0.0
    last: Reading | None = None
    with Temperatures(sysroot) as temperatures:
        while stop is None or not stop.is_set():
            found, waited_s = hottest(temperatures.read()), time.monotonic() - begin_s
            if found is not None:
                last, seen_s = found, waited_s
                if found.celsius < below_c:
                    return Cooled(waited=told_s >= 0)
            elif waited_s - seen_s >= BLIND_S:
                return Cooled(waited=True, refusal=_blind())
            if waited_s >= plan.longest_cooling_s and last is not None:
                return Cooled(waited=True, refusal=_still_hot(last, below_c, waited_s))
            if last is not None and waited_s - told_s >= TELL_PERIOD_S:
                told_s = waited_s
                yield CoolingDown(hottest=last, below_c=below_c, waited_s=waited_s, longest_s=plan.longest_cooling_s)
            _pause(stop)
    return Cooled(waited=True)


def _pause(stop: threading.Event | None) -> None:
    if stop is None:
        time.sleep(LOOK_PERIOD_S)
    else:
        stop.wait(LOOK_PERIOD_S)


def _blind() -> Refusal:
    return Refusal(
        NO_TEMPERATURE,
        f"no temperature could be read for {BLIND_S:g} s, so nobody can tell whether the device is cool enough for a "
        "run; no further run of this stay in its power mode begins.",
    )


def _still_hot(last: Reading, below_c: float, waited_s: float) -> Refusal:
    return Refusal(
        TOO_HOT,
        f"the device did not cool down: after {waited_s:.0f} s {last.zone} is at {last.celsius:.1f} °C, and a run "
        f"begins below {below_c:g} °C; no further run of this stay in its power mode begins.",
    )
