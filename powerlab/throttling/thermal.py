"""Thermal throttling as the kernel sees it: zones above their trip temperature, and what slowed down.

Source: Documentation/driver-api/thermal/sysfs-api. A zone's ``passive`` trip is where the kernel begins to lower
clocks, its ``hot`` trip where it warns; ``active`` trips only start fans. A cooling device's state is 0 where it does
nothing; those that lower clocks or insert pauses count here, fans do not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.domain.power import Availability
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watching, WatchProbe
from powerlab.throttling.reading import counted, first_line, integer

_ROOT = "/sys/class/thermal"
_SAMPLES_A_LOOK = 5
"""Temperatures move slowly, and on some boards reading one takes a millisecond: one look a second will do."""
_TRIPS = {"passive": "the kernel begins to slow the device down", "hot": "the kernel calls it hot"}
"""Kinds of trips, the one that matters more first, and what passing one means."""
_COLDEST_C, _HOTTEST_C = -60.0, 200.0
"""A sensor that is switched off says -256 °C on Jetson; trips that are not set stand at 0 or -274 °C."""
_ONLY_THRESHOLDS = ("x86_pkg_temp",)
"""Zones whose trips only wake a program in user space."""
_SLOWING = re.compile(
    r"cpu|gpu|processor|devfreq|powerclamp|balanced|throttl|cluster|\bemc\b|gv11b|ga10b|gp10b|gm20b|amdgpu|nvidia", re.I
)


def parse_celsius(text: str) -> float | None:
    """Return a temperature in °C of a text in m°C; None for one that no silicon has, and for what is not a number."""
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text.strip()):
        return None
    celsius = int(text) / 1000
    return celsius if _COLDEST_C < celsius < _HOTTEST_C else None


def slows(cooling_type: str) -> bool:
    """Tell whether a cooling device makes computing slower: a fan does not."""
    return "fan" not in cooling_type.lower() and _SLOWING.search(cooling_type) is not None


@dataclass(slots=True)
class _Zone:
    path: str
    name: str
    trip_c: float
    meaning: str
    hottest_c: float = -273.0


@dataclass(slots=True)
class _Cooling:
    path: str
    name: str
    highest: int


def _zones(sysroot: Sysroot) -> list[_Zone]:
    """Return the zones that have a trip at which they slow something down, or at least warn.

    A zone that gives no temperature now may give one when its unit wakes up. Jetson's PMIC zone says 100 °C for ever.
    """
    found = []
    for path in sysroot.glob(f"{_ROOT}/thermal_zone*"):
        limit = lowest_limit(sysroot, path)
        if limit is not None:
            found.append(_Zone(path, first_line(sysroot, f"{path}/type"), *limit))
    return found


def lowest_limit(sysroot: Sysroot, zone: str) -> tuple[float, str] | None:
    """Return the trip of a zone in °C at which something happens to it, and what; None where it has none."""
    name = first_line(sysroot, f"{zone}/type")
    if name in _ONLY_THRESHOLDS or "pmic" in name.lower() or first_line(sysroot, f"{zone}/policy") == "user_space":
        return None
    trips = ((_lowest_trip_c(sysroot, zone, kind), meaning) for kind, meaning in _TRIPS.items())
    return next(((celsius, meaning) for celsius, meaning in trips if celsius is not None), None)


def _lowest_trip_c(sysroot: Sysroot, zone: str, kind: str) -> float | None:
    trips = (
        parse_celsius(first_line(sysroot, path.removesuffix("type") + "temp"))
        for path in sysroot.glob(f"{zone}/trip_point_*_type")
        if first_line(sysroot, path) == kind
    )
    return min((celsius for celsius in trips if celsius is not None and celsius > 0), default=None)


def _coolings(sysroot: Sysroot) -> list[_Cooling]:
    found = []
    for path in sysroot.glob(f"{_ROOT}/cooling_device*"):
        name = first_line(sysroot, f"{path}/type")
        state = integer(sysroot, f"{path}/cur_state")
        if slows(name) and state is not None:
            found.append(_Cooling(path, name, state))
    return found


class _Watching:
    def __init__(self, sysroot: Sysroot) -> None:
        self._sysroot = sysroot
        self._zones, self._coolings = _zones(sysroot), _coolings(sysroot)
        self._samples = 0
        self._look()

    def sample(self) -> None:
        self._samples += 1
        if self._samples % _SAMPLES_A_LOOK == 0:
            self._look()

    def _look(self) -> None:
        for zone in self._zones:
            celsius = parse_celsius(first_line(self._sysroot, f"{zone.path}/temp"))
            if celsius is not None:
                zone.hottest_c = max(zone.hottest_c, celsius)
        for cooling in self._coolings:
            state = integer(self._sysroot, f"{cooling.path}/cur_state")
            if state is not None:
                cooling.highest = max(cooling.highest, state)

    def finish(self) -> tuple[str, ...]:
        self._look()
        hot = [
            f"the thermal zone {zone.name} reached {zone.hottest_c:.1f} °C, and from {zone.trip_c:.1f} °C on "
            f"{zone.meaning}"
            for zone in self._zones
            if zone.hottest_c >= zone.trip_c
        ]
        slowed = [
            f"heat made the kernel slow the device down through {cooling.name} (cooling state up to "
            f"{cooling.highest}, where 0 is full speed)"
            for cooling in self._coolings
            if cooling.highest > 0
        ]
        return (*_few(hot, "zones are as hot"), *_few(slowed, "cooling devices are at work"))


def _few(sentences: list[str], rest: str, most: int = 2) -> list[str]:
    """Return the first sentences; the last of them says how many more there would be."""
    more = len(sentences) - most
    return [*sentences[: most - 1], f"{sentences[most - 1]}; {more} more {rest}"] if more > 0 else sentences


class Thermal:
    """Watches thermal zones and cooling devices."""

    name = "thermal"

    def probe(self, sysroot: Sysroot) -> WatchProbe:
        """Say how many zones and cooling devices tell something."""
        zones, coolings = len(_zones(sysroot)), len(_coolings(sysroot))
        if zones or coolings:
            state = Availability.AVAILABLE
            with_limit = f"{counted(zones, 'zone')} with a limit" if zones else "no zone with a limit"
            detail = f"{with_limit}, {counted(coolings, 'cooling device')}"
        else:
            state, detail = Availability.ABSENT, "the kernel shows no thermal zone here (virtual machines have none)"
        return WatchProbe(watch=self.name, availability=state, detail=detail)

    def start(self, sysroot: Sysroot) -> Watching:
        """Begin to watch."""
        return _Watching(sysroot)
