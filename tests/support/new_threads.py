"""Counts the threads that a test started itself: others of the process may end meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import psutil


def new_thread_counter() -> Callable[[], int]:
    """Return what counts the threads of this process that are there then and were not at this call."""
    process = psutil.Process()
    before = {thread.id for thread in process.threads()}
    return lambda: len({thread.id for thread in process.threads()} - before)
