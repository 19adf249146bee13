"""What the kernel says about a machine: processor, memory, release, and the cores this process may use."""

from __future__ import annotations

import math
import os
import platform
import re

from powerlab.boards.processor import UNKNOWN
from powerlab.domain.preflight import core_list
from powerlab.modes.cgroup_folder import own_group
from powerlab.modes.cgroup_mounts import USUAL_PLACE, mounts
from powerlab.sysroot import Sysroot


def parse_memory_bytes(meminfo: str) -> int:
    """Return ``MemTotal`` of ``/proc/meminfo`` in bytes; 0 where the text does not say."""
    match = re.search(r"^MemTotal:\s+(\d+) kB", meminfo, re.MULTILINE)
    return int(match.group(1)) * 1024 if match else 0


def parse_cpu_max(text: str) -> float | None:
    """Return the cores a cgroup v2 ``cpu.max`` allows ("quota period" in µs); None where it sets no limit."""
    quota, _, period = text.strip().partition(" ")
    if quota == "max" or not quota.isdigit() or not period.strip().isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


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


def quota_cores(sysroot: Sysroot) -> float | None:
    """Return the tightest CPU quota of this process's cgroup and its parents, in cores; None where unlimited.

    Version 2 has the quota in ``cpu.max``, version 1 (the kernel of JetPack 4) in two files of the ``cpu`` controller.
    """
    found, group_1, group_2 = mounts(sysroot), own_group(sysroot, "cpu"), own_group(sysroot, "")
    place_1, place_2 = found.version_1 or f"{USUAL_PLACE}/cpu", found.version_2 or USUAL_PLACE
    limits = [_quota_of_version_1(sysroot, f"{place_1}{group}") for group in _up_to_the_top(group_1)]
    limits += [parse_cpu_max(_read(sysroot, f"{place_2}{group}/cpu.max")) for group in _up_to_the_top(group_2)]
    return min((limit for limit in limits if limit is not None), default=None)


def _up_to_the_top(group: str) -> list[str]:
    """Return a group and those it lies in; the top one is the empty text."""
    parts = [part for part in group.split("/") if part]
    return ["/".join(["", *parts[:depth]]) for depth in range(len(parts) + 1)]


def _quota_of_version_1(sysroot: Sysroot, group: str) -> float | None:
    """Return the quota of one group; -1 µs stands for none and is no number to :func:`parse_cpu_max` either."""
    quota, period = (_read(sysroot, f"{group}/cpu.cfs_{name}_us") for name in ("quota", "period"))
    return parse_cpu_max(f"{quota} {period}")


def parse_core_count(text: str) -> int | None:
    """Return how many cores a kernel's list names; None where it is no list."""
    cores = core_list(text)
    return None if cores is None else len(cores)


def online_cores(sysroot: Sysroot) -> int | None:
    """Return how many cores are online now; None where the kernel does not say."""
    return parse_core_count(_read(sysroot, "/sys/devices/system/cpu/online"))


def usable_cores(sysroot: Sysroot) -> int:
    """Return how many cores a sweep may keep busy at most: the affinity mask, cut down to the whole cores of a quota.

    The mask never holds cores that are off line. Where it holds all others, nobody narrowed it, and a power mode that
    brings the rest online may use them too.
    """
    mask = len(os.sched_getaffinity(0))
    if mask == online_cores(sysroot):
        mask = max(mask, parse_core_count(_read(sysroot, "/sys/devices/system/cpu/present")) or 0)
    quota = quota_cores(sysroot)
    return mask if quota is None else max(1, min(mask, math.floor(quota)))
