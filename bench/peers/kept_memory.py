"""Free memory that a virtual machine's host does not take back, so that how long it takes to give it is not measured.

Some hosts ask which memory is free and use it for others (free page reporting, https://docs.kernel.org/mm/free_page_reporting.html).
Who takes it next waits until it has been given back, page by page: up to a second a gigabyte, or nothing. On a machine
of its own there is no such cost.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from powerlab.engine.runtime.memory import available_bytes

LARGE_PAGE = 2 << 20
_SHARE = 0.8
_EVERY = 4
"""Of the large pages taken one in so many is kept: what is free lies in pieces smaller than the 8 MB that hosts ask
about, in which there is room for large pages."""


@contextmanager
def kept_memory() -> Iterator[None]:
    """Take most of the free memory, and give three quarters of it back in pieces of 6 MB."""
    block = _EVERY * LARGE_PAGE
    size = int(_SHARE * available_bytes()) // block * block
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(memory, np.uint8)[:: mmap.PAGESIZE] = 1
        for begin in range(0, size, block):
            memory.madvise(mmap.MADV_DONTNEED, begin, block - LARGE_PAGE)
        yield
