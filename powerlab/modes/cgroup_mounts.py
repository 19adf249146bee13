"""Where control groups that can hold processor time back are mounted (proc(5), ``/proc/self/mounts``)."""

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


def _unescaped(place: str) -> str:
    """Return a place as it is called: the kernel writes spaces, tabs, line ends and backslashes in octal."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), place)
