"""Reads files that may belong to root alone: directly where this user may, through the helper where it may not."""

from __future__ import annotations

import errno
import os

from powerlab.domain.errors import PowerlabError
from powerlab.privileged.client import is_there, open_file, read_register
from powerlab.sysroot import Sysroot

THROUGH_HELPER = "through the privileged helper"


def is_denied(sysroot: Sysroot, path: str) -> bool:
    """Say whether a file is there and this user may not read it; a directory on its way may be what is closed."""
    try:
        os.close(os.open(sysroot.path(path), os.O_RDONLY | os.O_CLOEXEC))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def open_denied(sysroot: Sysroot, path: str) -> int:
    """Return a descriptor of a file this user may not read, opened by the helper; the caller closes it.

    Raises:
        PermissionError: there is no helper, or it does not open this file.
        OSError: the file cannot be opened by root either.
    """
    try:
        return open_file(sysroot, path)
    except PowerlabError as error:
        raise PermissionError(errno.EACCES, str(error), path) from None


def read_denied_register(sysroot: Sysroot, cpu: int, register: int) -> int:
    """Return a model-specific register of a processor whose device this user may not open.

    Raises:
        PermissionError: there is no helper, or it does not read this register.
        OSError: the processor does not have it.
    """
    try:
        return read_register(sysroot, cpu, register)
    except PowerlabError as error:
        raise PermissionError(errno.EACCES, str(error)) from None


def read_anyway(sysroot: Sysroot, path: str) -> tuple[str, bool]:
    """Return the text of a file without surrounding white space, and whether it came through the helper.

    Raises:
        OSError: as ``open`` and ``read`` do; PermissionError where neither this user nor the helper may read it.
    """
    try:
        return sysroot.read(path), False
    except PermissionError:
        if not is_there(sysroot):
            raise
    with open(open_denied(sysroot, path), encoding="utf-8", errors="replace") as file:
        return file.read().strip(), True
