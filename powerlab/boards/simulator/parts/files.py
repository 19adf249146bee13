"""Sensor files that a part keeps open and rewrites in place."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress

from powerlab.boards.simulator import layout
from powerlab.sysroot import Sysroot


class SensorFiles:
    """Open files by the names a part gives them; each holds one integer in a text of constant width.

    A part writes what is true. Faults stand between it and the files: they hold a file, so that it is left alone, or
    alter what is written.
    """

    def __init__(self, width: int = layout.SENSOR_WIDTH) -> None:
        """Open nothing yet; ``width`` is that of the texts, which must hold the greatest value."""
        self._width = width
        self._sysroot = Sysroot()
        self._handles: dict[str, int] = {}
        self._holds: Counter[str] = Counter()
        self._alterations: dict[str, Callable[[int], int]] = {}

    @property
    def paths(self) -> tuple[str, ...]:
        """The names of the files that are open."""
        return tuple(self._handles)

    def open(self, sysroot: Sysroot, paths: Iterable[str]) -> None:
        """Open files for writing.

        Raises:
            OSError: a file is missing or cannot be written.
        """
        self._sysroot = sysroot
        for path in paths:
            self._handles[path] = os.open(sysroot.path(path), os.O_WRONLY)

    def write(self, path: str, value: int) -> None:
        """Rewrite one file."""
        if self._holds and path in self._holds:
            return
        if self._alterations and path in self._alterations:
            value = self._alterations[path](value)
        os.pwrite(self._handles[path], layout.sensor_text(value, self._width), 0)

    def hold(self, path: str) -> None:
        """Leave a file alone until it is released as often as it was held."""
        self._holds[path] += 1

    def release(self, path: str) -> None:
        """Write a file again; one that was replaced meanwhile is opened anew, one that is gone stays as it was."""
        self._holds[path] -= 1
        if self._holds[path] <= 0:
            del self._holds[path]
        with suppress(FileNotFoundError):  # another fault has taken it away
            handle = os.open(self._sysroot.path(path), os.O_WRONLY)
            os.close(self._handles[path])
            self._handles[path] = handle

    def alter(self, path: str, alteration: Callable[[int], int] | None) -> None:
        """Write what a function makes of each value from now on; None writes the values themselves again."""
        if alteration is None:
            self._alterations.pop(path, None)
        else:
            self._alterations[path] = alteration

    def close(self) -> None:
        """Close all."""
        for handle in self._handles.values():
            os.close(handle)
        self._handles = {}
