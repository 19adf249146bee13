"""An Intel card under the driver xe (kernel, ABI/testing/sysfs-driver-intel-xe-hwmon; drivers/gpu/drm/xe/xe_gt_freq.c).

The sustained power limit is hwmon's ``power1_max``; the clock's limits are ``min_freq`` and ``max_freq`` in MHz.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from powerlab.boards.simulator import layout
from powerlab.boards.simulator.cards import Demand, WorkingPoint
from powerlab.boards.simulator.parts.pci_cards import PciCards


class IntelGpu(PciCards):
    """Table: as of :class:`PciCards`."""

    driver, vendor = "xe", "0x8086"

    @property
    def frequency(self) -> str:
        """The directory of the card's clock."""
        return f"{self.directory}/tile0/gt0/freq0"

    def settings(self) -> Iterator[tuple[str, str]]:
        """Yield the limits of power and clock."""
        yield f"{self.hwmon}/power1_max", str(round(self.card.default_w * 1e6))
        yield f"{self.hwmon}/power1_rated_max", str(round(self.card.high_w * 1e6))
        low, high = self.card.clocks_mhz[0], self.card.clocks_mhz[-1]
        for name, clock_mhz in {"rp0": high, "rpn": low, "max": high, "min": low}.items():
            yield f"{self.frequency}/{name}_freq", str(clock_mhz)

    def demand(self) -> Demand:
        """Read the limits."""
        low, high = (int(layout.line_of(self.sysroot, f"{self.frequency}/{end}_freq")) for end in ("min", "max"))
        limit_w = int(layout.line_of(self.sysroot, f"{self.hwmon}/power1_max")) * 1e-6
        whole = (low, high) == (self.card.clocks_mhz[0], self.card.clocks_mhz[-1])
        return Demand(limit_w=limit_w, locked_mhz=None if whole else (low, high))

    def clocks(self, point: WorkingPoint) -> Mapping[str, str]:
        """Return the clock now."""
        return {f"{self.frequency}/{name}_freq": str(point.clock_mhz) for name in ("act", "cur")}
