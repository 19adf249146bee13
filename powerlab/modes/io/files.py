"""Read and write the one-line files of knobs.

Where this user may not, the privileged helper is asked, if there is one.
"""

from __future__ import annotations

import errno
import os

from powerlab.domain.errors import PowerlabError
from powerlab.modes.undo.lock import held_lock
from powerlab.privileged import client
from powerlab.privileged.reading import read_anyway
from powerlab.sysroot import Sysroot

_WHY = {
    errno.EACCES: "permission denied: run powerlab as root, or start powerlab-helper",
    errno.EPERM: "permission denied: run powerlab as root, or start powerlab-helper",
    errno.EROFS: "the file system is read-only: a container needs /sys mounted writable",
}

_NOT_THIS_USERS = (errno.EACCES, errno.EPERM, errno.EROFS)
"""A service's sandbox mounts /sys read-only."""


def read_value(sysroot: Sysroot, path: str) -> str:
    """Return the first line of a file without white space.

    Raises:
        OSError: as ``open`` and ``read`` do; an offline core's files may answer EBUSY.
    """
    return read_anyway(sysroot, path)[0].partition("\n")[0].rstrip()


def can_write(sysroot: Sysroot, path: str) -> bool:
    """Say whether this process may write a file, itself or through the privileged helper."""
    return os.access(sysroot.path(path), os.W_OK) or client.may_write(sysroot, path)


def write_value(sysroot: Sysroot, path: str, value: str) -> None:
    """Write one value in one system call, as sysfs wants it.

    Raises:
        PowerlabError: the device refuses, with its own words, or the helper does.
    """
    try:
        try:
            write_line(os.open(sysroot.path(path), os.O_WRONLY), value, is_plain=sysroot.simulated)
        except OSError as error:
            if error.errno not in _NOT_THIS_USERS or not client.is_there(sysroot):
                raise
            client.write_file(sysroot, path, value, held_lock(sysroot))
    except OSError as error:
        why = _WHY.get(error.errno or 0, f"the device says: {error.strerror}")
        raise PowerlabError(f"{path} does not take {value!r} ({why}).") from None


def write_line(handle: int, value: str, *, is_plain: bool) -> None:
    """Write one value to an open file and close it; a plain file keeps the rest of a longer text, sysfs has none.

    Raises:
        OSError: the device refuses.
    """
    try:
        length = os.write(handle, f"{value}\n".encode())
        if is_plain:
            os.ftruncate(handle, length)
    finally:
        os.close(handle)
