"""A Jetson's memory clock in debugfs: its current rate, and whether it is pinned.

Paths as NVIDIA's jetson_clocks uses them. Only root may look into debugfs.
"""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.modes.io.files import read_value, write_value
from powerlab.sysroot import Sysroot

_BPMP = "/sys/kernel/debug/bpmp/debug/clk/emc"
_OVERRIDE = "/sys/kernel/debug/clk/override.emc"
_BWMGR = "/sys/kernel/debug/tegra_bwmgr"


@dataclass(frozen=True, slots=True, kw_only=True)
class EmcPin:
    """The files: ``lock`` is 1 while the clock is pinned to ``rate``; ``low`` and ``high`` bound the rate. Hz."""

    lock: str
    rate: str
    low: str
    high: str

    def read(self, sysroot: Sysroot) -> str | None:
        """Return the clock in Hz where it is pinned, ``0`` where it is free, None where that cannot be read."""
        try:
            value = read_value(sysroot, self.rate) if read_value(sysroot, self.lock) == "1" else "0"
        except OSError:
            return None
        return value if value.isdecimal() else None

    def write(self, sysroot: Sysroot, rate_hz: str) -> None:
        """Pin the clock, or free it with ``0``.

        Raises:
            PowerlabError: the firmware refuses.
        """
        if rate_hz == "0":
            write_value(sysroot, self.lock, "0")
        else:
            write_value(sysroot, self.lock, "1")
            write_value(sysroot, self.rate, rate_hz)

    def bounds(self, sysroot: Sysroot) -> tuple[int, int] | None:
        """Return the lowest and the highest rate in Hz, None where the firmware does not say."""
        try:
            return int(read_value(sysroot, self.low)), int(read_value(sysroot, self.high))
        except (OSError, ValueError):
            return None


PINS = (
    EmcPin(lock=f"{_BPMP}/mrq_rate_locked", rate=f"{_BPMP}/rate", low=f"{_BPMP}/min_rate", high=f"{_BPMP}/max_rate"),
    EmcPin(
        lock=f"{_OVERRIDE}/clk_state",
        rate=f"{_OVERRIDE}/clk_update_rate",
        low=f"{_BWMGR}/emc_min_rate",
        high=f"{_BWMGR}/emc_max_rate",
    ),
)
"""TX2 and later; Nano and TX1."""


def find_pin(sysroot: Sysroot) -> EmcPin | None:
    """Return the files of this device, None where it has none or this user may not see them."""
    try:
        return next((pin for pin in PINS if sysroot.path(pin.lock).is_file()), None)
    except PermissionError:
        return None
