"""Deferral of signals during a restore: pressing Ctrl-C twice must not leave a device half restored."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Hold SIGINT, SIGTERM and SIGHUP back until the block is done; the first of them is delivered then.

    Signals reach the main thread alone, so in another one there is nothing to hold. One that is ignored stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught: list[int] = []
    previous = {number: signal.getsignal(number) for number in _ENDS}
    held = [number for number, handler in previous.items() if handler not in (None, signal.SIG_IGN)]
    for number in held:
        signal.signal(number, lambda came, _: caught.append(came))
    try:
        yield
    finally:
        for number in held:
            signal.signal(number, previous[number])
    if caught:
        signal.raise_signal(caught[0])
