"""The only access to sysfs, procfs and device files, so that a simulated board is a directory."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

SIMULATION_MARKER = "simulated-board.json"

_READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Sysroot:
    """A directory that stands for ``/``: the machine itself, or a simulated board.

    Paths are given as the kernel's documents write them, ``/sys/class/hwmon``.
    """

    base: Path = Path("/")

    @property
    def simulated(self) -> bool:
        """Whether a simulated board stands behind this root."""
        return self.base != Path("/") and (self.base / SIMULATION_MARKER).is_file()

    def path(self, path: str) -> Path:
        """Return where ``path`` really lies."""
        return self.base / path.lstrip("/")

    def read(self, path: str) -> str:
        """Return the whole text of a file without surrounding white space.

        Raises:
            OSError: as ``open`` and ``read`` do; a sensor may answer ENODATA.
        """
        if "\0" in path:  # a name that was put together from what a damaged file holds
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        # Not open(): sensors and loading read hundreds of small files, and that takes three times as long.
        file = os.open(f"{self.base}/{path.lstrip('/')}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(file, _READ_BYTES):
                parts.append(part)
        finally:
            os.close(file)
        return b"".join(parts).decode("utf-8", "replace").strip()

    def glob(self, pattern: str) -> list[str]:
        """Return the paths that match, in natural order, as seen from inside the root."""
        found = self.base.glob(pattern.lstrip("/"))
        return sorted("/" + str(path.relative_to(self.base)) for path in found)
