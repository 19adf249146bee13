"""Location of a hwmon chip's files, and its device."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.power.sources.scan import natural, read_text
from powerlab.sysroot import Sysroot

_CLASS = "/sys/class/hwmon"
_SUPPLIES = "/sys/class/power_supply"


@dataclass(frozen=True, slots=True)
class HwmonChip:
    """One chip.

    Attributes:
        name: the text of its ``name`` file; empty where it has none.
        device: the device behind it, for example ``APMC0D29:00`` or ``0000:03:00.0``; the same at every boot.
        directory: where its readings lie.
    """

    name: str
    device: str
    directory: str

    def is_power_supply(self, sysroot: Sysroot) -> bool:
        """Tell whether the chip only mirrors a supply (battery, USB-PD port) of the power_supply class."""
        try:
            return sysroot.path(f"{_SUPPLIES}/{self.device}").is_dir()
        except OSError:
            return False


def find_chips(sysroot: Sysroot) -> list[HwmonChip]:
    """Return the chips ordered by device, which unlike ``hwmonN`` is the same at every boot."""
    chips = [_chip(sysroot, path) for path in sysroot.glob(f"{_CLASS}/hwmon*")]
    return sorted(chips, key=lambda chip: (natural(chip.device), natural(chip.directory)))


def _chip(sysroot: Sysroot, path: str) -> HwmonChip:
    """Look at one chip.

    Drivers of the old kind (the ACPI power meter's was one for long, so NVIDIA Grace's meters are found so) keep their
    files, the name too, at the device and not at the chip.
    """
    device = sysroot.path(f"{path}/device")
    try:
        device_name = device.resolve().name if device.exists() else path.rpartition("/")[2]
    except OSError:  # a container may hide what lies behind the link
        device_name = path.rpartition("/")[2]
    name = read_text(sysroot, f"{path}/name")
    if not name and (old_name := read_text(sysroot, f"{path}/device/name")):
        return HwmonChip(old_name, device_name, f"{path}/device")
    return HwmonChip(name, device_name, path)
