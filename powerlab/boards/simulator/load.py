"""How a worker tells the simulator what it is doing: one small file a worker, gone or ignored when the worker is."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from powerlab.boards.simulator import layout
from powerlab.sysroot import Sysroot

_THREADS_WIDTH = 6


def _started_at(pid: int) -> str | None:
    """Return when a process started, in the kernel's ticks, or None when it is gone or only waits to be reaped.

    A pid alone may have been given to another process meanwhile (proc(5), /proc/pid/stat, fields 3 and 22).
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in {"Z", "X"} else fields[19]


class LoadNow(NamedTuple):
    """What all living workers do together.

    Attributes:
        threads: how many threads they keep busy.
        activity: how much these switch on the mean: 1 is what a whole network does.
        gpu: the load of the first graphics processor, 0 to 1.
    """

    threads: int
    activity: float
    gpu: float = 0.0


class Load:
    """The load this process puts on a simulated board; a context manager that takes it off again."""

    def __init__(self, sysroot: Sysroot) -> None:
        """Announce this process to the board's simulator.

        Raises:
            OSError: the tree cannot be written.
        """
        pid = os.getpid()
        self._path = sysroot.path(layout.LOAD_DIRECTORY) / f"{pid}"
        self._handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._text = f"{{:<{_THREADS_WIDTH}d}} {_started_at(pid)} {{:.4f}} {{:.4f}}\n"
        self.publish(0)

    def publish(self, busy_threads: int, activity: float = 1.0, gpu: float = 0.0) -> None:
        """Say what computes from now on; the arguments are the fields of :class:`LoadNow`."""
        os.pwrite(self._handle, self._text.format(busy_threads, activity, gpu).encode(), 0)

    def close(self) -> None:
        """Take the load off the board."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
            self._path.unlink(missing_ok=True)

    def __enter__(self) -> Load:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def busy_threads(sysroot: Sysroot) -> int:
    """Return how many threads all living workers keep busy; files of dead workers are removed."""
    return load_now(sysroot).threads


def load_now(sysroot: Sysroot) -> LoadNow:
    """Return what all living workers do; files of dead workers are removed."""
    total, switching, gpu = 0, 0.0, 0.0
    for path in sysroot.path(layout.LOAD_DIRECTORY).iterdir():
        try:
            threads, started_at, *more = path.read_text(encoding="utf-8").split()
        except (OSError, ValueError):
            continue  # gone, or being written for the first time: no load yet
        if _started_at(int(path.name)) == started_at:
            total += int(threads)
            switching += int(threads) * float(more[0] if more else 1)
            gpu += float(more[1]) if len(more) > 1 else 0.0
        else:
            path.unlink(missing_ok=True)
    return LoadNow(total, switching / total if total else 1.0, min(1.0, gpu))
