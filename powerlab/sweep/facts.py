"""Facts from the kernel about a machine: processor, memory, release, and the cores this process may use."""

from __future__ import annotations

import math
import os
import platform
import re

from powerlab.boards.processor import UNKNOWN
from powerlab.cgroups import quota_cores
from powerlab.domain.preflight import core_list
from powerlab.sysroot import Sysroot


def parse_memory_bytes(meminfo: str) -> int:
    """Return ``MemTotal`` of ``/proc/meminfo`` in bytes; 0 where the text does not say."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0


def _read(sysroot: Sysroot, path: str) -> str:
    try:
        return sysroot.read(path)
    except OSError:
        return ""


def memory_bytes(sysroot: Sysroot) -> int:
    """Return the installed memory in bytes; 0 where the kernel does not say."""
    return parse_memory_bytes(_read(sysroot, "/proc/meminfo"))


def kernel_release(sysroot: Sysroot) -> str:
    """Return the kernel's release; a simulated board may not state one."""
    release = _read(sysroot, "/proc/sys/kernel/osrelease")
    return release or (UNKNOWN if sysroot.simulated else platform.release())


def parse_core_count(text: str) -> int | None:
    """Return how many cores a kernel's list names; None where it is no list."""
    cores = core_list(text)
    return None if cores is None else len(cores)


def online_cores(sysroot: Sysroot) -> int | None:
    """Return how many cores are online now; None where the kernel does not say."""
    return parse_core_count(_read(sysroot, "/sys/devices/system/cpu/online"))


def usable_cores(sysroot: Sysroot) -> int:
    """Return how many cores a sweep may keep busy at most: the affinity mask, cut down to the whole cores of a quota.

    The mask never holds cores that are offline. Where it holds all others, nobody narrowed it, and a power mode that
    brings the rest online may use them too.
    """
    mask = len(os.sched_getaffinity(0))
    if mask == online_cores(sysroot):
        mask = max(mask, parse_core_count(_read(sysroot, "/sys/devices/system/cpu/present")) or 0)
    quota = quota_cores(sysroot)
    return mask if quota is None else max(1, min(mask, math.floor(quota)))
