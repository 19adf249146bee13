"""Jetson's over-current protection: event counters of the hwmon chip ``soctherm_oc``.

On AGX Orin ``oc1`` stands for a supply voltage that fell too low, ``oc2`` for the average current and ``oc3`` for the
instantaneous current (NVIDIA, Jetson Linux Developer Guide, "Over-current throttling"). Where ``ocN_throt_en`` is 0 the
event is counted, and nothing is slowed down.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watching, WatchProbe
from powerlab.throttling.reading import counted, first_line, integer

_CHIP = "soctherm_oc"
_CAUSES = {1: "the supply voltage fell too low", 2: "the average current was too high", 3: "the current was too high"}
_COUNTER = re.compile(r"oc([0-9]{1,2})_event_cnt")


@dataclass(frozen=True, slots=True)
class _Alarm:
    number: int
    path: str
    throttles: bool
    start: int


def _alarms(sysroot: Sysroot) -> list[_Alarm]:
    """Return the counters that can be read; where nobody says whether one throttles, it does."""
    found = []
    for chip in sysroot.glob("/sys/class/hwmon/hwmon*"):
        if first_line(sysroot, f"{chip}/name") != _CHIP:
            continue
        for path in sysroot.glob(f"{chip}/oc*_event_cnt"):
            matched, count = _COUNTER.fullmatch(path.rsplit("/", 1)[1]), integer(sysroot, path)
            if matched and count is not None:
                number = int(matched[1])
                throttles = integer(sysroot, f"{chip}/oc{number}_throt_en") != 0
                found.append(_Alarm(number, path, throttles, count))
    return found


def events_between(start: int, end: int) -> int:
    """Return how many events two counts stand for; a counter that went back began again at 0."""
    return end - start if end >= start else max(end, 0)


class _Watching:
    def __init__(self, sysroot: Sysroot) -> None:
        self._sysroot, self._alarms = sysroot, _alarms(sysroot)

    def sample(self) -> None:
        """Do nothing: the counters count by themselves."""

    def finish(self) -> tuple[str, ...]:
        sentences = []
        for alarm in self._alarms:
            end = integer(self._sysroot, alarm.path)
            events = 0 if end is None else events_between(alarm.start, end)
            if events and alarm.throttles:
                cause = _CAUSES.get(alarm.number, "too much current")
                sentences.append(
                    f"the over-current protection slowed the module down {counted(events, 'time')}: {cause} "
                    f"(oc{alarm.number})"
                )
        return tuple(sentences)


class SocthermOc:
    """Watches Jetson's over-current counters."""

    name = "soctherm_oc"

    def probe(self, sysroot: Sysroot) -> WatchProbe:
        """Say which counters are there."""
        alarms = _alarms(sysroot)
        if not alarms:
            return WatchProbe(
                watch=self.name,
                availability=Availability.ABSENT,
                detail="no over-current counters (Jetson Orin boards with JetPack 5 or later have them)",
            )
        detail = counted(len(alarms), "over-current counter")
        silent = [f"oc{alarm.number}" for alarm in alarms if not alarm.throttles]
        if silent:
            detail += f"; {', '.join(silent)} would slow nothing down"
        return WatchProbe(watch=self.name, availability=Availability.AVAILABLE, detail=detail)

    def start(self, sysroot: Sysroot) -> Watching:
        """Note the counts."""
        return _Watching(sysroot)
