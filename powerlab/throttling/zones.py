"""Thermal zones of processors, as the kernel shows them.

Source: Documentation/driver-api/thermal/sysfs-api. A machine without zones, as most virtual ones are, has no
temperature: that is a state, and gives no figure.
"""

from __future__ import annotations

import re
from collections import Counter

from powerlab.sysroot import Sysroot
from powerlab.throttling.reading import first_line
from powerlab.throttling.thermal import lowest_limit, parse_celsius

_ROOT = "/sys/class/thermal"
_ELSEWHERE = re.compile(r"pmic|batt?ery|\bbat[0-9]*\b|charg|wifi|wlan|nvme|modem|int3400", re.I)
"""Zones that say nothing of what computes; Jetson's PMIC zone says 100 °C for ever."""


class Zones:
    """The zones of what computes.

    A sensor that gives no temperature, as a dead one with -256 °C, is left out; with ``asleep`` it is asked again at
    every reading, for that of a graphics processor without power wakes up with it.
    """

    def __init__(self, sysroot: Sysroot, *, asleep: bool = False) -> None:
        self._sysroot = sysroot
        found = [(path, first_line(sysroot, f"{path}/type")) for path in sysroot.glob(f"{_ROOT}/thermal_zone*")]
        chosen = [
            (path, name)
            for path, name in sorted(found, key=lambda zone: int(re.sub(r"\D", "", zone[0]) or 0))
            if name and _ELSEWHERE.search(name) is None and (asleep or self._celsius(path) is not None)
        ]
        count = Counter(name for _, name in chosen)
        self._paths = {
            name if count[name] == 1 else f"{name}-{path.removeprefix(f'{_ROOT}/thermal_zone')}": path
            for path, name in chosen
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The zones' names, each once; none where there is no zone."""
        return tuple(self._paths)

    def read(self) -> dict[str, float]:
        """Return the temperatures in °C by name; a zone that gives none now is left out."""
        read = {name: self._celsius(path) for name, path in self._paths.items()}
        return {name: celsius for name, celsius in read.items() if celsius is not None}

    def hottest_c(self) -> float | None:
        """Return the temperature of the hottest zone in °C; None without zones."""
        return max(self.read().values(), default=None)

    def limits_c(self) -> dict[str, float]:
        """Return from which temperature in °C on the kernel acts, by name; a zone without such a limit is left out."""
        limits = {name: lowest_limit(self._sysroot, path) for name, path in self._paths.items()}
        return {name: limit[0] for name, limit in limits.items() if limit is not None}

    def _celsius(self, path: str) -> float | None:
        return parse_celsius(first_line(self._sysroot, f"{path}/temp"))
