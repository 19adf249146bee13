"""Processes that end when their parent does with them, whatever happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from powerlab.domain.errors import PowerlabError

_PATIENCE_S = 30.0


def powerlab_command(*words: str) -> list[str]:
    """Return a command line that runs this very powerlab."""
    return [sys.executable, "-m", "powerlab.cli", *words]


@contextmanager
def child(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a process with its errors in a log file; ask it to end on leaving, and make it after a while.

    It has a session of its own: Ctrl-C at the terminal reaches the parent alone, which ends its children in order.
    """
    with log.open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


def check_alive(process: subprocess.Popen[str], name: str, log: Path) -> None:
    """Raise PowerlabError with a child's last words where it has ended."""
    if process.poll() is not None:
        words = log.read_text(encoding="utf-8").strip().rpartition("\n")[2].removeprefix("powerlab: ").rstrip(".")
        raise PowerlabError(f"the {name} ended (status {process.returncode}): {words or 'it said nothing'}; see {log}.")
