"""A model's file, mapped while its structure is read, and read from again when a large constant is asked for.

Of a mapped file only the pages that were looked at take memory: the structure, not the weights.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from powerlab.domain.errors import PowerlabError
from powerlab.engine.ir.graph import Array, quoted
from powerlab.engine.ir.scratch import room_for
from powerlab.engine.runtime.memory import check_memory

_CHECKED_ELEMENTS = 2**24
"""From so many elements on it is worth asking whether there is memory for them; loading asks for all together."""

Stamp = tuple[int, int, int]


class DataFile(Struct, frozen=True, kw_only=True):
    """A file that holds constants.

    Attributes:
        path: where it lies.
        stamp: what tells that it was written since.
        address: where it is mapped; 0 where it is not.
    """

    path: Path
    stamp: Stamp
    address: int = 0

    @classmethod
    def at(cls, path: Path) -> DataFile:
        """Return the file as it is now."""
        return cls(path=path, stamp=_stamp(path.stat()))

    @classmethod
    def mapped(cls, path: Path) -> tuple[DataFile, mmap.mmap]:
        """Return the file, and its bytes, mapped.

        Raises:
            OSError: it cannot be read.
            ValueError: it is empty.
        """
        stamp = _stamp(path.stat())
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return cls(path=path, stamp=stamp, address=_address(memoryview(data))), data

    def offset_of(self, view: memoryview) -> int:
        """Return where a part of the mapped bytes begins in the file."""
        return _address(view) - self.address

    def read(self, dtype: np.dtype[Any], count: int, offset: int) -> Array:
        """Return ``count`` elements from ``offset`` bytes on.

        Raises:
            PowerlabError: the file was changed since it was opened, is gone, or there is no memory for so much of it.
        """
        if count >= _CHECKED_ELEMENTS:
            check_memory(count * dtype.itemsize, f"the file {quoted(str(self.path))}", "one tensor")
        values = room_for(dtype, count)
        try:
            file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                unchanged = _stamp(os.fstat(file)) == self.stamp
                whole = _read(file, values, offset)
            finally:
                os.close(file)
        except OSError as error:
            raise PowerlabError(f"{self.path} cannot be read: {error.strerror or error}.") from None
        if not unchanged or not whole:
            raise PowerlabError(f"{quoted(str(self.path))} was changed while the model was loaded; load it again.")
        return values


def _read(file: int, values: Array, offset: int) -> bool:
    """Read a file from ``offset`` on; tell whether there was enough to fill the array."""
    left = values.view(np.uint8).data
    while left and (count := os.preadv(file, [left], offset)):
        left, offset = left[count:], offset + count
    return not left


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_mtime_ns, status.st_size, status.st_ino


def _address(view: memoryview) -> int:
    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])
