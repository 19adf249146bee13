"""Batteries in the kernel's power_supply class, and their readings.

Source: Documentation/ABI/testing/sysfs-class-power. Powers are in µW, currents in µA, voltages in µV, energies in µWh.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from powerlab.power.sources.scan import natural, parse_integer, read_integer, read_text
from powerlab.sysroot import Sysroot

_CLASS = "/sys/class/power_supply"
J_PER_UWH = 3.6e-3


class Flow(Enum):
    """Where a battery's energy goes."""

    OUT = "discharging"
    IN = "charging"
    NONE = "neither charging nor discharging"


def parse_status(text: str) -> Flow:
    """Parse a battery's ``status``; all words but the first two say that nothing flows, or that nobody knows."""
    word = text.partition("\n")[0].strip().lower()
    return {"discharging": Flow.OUT, "charging": Flow.IN}.get(word, Flow.NONE)


@dataclass(frozen=True, slots=True)
class Cell:
    """One battery: its name, for example ``BAT0``, and its directory."""

    name: str
    directory: str

    def flow(self, sysroot: Sysroot) -> Flow:
        """Return where its energy goes now.

        Raises:
            OSError: that cannot be read.
        """
        return parse_status(sysroot.read(f"{self.directory}/status"))

    def power_w(self, sysroot: Sysroot) -> float:
        """Return what flows, in W. Some drivers count what flows out as negative, so the sign says nothing.

        Raises:
            OSError: a file cannot be read, or holds no integer.
        """
        if sysroot.path(f"{self.directory}/power_now").exists():
            return abs(_integer(sysroot, f"{self.directory}/power_now")) * 1e-6
        current_ua = _integer(sysroot, f"{self.directory}/current_now")
        return abs(current_ua) * 1e-6 * _integer(sysroot, f"{self.directory}/voltage_now") * 1e-6

    def drawn_j(self, sysroot: Sysroot) -> float:
        """Return the energy drawn since it was full, in J: for gauges that give no power.

        Raises:
            OSError: a file cannot be read, or holds no integer.
        """
        full_uwh = _integer(sysroot, f"{self.directory}/energy_full")
        return (full_uwh - _integer(sysroot, f"{self.directory}/energy_now")) * J_PER_UWH


def find_cells(sysroot: Sysroot) -> list[Cell]:
    """Return the batteries that feed the machine: present, and not those of mice, pens and headsets."""
    found = []
    for directory in sorted(sysroot.glob(f"{_CLASS}/*"), key=natural):
        if read_text(sysroot, f"{directory}/type").lower() != "battery":
            continue
        if read_text(sysroot, f"{directory}/scope").lower() == "device":
            continue
        if read_integer(sysroot, f"{directory}/present") != 0:
            found.append(Cell(directory.rpartition("/")[2], directory))
    return found


def _integer(sysroot: Sysroot, path: str) -> int:
    """Return a file's integer; a text that is none is a failed reading, as one that cannot be read."""
    try:
        return parse_integer(sysroot.read(path))
    except ValueError as error:
        raise OSError(str(error)) from error
