"""Work that a process does beside its own, every so often."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LAST_S = 5.0
"""How long the end waits for what is under way."""


@contextmanager
def at_intervals(
    work: Callable[[], None], period_s: float, name: str, *, at_once: bool = False, at_end: bool = False
) -> Iterator[None]:
    """Call something in a thread of its own meanwhile, again and again; what is under way at the end may be cut off.

    Args:
        work: catches what it expects; anything else ends the thread with a traceback.
        period_s: seconds from the end of one call to the beginning of the next.
        name: the thread's.
        at_once: whether the first call is made at the beginning, or after a period.
        at_end: whether one more is made at the end.
    """
    over = threading.Event()

    def repeat() -> None:
        if at_once:
            work()
        while not over.wait(period_s):
            work()
        if at_end:
            work()

    thread = threading.Thread(target=repeat, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_LAST_S)
