"""Control groups that can hold processor time or memory back: where they are mounted, which is ours, what it allows.

Sources: proc(5), ``/proc/self/mounts``; cgroups(7), ``/proc/pid/cgroup``; kernel, admin-guide/cgroup-v2, ``cpu.max``,
``memory.max``, ``memory.stat``; kernel, admin-guide/cgroup-v1/memory.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from powerlab.sysroot import Sysroot

USUAL_PLACE = "/sys/fs/cgroup"
_USUAL_PLACE_1 = f"{USUAL_PLACE}/cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounts:
    """The first mount of each version.

    Attributes:
        version_1: the hierarchy with the controller ``cpu``, often together with ``cpuacct``; None where there is none.
        version_2: the one hierarchy of version 2, whatever its controllers; None where there is none.
    """

    version_1: str | None = None
    version_2: str | None = None


def parse_mounts(text: str) -> Mounts:
    """Return the mounts in the text of ``/proc/self/mounts``: device, place, kind, options, and two numbers a line.

    A controller belongs to one version at a time. Of version 1 it is named among the options of its hierarchy; of
    version 2 ``cgroup.controllers`` tells.
    """
    lines = [line.split() for line in text.splitlines()]
    entries = [(_unescaped(words[1]), words[2], words[3].split(",")) for words in lines if len(words) > 3]
    return Mounts(
        version_1=next((place for place, kind, options in entries if kind == "cgroup" and "cpu" in options), None),
        version_2=next((place for place, kind, _ in entries if kind == "cgroup2"), None),
    )


def mounts(sysroot: Sysroot) -> Mounts:
    """Return the mounts of a device; where it does not list any (a simulated board), those at the usual places."""
    try:
        return parse_mounts(sysroot.read("/proc/self/mounts"))
    except OSError:
        return Mounts(
            version_1=_USUAL_PLACE_1 if sysroot.path(_USUAL_PLACE_1).is_dir() else None,
            version_2=USUAL_PLACE if sysroot.path(f"{USUAL_PLACE}/cgroup.controllers").is_file() else None,
        )


def _usual_mounts(sysroot: Sysroot) -> Mounts | None:
    """Return where the controller ``cpu`` is if that is a usual place: to list all mounts takes ten times as long."""
    if "cpu" in _read(sysroot, f"{USUAL_PLACE}/cgroup.controllers").split():
        return Mounts(version_2=USUAL_PLACE)
    return Mounts(version_1=_USUAL_PLACE_1) if _read(sysroot, f"{_USUAL_PLACE_1}/cpu.cfs_period_us") else None


def _unescaped(place: str) -> str:
    """Return a place as it is called: the kernel writes spaces, tabs, line ends and backslashes in octal."""
    if "\\" not in place:
        return place
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), place)


def own_group(sysroot: Sysroot, controller: str) -> str:
    """Return this process's group, from the mount on: ``/`` at the top, or where the kernel does not say.

    Args:
        sysroot: the device.
        controller: a controller of version 1; empty for the hierarchy of version 2 (cgroups(7), ``/proc/pid/cgroup``).
    """
    return _group(_read(sysroot, "/proc/self/cgroup"), controller)


def _own_groups(sysroot: Sysroot, controller: str) -> tuple[str, str]:
    """Return the groups of this process of version 1, by a controller, and of version 2."""
    text = _read(sysroot, "/proc/self/cgroup")
    return _group(text, controller), _group(text, "")


def _group(text: str, controller: str) -> str:
    lines = [line.split(":", 2) for line in text.splitlines()]
    group = next((words[2] for words in lines if len(words) == 3 and controller in words[1].split(",")), "/")
    return "/" if ".." in group.split("/") else group  # outside of what this container can see


def parse_cpu_max(text: str) -> float | None:
    """Return the cores a cgroup v2 ``cpu.max`` allows ("quota period" in µs); None where it sets no limit."""
    quota, _, period = text.strip().partition(" ")
    if quota == "max" or not quota.isdigit() or not period.strip().isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def quota_cores(sysroot: Sysroot) -> float | None:
    """Return the tightest CPU quota of this process's cgroup and its parents, in cores; None where unlimited.

    Version 2 has the quota in ``cpu.max``, version 1 (the kernel of JetPack 4) in two files of the ``cpu`` controller.
    """
    found, (group_1, group_2) = _usual_mounts(sysroot) or mounts(sysroot), _own_groups(sysroot, "cpu")
    place_1, place_2 = found.version_1 or _USUAL_PLACE_1, found.version_2 or USUAL_PLACE
    limits = [_quota_of_version_1(sysroot, f"{place_1}{group}") for group in _up_to_the_top(group_1)]
    limits += [parse_cpu_max(_read(sysroot, f"{place_2}{group}/cpu.max")) for group in _up_to_the_top(group_2)]
    return min((limit for limit in limits if limit is not None), default=None)


def memory_left_bytes(sysroot: Sysroot) -> int | None:
    """Return how much more memory this process's control groups let it take; None where they set no limit.

    What the kernel can give up at once, pages of files nobody read lately, counts as left.
    """
    mounted, (group_1, group_2) = mounts(sysroot), _own_groups(sysroot, "memory")
    place_1, place_2 = f"{USUAL_PLACE}/memory", mounted.version_2 or USUAL_PLACE
    left = [
        _memory_left(
            sysroot, f"{place_1}{group}", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
        )
        for group in _up_to_the_top(group_1)
    ]
    left += [
        _memory_left(sysroot, f"{place_2}{group}", "memory.max", "memory.current", "inactive_file")
        for group in _up_to_the_top(group_2)
    ]
    return min((each for each in left if each is not None), default=None)


def _memory_left(sysroot: Sysroot, group: str, limit: str, usage: str, file_pages: str) -> int | None:
    if not (most := _read(sysroot, f"{group}/{limit}")).isdigit():
        return None  # as in most groups, which saves reading the rest
    if not (used := _read(sysroot, f"{group}/{usage}")).isdigit():
        return None
    found = re.search(rf"^{file_pages} (\d+)$", _read(sysroot, f"{group}/memory.stat"), re.MULTILINE)
    return max(0, int(most) - int(used) + (int(found[1]) if found else 0))


def _up_to_the_top(group: str) -> list[str]:
    """Return a group and those it lies in; the top one is the empty text."""
    parts = [part for part in group.split("/") if part]
    return ["/".join(["", *parts[:depth]]) for depth in range(len(parts) + 1)]


def _quota_of_version_1(sysroot: Sysroot, group: str) -> float | None:
    """Return the quota of one group; -1 µs stands for none and is not a number to :func:`parse_cpu_max` either."""
    quota = _read(sysroot, f"{group}/cpu.cfs_quota_us")
    return parse_cpu_max(f"{quota} {_read(sysroot, f'{group}/cpu.cfs_period_us')}") if quota.isdigit() else None


def _read(sysroot: Sysroot, path: str) -> str:
    try:
        return sysroot.read(path)
    except OSError:
        return ""
