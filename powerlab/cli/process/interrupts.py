"""Ctrl-C and its like at the right moment."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a command to end: Ctrl-C, ``kill`` and the service manager, and a terminal or ssh session that closes."""


@contextmanager
def orderly_ends() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the block as Ctrl-C does, so that a device gets its power mode back. Main thread only.

    A signal that is ignored stays ignored, as nohup(1) wants it.
    """
    previous = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    changed = [number for number, handler in previous.items() if handler is not signal.SIG_IGN]
    for number in changed:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, previous[number])


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back until the block is done, so that what it keeps is kept in every place. Main thread only.

    SIGTERM and SIGHUP are held back with it where :func:`orderly_ends` made them the same.
    """
    held: list[int] = []
    previous = {number: signal.getsignal(number) for number in _ENDS}
    changed = [number for number in _ENDS if number == signal.SIGINT or previous[number] is _interrupt]
    for number in changed:
        signal.signal(number, lambda caught, _: held.append(caught))
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, previous[number])
    if held:
        signal.raise_signal(held[0])  # to the handler there was, which may also ignore it


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
