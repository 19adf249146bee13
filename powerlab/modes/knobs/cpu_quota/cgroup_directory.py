"""A control group as a directory that is created, joined by processes and removed; common to both versions."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Mapping

from powerlab.domain.errors import PowerlabError
from powerlab.modes.io.files import read_value, write_value
from powerlab.sysroot import Sysroot

GROUP = "powerlab"
"""The name of powerlab's own group."""
MEMBERS = "cgroup.procs"
"""The processes of a group; who is written there moves into it with all its threads."""
_LEAVING_S = 5.0
"""A killed process that is held back at its quota ends in the next period, which is one second long at most."""
_POLL_S = 0.02


def make(sysroot: Sysroot, group: str, start_files: Mapping[str, str]) -> None:
    """Make a group.

    Args:
        sysroot: the device.
        group: its directory.
        start_files: name to text, of what it begins with in a simulated tree, where no kernel fills it.

    Raises:
        PowerlabError: the kernel refuses.
    """
    path = sysroot.path(group)
    try:
        path.mkdir(exist_ok=True)
        for name, text in start_files.items() if sysroot.simulated else ():
            if not (path / name).exists():
                (path / name).write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise PowerlabError(f"the control group {group} cannot be made ({error.strerror}); run as root.") from None


def remove(sysroot: Sysroot, group: str, aside: str, start_files: Mapping[str, str]) -> None:
    """Remove a group; what still runs in it (the worker of a powerlab that was killed) moves aside first.

    Args:
        sysroot: the device.
        group: its directory; nothing happens where it is not there.
        aside: the group its processes move to.
        start_files: as for :func:`make`.

    Raises:
        PowerlabError: a group was made in it, or a process does not leave.
    """
    deadline = time.monotonic() + _LEAVING_S
    path = sysroot.path(group)
    while True:
        try:
            for name in start_files if sysroot.simulated else ():
                (path / name).unlink(missing_ok=True)
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY or time.monotonic() > deadline or _has_children(sysroot, group):
                raise PowerlabError(
                    f"the control group {group} cannot be removed ({error.strerror}); end what runs in it, remove the"
                    " groups in it, and try again."
                ) from None
            move_all(sysroot, group, aside)
            time.sleep(_POLL_S)
        else:
            return


def _has_children(sysroot: Sysroot, group: str) -> bool:
    return any(path.is_dir() for path in sysroot.path(group).iterdir())


def move_all(sysroot: Sysroot, group: str, to: str) -> None:
    """Move every process of a group into another one.

    Raises:
        PowerlabError: the kernel refuses one that still runs.
    """
    for pid in sysroot.path(f"{group}/{MEMBERS}").read_text(encoding="ascii").split():
        try:
            move(sysroot, int(pid), to)
        except PowerlabError:
            if sysroot.path(f"/proc/{pid}").exists():  # else it ended meanwhile, and is in no group any more
                raise


def move(sysroot: Sysroot, pid: int, to: str) -> None:
    """Move a process with all its threads into a group.

    Raises:
        PowerlabError: the kernel refuses.
    """
    write_value(sysroot, f"{to}/{MEMBERS}", str(pid))


def line_of(sysroot: Sysroot, path: str) -> str:
    """Return the line of a group's file, empty where it cannot be read."""
    try:
        return read_value(sysroot, path)
    except OSError:
        return ""
