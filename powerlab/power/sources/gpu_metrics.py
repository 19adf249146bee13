"""The energy counter of AMD's accelerators, in the table ``gpu_metrics`` of the driver amdgpu.

It is the counter that ``amd-smi metric --energy`` shows: units of 2⁻¹⁶ J (15.259 µJ) in 64 bits. Forms and places are
those of the kernel's kgd_pp_interface.h, which states the unit for the forms since 1.4 (MI300 and later);
smu13_driver_if_aldebaran.h does for the MI200 series, whose form is 1.3. Other cards of the forms 1.0 to 1.3 count in
units that nobody states, and MI100's counter may stand still (amdsmi issue 38): none of these is taken.
"""

from __future__ import annotations

import errno
import os
import struct
from functools import partial

from powerlab.power.sources.scan import read_text
from powerlab.sysroot import Sysroot

UNIT_J = 2.0**-16
_HEADER = struct.Struct("<HBB")
"""Bytes of the table, and the two parts of its form's number."""
_COUNTER = struct.Struct("<Q")
_PLACES = {(1, 3): 24, (1, 4): 24, (1, 5): 88, (1, 6): 16, (1, 7): 24, (1, 8): 24}
"""Where the counter lies in a table of each form, in bytes."""
_OF_MI200 = (1, 3)
_MI200 = ("0x7408", "0x740c", "0x740f", "0x7410")
"""PCI devices of MI250X, MI250 and MI210."""
_NONE = (0, 2**64 - 1)
"""What a die without a counter shows, such as the second one of an MI250."""


def counter(sysroot: Sysroot, directory: str) -> partial[float] | None:
    """Return how to read a card's energy counter in J; None where it has none of a stated unit.

    The function raises OSError where the table cannot be read or has no value.

    Args:
        sysroot: the device.
        directory: that of the card's PCI device.
    """
    path = f"{directory}/gpu_metrics"
    try:
        size, *form = _HEADER.unpack_from(sysroot.path(path).read_bytes())
    except (OSError, struct.error):
        return None
    place = _PLACES.get((form[0], form[1]))
    if place is None or size < place + _COUNTER.size:
        return None
    if tuple(form) == _OF_MI200 and read_text(sysroot, f"{directory}/device").lower() not in _MI200:
        return None
    read = partial(_read_j, sysroot, path, place)
    try:
        read()
    except OSError:
        return None
    return read


def _read_j(sysroot: Sysroot, path: str, place: int) -> float:
    table = sysroot.path(path).read_bytes()
    try:
        (counted,) = _COUNTER.unpack_from(table, place)
    except struct.error:
        raise OSError(errno.EIO, os.strerror(errno.EIO), path) from None
    if counted in _NONE:
        raise OSError(errno.ENODATA, os.strerror(errno.ENODATA), path)
    return float(counted * UNIT_J)
