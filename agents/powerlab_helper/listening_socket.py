"""The helper's listening socket: systemd's, or its own."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

from powerlab.domain.errors import PowerlabError

_FIRST_PASSED = 3
"""The first descriptor systemd passes (sd_listen_fds(3))."""
_BACKLOG = 16
_UMASK = 0o117


@contextmanager
def listening(path: Path, group: int, environment: MutableMapping[str, str] | None = None) -> Iterator[socket.socket]:
    """Yield the listening socket: the one systemd passed where it did, else a new one, removed at the end.

    Args:
        path: where to listen.
        group: who may connect besides the owner; who may ask is another matter.
        environment: what holds systemd's variables, taken out so that no child mistakes them for its own.

    Raises:
        PowerlabError: systemd passed anything but one socket, or no socket can be made there.
    """
    variables = os.environ if environment is None else environment
    meant_for = variables.pop("LISTEN_PID", "")
    count = variables.pop("LISTEN_FDS", "")
    variables.pop("LISTEN_FDNAMES", None)
    if count and meant_for == str(os.getpid()):
        if count != "1":
            raise PowerlabError(f"systemd passed {count} sockets; powerlab-helper.socket must listen on one.")
        with socket.socket(fileno=_FIRST_PASSED) as passed:
            os.set_inheritable(passed.fileno(), False)
            yield passed
        return
    with _made(path, group) as made:
        yield made


@contextmanager
def only_helper(path: Path) -> Iterator[None]:
    """Be the one helper of a device; waits until the programs that a killed predecessor started have ended.

    The lock is theirs too: two programs that set modes at the same time would leave neither one's.

    Raises:
        PowerlabError: the lock cannot be made.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise PowerlabError(f"nothing can be written beside {path} ({error.strerror}); run as root.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.set_inheritable(handle, True)
        yield
    finally:
        os.close(handle)


@contextmanager
def _made(path: Path, group: int) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            path.unlink(missing_ok=True)  # a predecessor's: that it is gone its lock has told
            before = os.umask(_UMASK)
            try:
                # Through the directory's descriptor, because an address holds no more than 107 bytes (unix(7)).
                listener.bind(f"/proc/self/fd/{directory}/{path.name}")
            finally:
                os.umask(before)
        finally:
            os.close(directory)
        if os.geteuid() == 0:
            os.chown(path, 0, group)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise PowerlabError(f"the helper cannot listen on {path} ({error.strerror}); run as root.") from None
    try:
        yield listener
    finally:
        listener.close()
        path.unlink(missing_ok=True)
