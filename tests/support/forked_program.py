"""Python programs without their seconds of start-up: forks of one process that has imported everything already.

A fork is a process of its own like any other: it has its own files, signals, environment and exit status. Umask, limits
and cores are those of the process that forks, not of the test. All workers of a test run share that process; it ends
when the last of them has.
"""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Thread
from types import TracebackType
from typing import IO, Any, Self

_FORKER = Path(__file__).with_name("forker.py")
_PATIENCE_S = 300.0


class ForkedProgram:
    """Stands for a process as :class:`subprocess.Popen` does.

    Args:
        words: what follows ``python``: ``-m MODULE ...`` or ``FILE ...``.
        cwd: the folder to run in.
        env: its environment.
        stdin: as for ``Popen``.
        stdout: as for ``Popen``.
        stderr: as for ``Popen``.
        pass_fds: more files that it gets, under the same numbers.
        cores: those that it may run on, where they are not all.
        start_new_session: as for ``Popen``.
        text: whether its files hold texts rather than bytes.
    """

    stdin: IO[Any] | None = None
    stdout: IO[Any] | None = None
    stderr: IO[Any] | None = None

    def __init__(
        self,
        words: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Any = None,
        stdout: Any = None,
        stderr: Any = None,
        pass_fds: Sequence[int] = (),
        cores: Iterable[int] = (),
        start_new_session: bool = False,
        text: bool = True,
    ) -> None:
        self.args = [*map(str, words)]
        self.returncode: int | None = None
        self._mode = "" if text else "b"
        given = [self._end("stdin", stdin, 0), self._end("stdout", stdout, 1), self._end("stderr", stderr, 2)]
        report, told = os.pipe()
        request = {
            "words": self.args,
            "home": str(cwd or Path.cwd()),
            "environment": dict(env or os.environ),
            "numbers": [0, 1, 2, *pass_fds],
            "cores": sorted(cores),
            "session": start_new_session,
        }
        socket.send_fds(_forker(), [json.dumps(request).encode()], [told, *given, *pass_fds])
        for descriptor in (*given, told):
            os.close(descriptor)
        self._report = open(report, encoding="ascii")  # noqa: SIM115  closed when it has ended
        self.pid = int(self._report.readline())

    def _end(self, name: str, wanted: Any, usual: int) -> int:
        """Return the program's end of one of its three files, and keep the other one."""
        if wanted is None:
            return os.dup(usual)
        if wanted == subprocess.DEVNULL:
            return os.open(os.devnull, os.O_RDWR)
        if wanted != subprocess.PIPE:
            return os.dup(wanted if isinstance(wanted, int) else wanted.fileno())
        reader, writer = os.pipe()
        encoding = None if self._mode else "utf-8"
        own, mode = (writer, "w") if usual == 0 else (reader, "r")
        setattr(self, name, open(own, mode + self._mode, encoding=encoding))  # noqa: SIM115
        return reader if usual == 0 else writer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Kill it if the ``with`` block fails, wait for its end otherwise."""
        if kind is not None:
            self.kill()
        for file in (self.stdin, self.stdout, self.stderr):
            if file is not None:
                file.close()
        self.wait()

    def poll(self) -> int | None:
        """Return the exit status, or None while it runs."""
        if self.returncode is None and select.select([self._report], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return the exit status.

        Raises:
            subprocess.TimeoutExpired: it does not end.
        """
        if self.returncode is None:
            if not select.select([self._report], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
            self.returncode = int(self._report.readline())
            self._report.close()
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[str | None, str | None]:
        """Read all that it says, wait for its end, and return what it said.

        Raises:
            subprocess.TimeoutExpired: it does not end.
        """
        if self.stdin is not None:
            self.stdin.close()
        said: dict[str, str] = {}

        def read(name: str, file: IO[str]) -> None:
            with file:
                said[name] = file.read()

        open_files = [(name, getattr(self, name)) for name in ("stdout", "stderr")]
        readers = [Thread(target=read, args=one, daemon=True) for one in open_files if one[1] and not one[1].closed]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader in readers:
            reader.join()
        return tuple(said.get(name, "") if file else None for name, file in open_files)  # type: ignore[return-value]

    def send_signal(self, number: int) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


def run_forked(
    words: Sequence[str | Path],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = _PATIENCE_S,
) -> subprocess.CompletedProcess[str]:
    """Run ``python WORDS`` to its end, with nothing to read.

    Raises:
        subprocess.TimeoutExpired: it took longer.
    """
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    program = ForkedProgram(words, cwd=cwd, env=env, **pipes)
    try:
        output, errors = program.communicate(timeout)
    except subprocess.TimeoutExpired:
        program.kill()
        raise
    assert program.returncode is not None
    return subprocess.CompletedProcess(program.args, program.returncode, output or "", errors or "")


@cache
def _forker() -> socket.socket:
    """Return a connection to the process that forks, which is started where no other worker has done so."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    address = Path(tempfile.gettempdir(), f"powerlab-forker-{run}")
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with open(f"{address}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            connection.connect(str(address))
        except (FileNotFoundError, ConnectionRefusedError):
            address.unlink(missing_ok=True)
            started = os.posix_spawn(sys.executable, [sys.executable, str(_FORKER), str(address)], os.environ)
            while not address.exists():
                assert os.waitpid(started, os.WNOHANG) == (0, 0), "the process that forks did not start"
                time.sleep(0.02)
            connection.connect(str(address))
    return connection
