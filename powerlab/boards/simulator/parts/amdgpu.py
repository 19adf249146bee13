"""An AMD card under the driver amdgpu (kernel, Documentation/gpu/amdgpu/thermal.rst).

The power cap is hwmon's ``power1_cap``. ``power_dpm_force_performance_level`` keeps the clocks at one end of their
range, or somewhere within for the ``profile_`` levels; ``manual`` behaves like ``auto`` here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.cards import Demand, WorkingPoint
from powerlab.boards.simulator.parts.pci_cards import PciCards

_LEVEL = "power_dpm_force_performance_level"
_PROFILE_SHARE = 0.6
"""Of the highest clock, what ``profile_standard`` keeps. Chosen; each chip has its own."""
_LEVELS = ("auto", "low", "high", "manual", "profile_standard", "profile_min_sclk", "profile_min_mclk", "profile_peak")


class Amdgpu(PciCards):
    """Table: as of :class:`PciCards`."""

    driver, vendor = "amdgpu", "0x1002"

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
