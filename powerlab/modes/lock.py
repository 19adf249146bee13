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
_FOR_EVERYBODY = 0o666
_held: dict[Path, int] = {}


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
        _held[sysroot.base] = handle
        yield
    finally:
        if _held.get(sysroot.base) == handle:
            del _held[sysroot.base]
        os.close(handle)


def held_lock(sysroot: Sysroot) -> int | None:
    """Return the descriptor of the lock this process holds on a device, None where it holds none.

    Who works on this process's behalf gets it too: as long as one copy is open the device stays locked, so a change
    goes on being guarded when this process dies before the other has finished.
    """
    return _held.get(sysroot.base)


def prepare_lock(sysroot: Sysroot) -> None:
    """Make the lock file for all users where only root can: does nothing where it is there, or has no directory."""
    path = sysroot.path(LOCK_DIRECTORY) / _LOCK_NAME
    if path.parent.is_dir() and not path.exists():
        os.close(_create(path))


def _open(sysroot: Sysroot, state_dir: Path) -> int:
    for directory in (sysroot.path(LOCK_DIRECTORY), state_dir):
        path = directory / _LOCK_NAME
        try:
            if directory == state_dir:
                directory.mkdir(parents=True, exist_ok=True)
            # Not one O_CREAT: where fs.protected_regular is set, even root may not give it for another user's file.
            return os.open(path, os.O_RDWR) if os.path.exists(path) else _create(path)
        except OSError as error:
            why = error.strerror
            if isinstance(error, PermissionError) and os.path.exists(path):
                raise PowerlabError(
                    f"the lock file {path} belongs to another user, so powerlab cannot tell whether somebody is setting"
                    f" power modes; remove it as root (sudo rm {path})."
                ) from None
    raise PowerlabError(
        f"no lock file can be written to {LOCK_DIRECTORY} or {state_dir} ({why}); give a place with --state-dir."
    )


def _create(path: Path) -> int:
    """Create the file so that every user can lock it, whatever the umask: it guards the device, not a user."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, _FOR_EVERYBODY)
    if os.fstat(handle).st_uid == os.geteuid():
        os.fchmod(handle, _FOR_EVERYBODY)
    return handle


def _lock(handle: int) -> None:
    deadline = time.monotonic() + _ORPHAN_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            if (_is_running(holder) and not _is_own_orphan(holder)) or time.monotonic() > deadline:
                raise PowerlabError(
                    f"process {holder or 'of another user'} is setting power modes on this device; wait until it ends,"
                    " or stop it, and try again."
                ) from None
            time.sleep(_ORPHAN_POLL_S)  # what it started still runs
        else:
            return


def _is_running(pid: str) -> bool:
    return pid.isdecimal() and Path(f"/proc/{pid}").exists()


def _is_own_orphan(pid: str) -> bool:
    """Say whether this process let go of the lock, and only something that it started still keeps it."""
    return pid == str(os.getpid()) and not _held
