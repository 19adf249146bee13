"""Check that the cores of a point exist: a worker on other cores would be reported under their name."""

from __future__ import annotations

import os

from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import core_list
from powerlab.domain.sweep import Point
from powerlab.sysroot import Sysroot

PRESENT = "/sys/devices/system/cpu/present"
"""The cores a machine has, online or not (admin-guide/cputopology)."""


def check_present(cores: str, sysroot: Sysroot) -> None:
    """Refuse a list of cores that the device has not; where the kernel does not tell, every list passes.

    Raises:
        PowerlabError: a core is not there, and which are.
    """
    try:
        text = sysroot.read(PRESENT).strip()
    except OSError:
        return
    present, named = core_list(text), core_list(cores)
    if present is None or named is None or named <= present:
        return
    raise PowerlabError(f"the cores {cores} do not all exist; this device has the cores {text}.")


def check_usable(point: Point, sysroot: Sysroot) -> None:
    """Refuse a point whose cores cannot be used just now; a simulated board's cores need not be this machine's.

    Raises:
        PowerlabError: which cannot, and in which power mode.
    """
    missing = (core_list(point.cores) or frozenset()) - os.sched_getaffinity(0)
    if missing and not sysroot.simulated:
        raise PowerlabError(
            f"the cores {', '.join(map(str, sorted(missing)))} cannot be used in the power mode {point.mode!r}: they "
            "are offline, or this process is kept from them; name other cores, or leave out the mode."
        )
