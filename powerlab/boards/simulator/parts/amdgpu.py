"""An AMD card under the driver amdgpu (kernel, Documentation/gpu/amdgpu/thermal.rst and kgd_pp_interface.h).

The power cap is hwmon's ``power1_cap``. ``power_dpm_force_performance_level`` keeps the clocks at one end of their
range, or somewhere within for the ``profile_`` levels; ``manual`` behaves like ``auto`` here.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.cards import Demand, WorkingPoint
from powerlab.boards.simulator.parts.base import Moment
from powerlab.boards.simulator.parts.pci_cards import PciCards
from powerlab.sysroot import Sysroot

_LEVEL = "power_dpm_force_performance_level"
_PROFILE_SHARE = 0.6
"""Of the highest clock, what ``profile_standard`` keeps. Chosen; each chip has its own."""
_METRICS = struct.Struct("<HBB20sQQ80s")
"""``gpu_metrics_v1_3``: size, form, energy in units of 2⁻¹⁶ J and the moment in ns; the rest of it is not given."""
_FORM, _NOT_GIVEN = (1, 3), b"\xff"
_UNITS_A_JOULE = 2**16
_COUNTED_BEFORE = 16384 * _UNITS_A_JOULE
_LEVELS = ("auto", "low", "high", "manual", "profile_standard", "profile_min_sclk", "profile_min_mclk", "profile_peak")


class Amdgpu(PciCards):
    """Table: as of :class:`PciCards`, and ``accumulator``: what the energy counter shows of a joule of the card.

    A card without one has no table ``gpu_metrics``.
    """

    driver, vendor = "amdgpu", "0x1002"

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Find the card."""
        super().__init__(board, table, variant)
        self._gain: float | None = table.get("accumulator")
        self._metrics = f"{self.directory}/gpu_metrics"
        self._before_units = _COUNTED_BEFORE
        self._handle = -1

    def tables(self) -> Iterator[tuple[str, bytes]]:
        """Yield the table of metrics."""
        if self._gain is not None:
            yield self._metrics, _metrics(_COUNTED_BEFORE, 0)

    def open(self, sysroot: Sysroot) -> None:
        """Open the readings, and go on counting where the table stands."""
        super().open(sysroot)
        if self._gain is not None:
            self._handle = os.open(sysroot.path(self._metrics), os.O_RDWR)
            self._before_units = _METRICS.unpack(os.pread(self._handle, _METRICS.size, 0))[4]

    def tick(self, moment: Moment) -> None:
        """Move the sensors, and the counter."""
        super().tick(moment)
        if self._gain is not None:
            units = round(self._gain * moment.energy_j[self.card.rail] * _UNITS_A_JOULE)
            os.pwrite(self._handle, _metrics(self._before_units + units, moment.now_ns), 0)

    def close(self) -> None:
        """Close the readings."""
        super().close()
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def settings(self) -> Iterator[tuple[str, str]]:
        """Yield cap, level, and what the driver tells of the card."""
        card = self.card
        caps = {"": card.default_w, "_default": card.default_w, "_min": card.low_w, "_max": card.high_w}
        for name, watts in caps.items():
            yield f"{self.hwmon}/power1_cap{name}", str(round(watts * 1e6))
        yield f"{self.hwmon}/temp1_label", "edge"
        yield f"{self.directory}/{_LEVEL}", "auto"
        yield f"{self.directory}/product_name", card.name
        yield f"{self.directory}/mem_info_vram_total", str(card.memory_mib << 20)

    def demand(self) -> Demand:
        """Read cap and level."""
        limit_w = int(layout.line_of(self.sysroot, f"{self.hwmon}/power1_cap")) * 1e-6
        level = layout.line_of(self.sysroot, f"{self.directory}/{_LEVEL}")
        if level not in _LEVELS:
            raise ValueError(level)
        low, high = self.card.clocks_mhz[0], self.card.clocks_mhz[-1]
        middle = min(self.card.clocks_mhz, key=lambda mhz: abs(mhz - _PROFILE_SHARE * high))
        locked = {
            "low": low,
            "high": high,
            "profile_peak": high,
            "profile_standard": middle,
            "profile_min_sclk": low,
        }.get(level)
        least = self.card.memory_clocks_mhz[0] if level in {"low", "profile_min_mclk"} else None
        return Demand(
            limit_w=limit_w,
            locked_mhz=None if locked is None else (locked, locked),
            memory_mhz=None if least is None else (least, least),
        )

    def clocks(self, point: WorkingPoint) -> Mapping[str, str]:
        """Return the clocks as hwmon has them, in Hz."""
        return {
            f"{self.hwmon}/freq1_input": str(point.clock_mhz * 1_000_000),
            f"{self.hwmon}/freq2_input": str(point.memory_mhz * 1_000_000),
        }


def _metrics(units: int, now_ns: int) -> bytes:
    return _METRICS.pack(_METRICS.size, *_FORM, 20 * _NOT_GIVEN, units, now_ns, 80 * _NOT_GIVEN)
