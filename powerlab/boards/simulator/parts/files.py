"""Sensor files that a part keeps open and rewrites in place."""

from __future__ import annotations

import os
from collections.abc import Iterable

from powerlab.boards.simulator import layout
from powerlab.sysroot import Sysroot


class SensorFiles:
    """Open files by the names a part gives them; each holds one integer in a text of constant width."""

    def __init__(self, width: int = layout.SENSOR_WIDTH) -> None:
        """Open nothing yet; ``width`` is that of the texts, which must hold the greatest value."""
        self._width = width
        self._handles: dict[str, int] = {}

    def open(self, sysroot: Sysroot, paths: Iterable[str]) -> None:
        """Open files for writing.

        Raises:
            OSError: a file is missing or cannot be written.
        """
        for path in paths:
            self._handles[path] = os.open(sysroot.path(path), os.O_WRONLY)

    def write(self, path: str, value: int) -> None:
        """Rewrite one file."""
        os.pwrite(self._handles[path], layout.sensor_text(value, self._width), 0)

    def close(self) -> None:
        """Close all."""
        for handle in self._handles.values():
            os.close(handle)
        self._handles = {}
