"""The reason why a process ended, in words."""

from __future__ import annotations

import os
import signal
from typing import IO

_TAIL_BYTES = 4096
_LINE_LENGTH = 300


def exit_reason(exit_code: int, last_words: str) -> str:
    """Return one sentence; a negative exit code is the number of the signal that killed the process."""
    if exit_code < 0:
        how = f"was killed by {_signal_name(-exit_code)}"
        if -exit_code == signal.SIGKILL:
            how += " (the kernel does that when memory runs out)"
    else:
        how = f"ended with exit code {exit_code}"
    return f"the worker {how}" + (f"; its last words: {last_words}" if last_words else ".")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def last_line(output: IO[bytes]) -> str:
    """Return the last line with anything in it; empty where nothing was printed."""
    end = output.seek(0, os.SEEK_END)
    output.seek(max(0, end - _TAIL_BYTES))
    lines = output.read().decode(errors="replace").split("\n")
    return next((line.strip()[:_LINE_LENGTH] for line in reversed(lines) if line.strip()), "")
