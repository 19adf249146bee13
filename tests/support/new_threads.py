"""Counts the threads that a test started itself: others of the process may end meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable

import psutil


def new_thread_counter() -> Callable[[int], int]:
    """Return what counts the threads of this process that are there then and were not at this call.

    It takes the expected number and waits for it up to 5 s: the kernel still lists a thread for a moment that was
    joined already.
    """
    process = psutil.Process()
    before = {thread.id for thread in process.threads()}

    def count(expected: int) -> int:
        end = time.monotonic() + 5.0
        while True:
            found = len({thread.id for thread in process.threads()} - before)
            if found == expected or time.monotonic() > end:
                return found
            time.sleep(0.001)

    return count
