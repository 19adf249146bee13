"""The kernel's count of how often x86 packages slowed down because of heat (ABI/testing/sysfs-devices-system-cpu).

The clocks themselves fall by the part ``thermal``; this one counts what that part does, as every processor shows it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import core_numbers
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.files import SensorFiles
from powerlab.sysroot import Sysroot

_COUNT, _TIME = "package_throttle_count", "package_throttle_total_time_ms"
_NEVER = ("core_throttle_count", "core_throttle_total_time_ms")
"""A single core is never hotter than its package here."""


class X86Throttle(Part):
    """The counters of all processors.

    Table: ``trip_c``, the temperature above which the packages slow down.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Start cool."""
        super().__init__(board, table, variant)
        self._folders = [
            f"{layout.CPU}/cpu{core}/thermal_throttle" for core in core_numbers(layout.simulation_of(board.name))
        ]
        self._hot = False
        self._times = 0
        self._hot_s = 0.0
        self._files = SensorFiles()

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the counters, all at 0."""
        for folder in self._folders:
            for name in (_COUNT, _TIME, *_NEVER):
                yield f"{folder}/{name}", f"{0:<{layout.SENSOR_WIDTH}d}"

    def open(self, sysroot: Sysroot) -> None:
        """Open those that move."""
        super().open(sysroot)
        self._files.open(sysroot, [f"{folder}/{name}" for folder in self._folders for name in (_COUNT, _TIME)])

    def tick(self, moment: Moment) -> None:
        """Count how often the packages became too hot, and for how long."""
        hot = moment.warmth_c > self.table["trip_c"]
        self._times += hot and not self._hot
        self._hot_s += moment.passed_s if hot else 0.0
        if moment.looked and (hot or self._hot):
            for folder in self._folders:
                self._files.write(f"{folder}/{_COUNT}", self._times)
                self._files.write(f"{folder}/{_TIME}", int(self._hot_s * 1000))
        self._hot = hot

    def close(self) -> None:
        """Close the counters."""
        self._files.close()
