"""Open allowlisted files so that no symbolic link can redirect them.

sysfs is full of links that must be followed: all that lies in ``/sys/class`` and ``/sys/bus`` is links to
``/sys/devices``. The rule, in this order:

1. The path is plain text: absolute, nothing empty, ``.`` or ``..`` between its slashes. So what the list's expressions
   matched is what the path means.
2. All links resolved, the file still lies below ``/sys`` of the sysroot and still has the name that was asked for.
   Below the real ``/sys`` only the kernel and root make links, and none leads out of it.
3. The resolved path is walked once more from the sysroot, one directory at a time, and no link is followed any more
   (``O_NOFOLLOW``): whoever changes the tree between 2 and 3 meets an error.
4. What is there is a plain file. It is looked at before it is opened (``O_PATH``), since opening a device or a pipe
   does something already.
"""

from __future__ import annotations

import os
import stat

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

_TREE = "sys"
_MAX_PATH = 1024
_STEP = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def is_plain(path: str) -> bool:
    """Say whether a path means what it says: rule 1."""
    parts = path.split("/")
    return (
        len(path) <= _MAX_PATH
        and path.isascii()
        and path.isprintable()
        and len(parts) > 2
        and not parts[0]
        and not {"", ".", ".."} & set(parts[1:])
    )


def open_listed(sysroot: Sysroot, path: str, flags: int) -> int:
    """Return a descriptor of a file whose path the list has matched.

    Raises:
        PowerlabError: the rule above is broken.
        OSError: the file is not there or cannot be opened.
    """
    if not is_plain(path):
        raise PowerlabError(f"{path[:100]!r} is not a plain path, so it is not looked at.")
    base = os.path.realpath(sysroot.base)
    real = os.path.realpath(sysroot.path(path), strict=True)
    parts = os.path.relpath(real, base).split("/")
    if parts[0] != _TREE or parts[-1] != path.rpartition("/")[2]:
        raise PowerlabError(f"{path} leads to {real}, which is outside of what the privileged helper touches.")
    handle = _walk(base, parts)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise PowerlabError(f"{path} is not a regular file, so the privileged helper does not open it.")
        return os.open(f"/proc/self/fd/{handle}", flags | os.O_CLOEXEC)
    finally:
        os.close(handle)


def _walk(base: str, parts: list[str]) -> int:
    """Return a handle of a path below ``base`` that can be looked at and not yet read; no part of it is a link."""
    handle = os.open(base, _STEP | os.O_DIRECTORY)
    for number, part in enumerate(parts, 1):
        try:
            step = os.open(part, _STEP | (os.O_DIRECTORY if number < len(parts) else 0), dir_fd=handle)
        finally:
            os.close(handle)
        handle = step
    return handle


def check_trusted(sysroot: Sysroot, path: str) -> None:
    """Make sure that nobody but root, or who runs the helper, can have written a program or a file it is given.

    Of a file that is not there yet the directory counts.

    Raises:
        PowerlabError: somebody else can.
    """
    real = os.path.realpath(sysroot.path(path))
    for place in (real, os.path.dirname(real)):
        try:
            found = os.lstat(place)
        except FileNotFoundError:
            continue
        if found.st_uid not in {0, os.geteuid()} or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PowerlabError(
                f"{path} is not used: others than root can write {place}; fix it with `sudo chown root {place}` and"
                f" `sudo chmod go-w {place}`."
            )
