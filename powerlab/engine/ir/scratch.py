"""Memory that constants are read into, used again for the next ones.

Weights are read, packed for their kernel and given up, one layer after the other. To touch new memory takes longer than
to read a file that the system has at hand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LINE_BYTES = 64


class _Current(threading.local):
    scratch: Scratch | None = None


_CURRENT = _Current()


class Scratch:
    """Memory of one thread for what is read while it makes a value."""

    def __init__(self) -> None:
        self._memory = np.empty(0, np.uint8)
        self._used = 0

    def made(self, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return what ``make`` returns; what it reads on the way lies here, and is lost when this is called again."""
        value = self.read(make)
        return value.copy() if np.may_share_memory(value, self._memory) else value

    def read(self, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return what ``make`` returns, which may lie here and then is lost when this is called again."""
        self._used, _CURRENT.scratch = 0, self
        try:
            return make()
        finally:
            _CURRENT.scratch = None

    def room(self, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        """Return memory for so many elements."""
        size = count * dtype.itemsize
        if self._used + size > self._memory.size:  # what lies in the memory so far keeps that alive
            self._memory, self._used = np.empty(max(size, self._memory.size), np.uint8), 0
        begin = self._used
        self._used += -(-size // _LINE_BYTES) * _LINE_BYTES
        return self._memory[begin : begin + size].view(dtype)


def room_for(dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """Return memory for so many elements that are going to be read; new one, but while a scratch is in use."""
    scratch = _CURRENT.scratch
    return np.empty(count, dtype) if scratch is None else scratch.room(dtype, count)
