"""Reading and writing the one-line files knobs are made of."""

from __future__ import annotations

import errno
import os

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

_WHY = {
    errno.EACCES: "permission denied: run powerlab as root",
    errno.EPERM: "permission denied: run powerlab as root",
    errno.EROFS: "the file system is read-only: a container needs /sys mounted writable",
}


def read_value(sysroot: Sysroot, path: str) -> str:
    """Return the first line of a file without white space.

    Raises:
        OSError: as ``open`` and ``read`` do; an offline core's files may answer EBUSY.
    """
    return sysroot.read(path).partition("\n")[0].rstrip()


def can_write(sysroot: Sysroot, path: str) -> bool:
    """Say whether this process may write a file."""
    return os.access(sysroot.path(path), os.W_OK)


def write_value(sysroot: Sysroot, path: str, value: str) -> None:
    """Write one value in one system call, as sysfs wants it.

    Raises:
        PowerlabError: the device refuses, with its own words.
    """
    try:
        handle = os.open(sysroot.path(path), os.O_WRONLY)
        try:
            length = os.write(handle, f"{value}\n".encode())
            if sysroot.simulated:  # a plain file keeps the rest of a longer text, sysfs has none
                os.ftruncate(handle, length)
        finally:
            os.close(handle)
    except OSError as error:
        why = _WHY.get(error.errno or 0, f"the device says: {error.strerror}")
        raise PowerlabError(f"{path} does not take {value!r} ({why}).") from None
