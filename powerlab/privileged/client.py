"""Asks the privileged helper, where there is one; a process that is root needs none.

A request is one connection to ``/run/powerlab/helper.sock`` below the sysroot, so a simulated board has its own helper.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Iterator

from powerlab.domain.errors import PowerlabError
from powerlab.privileged.protocol import (
    SOCKET,
    Failed,
    MakeSetting,
    May,
    OpenFile,
    ProtocolError,
    ReadRegister,
    Reboot,
    Refused,
    Request,
    RunProgram,
    WriteFile,
    decode_reply,
    receive,
    send,
)
from powerlab.sysroot import Sysroot

_TIMEOUT_S = 90.0
"""Above the longest time a program may take that the helper runs for somebody else first."""
_SHORT_TIMEOUT_S = 5.0
"""After a helper has let that time pass, until it answers again: each of a hundred questions would wait as long."""
_QUEUE_POLL_S = 0.02
_own = {"helper": False}
_patience_s = {"now": _TIMEOUT_S}


class NoHelperError(PowerlabError):
    """There is no helper on this device, or not for this user."""


def be_the_helper() -> None:
    """Never ask from now on: this process is the helper, and would wait for itself."""
    _own["helper"] = True


def is_there(sysroot: Sysroot) -> bool:
    """Say whether a helper listens on this device; whether it serves this user only a request tells."""
    return not _own["helper"] and sysroot.path(SOCKET).is_socket()


def write_file(sysroot: Sysroot, path: str, value: str, guard: int | None = None) -> None:
    """Have a value written to a file.

    Args:
        sysroot: the device.
        path: the file, as seen from inside the sysroot.
        value: what to write, without the end of the line.
        guard: the lock of the device, which the helper then keeps until it is done, should this process be killed.

    Raises:
        NoHelperError: there is no helper.
        PowerlabError: the helper refuses.
        OSError: the device refuses.
    """
    _ask(sysroot, WriteFile(path, value), guard)


def open_file(sysroot: Sysroot, path: str) -> int:
    """Return a descriptor, open read-only, which the caller must close; raises as :func:`write_file` does."""
    _, descriptor = _ask(sysroot, OpenFile(path))
    if descriptor is None:
        raise PowerlabError("the privileged helper sent no file; update both ends of powerlab to the same version.")
    return descriptor


def run_program(sysroot: Sysroot, program: str, arguments: tuple[str, ...], guard: int | None = None) -> str:
    """Have a program run and return what it printed; raises as :func:`write_file` does."""
    return _ask(sysroot, RunProgram(program, arguments), guard)[0]


def reboot(sysroot: Sysroot, program: str, arguments: tuple[str, ...], guard: int | None = None) -> str:
    """Have a program run and told to reboot the device; raises as :func:`write_file` does."""
    return _ask(sysroot, Reboot(program, arguments), guard)[0]


def make_setting(sysroot: Sysroot, knob: str, target: str, value: str, guard: int | None = None) -> None:
    """Have a setting made by its knob's own code; raises as :func:`write_file` does."""
    _ask(sysroot, MakeSetting(knob, target, value), guard)


def read_register(sysroot: Sysroot, cpu: int, register: int) -> int:
    """Return a model-specific register of one processor; raises as :func:`write_file` does."""
    return int(_ask(sysroot, ReadRegister(cpu, register))[0])


def may_write(sysroot: Sysroot, path: str) -> bool:
    """Say whether the helper is there and would write some value to this file. Never raises."""
    return _may(sysroot, May("write", path))


def may_run(sysroot: Sysroot, program: str) -> bool:
    """Say whether the helper is there and would run this program with some arguments. Never raises."""
    return _may(sysroot, May("run", program))


def may_set(sysroot: Sysroot, knob: str) -> bool:
    """Say whether the helper is there and would make some setting of this knob. Never raises."""
    return _may(sysroot, May("set", knob))


def _may(sysroot: Sysroot, question: May) -> bool:
    if not is_there(sysroot):
        return False
    try:
        _ask(sysroot, question)
    except (PowerlabError, OSError):
        return False
    return True


def _ask(sysroot: Sysroot, request: Request, guard: int | None = None) -> tuple[str, int | None]:
    if not is_there(sysroot):
        raise NoHelperError("no privileged helper listens on this device; start powerlab-helper, or run as root.")
    try:
        with _connected(sysroot) as connection:
            # A helper that refuses at once has answered before it has read the request, and its end is closed.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                send(connection, request, guard)
            body, descriptor = receive(connection, _patience_s["now"])
        _patience_s["now"] = _TIMEOUT_S
    except (PermissionError, ConnectionRefusedError, FileNotFoundError) as error:
        why = f"the privileged helper cannot be reached ({error.strerror}); start powerlab-helper, or run as its user."
        raise NoHelperError(why) from None
    except TimeoutError:
        waited_s, _patience_s["now"] = _patience_s["now"], _SHORT_TIMEOUT_S
        raise PowerlabError(
            f"the privileged helper gave no answer within {waited_s:g} s; `journalctl -u powerlab-helper` says why."
        ) from None
    except (ProtocolError, OSError) as error:
        raise PowerlabError(
            f"the privileged helper gave no answer ({error}); `journalctl -u powerlab-helper` says why."
        ) from None
    try:
        return _text_of(body), descriptor
    except BaseException:
        if descriptor is not None:
            os.close(descriptor)
        raise


def _text_of(body: bytes) -> str:
    try:
        reply = decode_reply(body)
    except ProtocolError as error:
        raise PowerlabError(f"the privileged helper answered no sense ({error}); update powerlab on it.") from None
    if isinstance(reply, Refused):
        raise PowerlabError(reply.sentence)
    if isinstance(reply, Failed):
        raise OSError(reply.number, os.strerror(reply.number))
    return reply.text


@contextlib.contextmanager
def _connected(sysroot: Sysroot) -> Iterator[socket.socket]:
    place = sysroot.path(SOCKET)
    # Through the directory's descriptor, because an address holds no more than 107 bytes (unix(7)).
    directory = os.open(place.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_patience_s["now"])
            _connect(connection, f"/proc/self/fd/{directory}/{place.name}", time.monotonic() + _patience_s["now"])
            yield connection
    finally:
        os.close(directory)


def _connect(connection: socket.socket, address: str, deadline: float) -> None:
    """Connect, and wait where more ask at once than the helper's queue holds: the kernel does not (EAGAIN, connect(2)).

    Raises:
        TimeoutError: the queue stayed full until the deadline.
        OSError: nobody listens there.
    """
    while True:
        try:
            connection.connect(address)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise TimeoutError from None
            time.sleep(_QUEUE_POLL_S)
        else:
            return
