"""RAPL: energy counters that wrap, and power limits that hold (kernel, power/powercap/powercap; Intel SDM, 15.10).

A counter is 32 bits of the unit that its range implies. A limit is on the mean power of a time window: a package may
draw more until the mean reaches the limit; then its clocks are lowered until it draws what it may.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.sysroot import Sysroot

WIDTH = 20
_COUNTS = 2**32
_CLASS = "/sys/class/powercap"
_DEVICES = "/sys/devices/virtual/powercap"
_LEAST_SHARE = 0.1
_REACHED = 0.98
"""The mean of the window counts as at the limit from here on."""
_FALL, _RISE = 0.9, 1.02
"""How far clocks fall at most, and rise, from one look to the next (50 ms)."""


@dataclass(slots=True)
class Limit:
    """One constraint of a zone: the mean power of its window, and what the last look found in its files."""

    limit_file: str
    window_file: str
    limit_w: float = math.inf
    window_s: float = 1.0
    mean_w: float = 0.0

    def look(self, sysroot: Sysroot) -> None:
        """Read what is set; a text that is not a number leaves all as it was, as a kernel would."""
        try:
            limit_w, window_s = (
                int(layout.first_line(sysroot.path(path))) * 1e-6 for path in (self.limit_file, self.window_file)
            )
        except (OSError, ValueError):
            return
        self.limit_w, self.window_s = limit_w, max(window_s, 1e-3)

    def follow(self, power_w: float, passed_s: float) -> None:
        """Move the mean on."""
        self.mean_w += (power_w - self.mean_w) * (1.0 - math.exp(-passed_s / self.window_s))

    @property
    def reached(self) -> bool:
        """Whether the mean has come to the limit."""
        return self.mean_w >= _REACHED * self.limit_w


@dataclass(slots=True)
class Limiter:
    """What the limits of one package leave of its clocks."""

    limits: list[Limit] = field(default_factory=list)
    share: float = 1.0

    def look(self, sysroot: Sysroot, power_w: float) -> None:
        """Lower the clocks where a limit is reached, raise them where none is near."""
        for limit in self.limits:
            limit.look(sysroot)
        reached = [limit.limit_w for limit in self.limits if limit.reached]
        if reached and power_w > min(reached):
            # Power grows with about the square of the clock here, voltage included.
            self.share *= max(_FALL, math.sqrt(max(min(reached), 0.0) / power_w))
        elif power_w < _REACHED * min((limit.limit_w for limit in self.limits), default=math.inf):
            self.share *= _RISE
        self.share = min(1.0, max(_LEAST_SHARE, self.share))


class Rapl(Part):
    """The counters and limits of all packages.

    Table: ``range_uj``; ``zones``, each with ``zone``, ``name``, ``rail`` and ``before_wrap_j``, the energy that is
    left until its counter starts again; perhaps ``limits``, each with ``name``, ``limit_uw``, ``window_us``,
    ``max_uw``.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Find the zones."""
        super().__init__(board, table, variant)
        self._range_uj: int = table["range_uj"]
        self._unit_j = self._range_uj / (_COUNTS - 1) * 1e-6
        self._directory = {zone["zone"]: _directory(zone["zone"]) for zone in table["zones"]}
        self._limiters: dict[str, Limiter] = {}
        self._files = SensorFiles(WIDTH)

    def counter_uj(self, before_wrap_j: float, energy_j: float) -> int:
        """Return what a counter shows that had ``before_wrap_j`` left, after an energy in J."""
        counts = _COUNTS - round(before_wrap_j / self._unit_j) + int(energy_j / self._unit_j)
        return int(counts % _COUNTS * self._range_uj / (_COUNTS - 1))

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the control type and every zone."""
        yield f"{_DEVICES}/intel-rapl/enabled", "1"
        for zone in self.table["zones"]:
            directory = self._directory[zone["zone"]]
            yield f"{directory}/name", zone["name"]
            yield f"{directory}/enabled", str(int("limits" in zone))
            yield f"{directory}/max_energy_range_uj", str(self._range_uj)
            yield f"{directory}/energy_uj", f"{self.counter_uj(zone['before_wrap_j'], 0.0):<{WIDTH}d}"
            for number, limit in enumerate(zone.get("limits", ())):
                stem = f"{directory}/constraint_{number}"
                yield f"{stem}_name", limit["name"]
                yield f"{stem}_power_limit_uw", str(limit["limit_uw"])
                yield f"{stem}_time_window_us", str(limit["window_us"])
                yield f"{stem}_max_power_uw", str(limit["max_uw"])

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield the links by class: all zones lie side by side there."""
        yield f"{_CLASS}/intel-rapl", "../../devices/virtual/powercap/intel-rapl"
        for name, directory in self._directory.items():
            yield f"{_CLASS}/{name}", f"../..{directory.removeprefix('/sys')}"

    def open(self, sysroot: Sysroot) -> None:
        """Open the counters."""
        super().open(sysroot)
        self._files.open(sysroot, [f"{directory}/energy_uj" for directory in self._directory.values()])
        for zone in self.table["zones"]:
            stems = [f"{self._directory[zone['zone']]}/constraint_{n}" for n in range(len(zone.get("limits", ())))]
            limits = [Limit(f"{stem}_power_limit_uw", f"{stem}_time_window_us") for stem in stems]
            if limits:
                self._limiters[zone["zone"]] = Limiter(limits)

    def tick(self, moment: Moment) -> None:
        """Move the counters, and the clocks that the limits leave."""
        for zone in self.table["zones"]:
            rail = zone["rail"]
            value_uj = self.counter_uj(zone["before_wrap_j"], moment.energy_j[rail])
            self._files.write(f"{self._directory[zone['zone']]}/energy_uj", value_uj)
            limiter = self._limiters.get(zone["zone"])
            if limiter is None:
                continue
            for limit in limiter.limits:
                limit.follow(moment.rails_w[rail], moment.passed_s)
            if moment.looked:
                if self._enabled(zone["zone"]):
                    limiter.look(self.sysroot, moment.rails_w[rail])
                else:
                    limiter.share = 1.0

    def _enabled(self, zone: str) -> bool:
        """Say whether a zone's limits hold; those of a zone that is gone do not."""
        try:
            return layout.first_line(self.sysroot.path(f"{self._directory[zone]}/enabled")) == "1"
        except FileNotFoundError:
            return False

    def caps(self) -> Mapping[str, float]:
        """Return what the limits leave; the clocks of all packages follow the one that must fall lowest."""
        return {"cpu": min((limiter.share for limiter in self._limiters.values()), default=1.0)}

    def close(self) -> None:
        """Close the counters."""
        self._files.close()


def _directory(zone: str) -> str:
    """Return a zone's directory: ``intel-rapl:0:1`` lies in that of ``intel-rapl:0``."""
    control, *numbers = zone.split(":")
    parts = [":".join([control, *numbers[: count + 1]]) for count in range(len(numbers))]
    return "/".join([_DEVICES, control, *parts])
