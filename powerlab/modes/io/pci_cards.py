"""Files of the PCI devices that a driver has: found below the driver, so that the helper is told which driver's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from powerlab.modes.io.files import read_value
from powerlab.sysroot import Sysroot

DRIVERS = "/sys/bus/pci/drivers"
ADDRESS = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
"""Domain, bus, device and function (kernel, ABI/testing/sysfs-bus-pci)."""


def devices(sysroot: Sysroot, driver: str) -> Iterator[str]:
    """Yield the directory of each device of a driver, in the order of their addresses."""
    for path in sysroot.glob(f"{DRIVERS}/{driver}/*"):
        if re.fullmatch(ADDRESS, path.rpartition("/")[2]):
            yield path


def address_of(directory: str) -> str:
    """Return a device's address."""
    return directory.rpartition("/")[2]


def one_file(sysroot: Sysroot, pattern: str) -> str | None:
    """Return the first file of a pattern; None where there is none."""
    return next(iter(sysroot.glob(pattern)), None)


def value(sysroot: Sysroot, path: str | None) -> str:
    """Return what a file holds; empty where it is not there or cannot be read."""
    try:
        return "" if path is None else read_value(sysroot, path)
    except OSError:
        return ""


def number(sysroot: Sysroot, path: str | None) -> int | None:
    """Return the integer that a file holds; None where it holds none."""
    text = value(sysroot, path)
    return int(text) if text.isascii() and text.isdigit() else None
