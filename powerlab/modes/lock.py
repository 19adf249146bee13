"""Keeps two processes from setting power modes on one device at the same time."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.sysroot import Sysroot

LOCK_DIRECTORY = "/run/lock"
_LOCK_NAME = "powerlab-modes.lock"
_ORPHAN_WAIT_S = 30.0
_ORPHAN_POLL_S = 0.02


@contextmanager
def device_lock(sysroot: Sysroot, state_dir: Path) -> Iterator[None]:
    """Hold the lock of a device; it ends with the process, however that ends.

    The file lies on the device, so that users with state directories of their own meet there; only where ``/run/lock``
    cannot be written it lies in the state directory. The descriptor is inheritable on purpose: an nvpmodel that
    outlives its killed parent keeps the lock until it is done.

    Raises:
        PowerlabError: another process holds it.
    """
    handle = _open(sysroot, state_dir)
    try:
        _lock(handle)
        os.set_inheritable(handle, True)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(handle)


def _open(sysroot: Sysroot, state_dir: Path) -> int:
    for directory in (sysroot.path(LOCK_DIRECTORY), state_dir):
        path = directory / _LOCK_NAME
        try:
            if directory == state_dir:
                directory.mkdir(parents=True, exist_ok=True)
            # Not one O_CREAT: where fs.protected_regular is set, even root may not give it for another user's file.
            return os.open(path, os.O_RDWR) if path.exists() else os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            why = error.strerror
    raise PowerlabError(
        f"no lock file can be written to {LOCK_DIRECTORY} or {state_dir} ({why}); give a place with --state-dir."
    )


def _lock(handle: int) -> None:
    deadline = time.monotonic() + _ORPHAN_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            if _is_running(holder) or time.monotonic() > deadline:
                raise PowerlabError(
                    f"process {holder or 'of another user'} is setting power modes on this device; wait until it ends,"
                    " or stop it, and try again."
                ) from None
            time.sleep(_ORPHAN_POLL_S)  # its nvpmodel still runs
        else:
            return


def _is_running(pid: str) -> bool:
    return pid.isdecimal() and Path(f"/proc/{pid}").exists()
