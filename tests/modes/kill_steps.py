"""Counts the steps by which a process changes a disk or a device, and kills the process at the n-th."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from programs_here import program

from powerlab.modes.io import programs
from powerlab.nvml_library.library import Library

SYSTEM_CALLS = ("write", "pwrite", "ftruncate", "fsync", "fchmod", "replace", "unlink", "mkdir", "rmdir")
REAL = {name: getattr(os, name) for name in SYSTEM_CALLS}
REAL_WRITE_TEXT = Path.write_text
NEVER = -1


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Countdown:
    """Dies at the n-th step and says on a pipe which one it was; with ``NEVER`` tells every step instead."""

    def __init__(self, left: int, report: int) -> None:
        self.left, self.report = left, report

    def step(self, name: str, last_deed: Callable[[], object] = lambda: None) -> None:
        if self.left == NEVER:
            REAL["write"](self.report, f"{name}\n".encode())
            return
        if self.left == 0:
            REAL["write"](self.report, name.encode())
            last_deed()
            die()
        self.left -= 1


def arm(countdown: Countdown) -> None:
    """Put a step before each call that changes something, and two into each program that is to change something.

    For good: this process lives only to be killed. A program that outlives it is slow, so that a recovery that did not
    wait for it would be overtaken.
    """
    for name in SYSTEM_CALLS:
        setattr(os, name, _counted(getattr(os, name), name, countdown))
    Path.write_text = _counted(Path.write_text, "write_text", countdown)  # type: ignore[method-assign]
    socket.socket.sendmsg = _counted(socket.socket.sendmsg, "sendmsg", countdown)  # type: ignore[method-assign]
    real_ask = Library.ask

    def ask(library: Library, function: str, *arguments: Any) -> Any:
        if function.startswith(("nvmlDeviceSet", "nvmlDeviceReset")):
            countdown.step("NVML")
        return real_ask(library, function, *arguments)

    Library.ask = ask  # type: ignore[method-assign]
    real_run = programs.completed

    def run(arguments: list[str], **options: Any) -> Any:
        if "-q" in arguments:
            return real_run(arguments, **options)
        program = Path(arguments[0]).name
        countdown.step(f"before {program}")
        countdown.step(f"while {program} runs", lambda: Orphan(arguments))
        return real_run(arguments, **options)

    programs.completed = run


def _counted(real: Callable[..., Any], name: str, countdown: Countdown) -> Callable[..., Any]:
    def counted(*args: Any, **options: Any) -> Any:
        countdown.step(name)
        return real(*args, **options)

    return counted


class Orphan:
    """A program of the board that goes on when who started it has died; it keeps all descriptors open."""

    def __init__(self, arguments: list[str], delay_s: float = 0.05) -> None:
        if os.fork() == 0:
            os.setsid()
            _become(arguments, os.open(os.devnull, os.O_WRONLY), delay_s)


def warm_run(arguments: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
    """Stand in for ``programs.completed``: the boards' programs are Python, so a fork serves for a new interpreter.

    As the real one it has a process, a session and descriptors of its own; it only starts twenty times faster.
    """
    if not Path(arguments[0]).is_file():
        raise FileNotFoundError(2, os.strerror(2), arguments[0])
    if "-q" in arguments:  # it changes nothing, so it may as well run here
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = program(arguments)
        return subprocess.CompletedProcess(arguments, status, said.getvalue().encode())
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        os.close(reader)
        _become(arguments, writer, 0.0)
    os.close(writer)
    with open(reader, "rb") as output:
        printed = output.read()
    _, status = os.waitpid(pid, 0)
    return subprocess.CompletedProcess(arguments, os.waitstatus_to_exitcode(status), printed)


def _become(arguments: list[str], output: int, delay_s: float) -> None:
    """Be the program from here on, which is not the one to be killed."""
    for name, real in REAL.items():
        setattr(os, name, real)
    Path.write_text = REAL_WRITE_TEXT  # type: ignore[method-assign]
    status = 1
    try:
        time.sleep(delay_s)
        with open(output, "w", encoding="utf-8") as sys.stdout:
            status = program(arguments)
    finally:
        os._exit(status)


@contextlib.contextmanager
def without_rights(tree: Path) -> Iterator[None]:
    """Make this process one that may change no file of a board, as the agent is: only the helper can.

    It works for root too, so the tests need not become another user.
    """
    real_open, real_access = os.open, os.access
    inside, excepted = f"{tree}/", (f"{tree}/run/lock/",)

    def opened(path: Any, flags: int, *more: Any, **options: Any) -> int:
        if flags & os.O_ACCMODE != os.O_RDONLY and str(path).startswith(inside) and not str(path).startswith(excepted):
            raise PermissionError(13, os.strerror(13), str(path))
        return real_open(path, flags, *more, **options)

    def access(path: Any, mode: int, **options: Any) -> bool:
        if mode & os.W_OK and str(path).startswith(inside):
            return False
        return real_access(path, mode, **options)

    with patch.multiple(os, open=opened, access=access, geteuid=lambda: 1000):
        yield
