"""Lock that keeps two processes from setting power modes on one device at once."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
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
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""The directory is everybody's: a link there could lead root to any file, and a pipe could keep it waiting."""
_LONGEST_NOTE = 4096
_held: dict[Path, int] = {}


@contextmanager
def device_lock(sysroot: Sysroot, state_dir: Path, journal: Path | None = None) -> Iterator[None]:
    """Hold the lock of a device; it ends with the process, however that ends.

    The file lies on the device, so that users with state directories of their own meet there; only where ``/run/lock``
    cannot be written it lies in the state directory. The descriptor is inheritable on purpose: an nvpmodel that
    outlives its killed parent keeps the lock until it is done.

    The file says which process holds it and, while a mode is set, where that is recorded. So a change that somebody
    else's killed process left is not taken for the device's own settings.

    Args:
        sysroot: the device.
        state_dir: where the lock lies if it cannot lie on the device.
        journal: where this process records its changes; None where it makes none.

    Raises:
        PowerlabError: another process holds it, or a killed one left a change that is recorded elsewhere.
    """
    handle = _open(sysroot, state_dir)
    try:
        _lock(handle)
        os.set_inheritable(handle, True)
        left = _noted_change(handle)
        if left is not None and journal is not None and left != _absolute(journal) and _may_be_there(left):
            raise PowerlabError(
                f"a process that was killed left a power mode set, and what was before stands in {left!r}, which is not"
                " where this one looks; run `powerlab modes restore` as the user who set it, or with the --state-dir"
                f" given then. Where that is impossible, set the device by hand and remove {_path_of(handle)}."
            )
        _note(handle, left)
        _held[sysroot.base] = handle
        yield
    finally:
        if _held.get(sysroot.base) == handle:
            del _held[sysroot.base]
        os.close(handle)


def note_change(sysroot: Sysroot, journal: Path | None) -> None:
    """Note in the lock that this process holds where a change is recorded, or with None that nothing is changed now."""
    handle = held_lock(sysroot)
    if handle is not None:
        _note(handle, None if journal is None else _absolute(journal))


def held_lock(sysroot: Sysroot) -> int | None:
    """Return the descriptor of the lock this process holds on a device, None where it holds none.

    Who works on this process's behalf gets it too: as long as one copy is open the device stays locked, so a change
    goes on being guarded when this process dies before the other has finished.
    """
    return _held.get(sysroot.base)


def prepare_lock(sysroot: Sysroot) -> None:
    """Make the lock file for all users where only root can: does nothing where it is there, or has no directory."""
    path = sysroot.path(LOCK_DIRECTORY) / _LOCK_NAME
    if path.parent.is_dir() and not os.path.lexists(path):
        os.close(_create(path))


def _open(sysroot: Sysroot, state_dir: Path) -> int:
    for directory in (sysroot.path(LOCK_DIRECTORY), state_dir):
        path = directory / _LOCK_NAME
        try:
            if directory == state_dir:
                directory.mkdir(parents=True, exist_ok=True)
            # Not one O_CREAT: where fs.protected_regular is set, even root may not give it for another user's file.
            handle = _open_existing(path) if os.path.lexists(path) else _create(path)
            if stat.S_ISREG(os.fstat(handle).st_mode):
                return handle
            os.close(handle)
            raise _no_plain_file(path)
        except OSError as error:
            why = error.strerror
            if error.errno in {errno.ELOOP, errno.EISDIR, errno.ENXIO}:
                raise _no_plain_file(path) from None
            if isinstance(error, PermissionError) and os.path.exists(path):
                raise PowerlabError(
                    f"the lock file {path} belongs to another user, so powerlab cannot tell whether somebody is setting"
                    f" power modes; remove it as root (sudo rm {path})."
                ) from None
    raise PowerlabError(
        f"no lock file can be written to {LOCK_DIRECTORY} or {state_dir} ({why}); give a place with --state-dir."
    )


def _open_existing(path: Path) -> int:
    try:
        return os.open(path, _OPEN)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        # A container that may only read there meets the others at their file all the same: flock(2) asks for no more.
        return os.open(path, _OPEN & ~os.O_RDWR)


def _no_plain_file(path: Path) -> PowerlabError:
    return PowerlabError(
        f"{path} is not a regular file, so it is not used as a lock; find out who made it and remove it as root"
        f" (sudo rm {path})."
    )


def _create(path: Path) -> int:
    """Create the file so that every user can lock it, whatever the umask: it guards the device, not a user."""
    handle = os.open(path, _OPEN | os.O_CREAT, _FOR_EVERYBODY)
    if os.fstat(handle).st_uid == os.geteuid():
        os.fchmod(handle, _FOR_EVERYBODY)
    return handle


def _lock(handle: int) -> None:
    deadline = time.monotonic() + _ORPHAN_WAIT_S
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(handle)
            if (_is_running(holder) and not _is_own_orphan(holder)) or time.monotonic() > deadline:
                raise PowerlabError(
                    f"process {holder or 'of another user'} is setting power modes on this device; wait until it ends,"
                    " or stop it, and try again."
                ) from None
            time.sleep(_ORPHAN_POLL_S)  # what it started still runs
        else:
            return


def _holder(handle: int) -> str:
    """Return the number of the process that noted itself, empty where none is: anybody can write to the file."""
    first = os.pread(handle, 32, 0).decode("ascii", "replace").partition("\n")[0].strip()
    return first if first.isdecimal() else ""


def _noted_change(handle: int) -> str | None:
    lines = os.pread(handle, _LONGEST_NOTE, 0).decode("utf-8", "replace").split("\n")
    return lines[1] if len(lines) > 2 and lines[1].startswith("/") and "\0" not in lines[1] else None


def _note(handle: int, change: str | None) -> None:
    """Write down who holds the lock; on a full disk it is as good without."""
    with contextlib.suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, "".join(f"{line}\n" for line in (os.getpid(), change) if line).encode(), 0)


def _absolute(journal: Path) -> str:
    return str(journal.absolute())


def _may_be_there(path: str) -> bool:
    """Say whether a file is there, or where nobody may look could be."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except OSError:
        return False
    return True


def _path_of(handle: int) -> str:
    return os.readlink(f"/proc/self/fd/{handle}")


def _is_running(pid: str) -> bool:
    return pid.isdecimal() and Path(f"/proc/{pid}").exists()


def _is_own_orphan(pid: str) -> bool:
    """Say whether this process let go of the lock, and only something that it started still keeps it."""
    return pid == str(os.getpid()) and not _held
