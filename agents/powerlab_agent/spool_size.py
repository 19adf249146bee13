"""How much lies in a spool, for somebody who is not the spool's own thread."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class SpoolSize:
    """Looks at a spool's file through a connection of its own, which cannot write, and only where the file changed.

    Attributes:
        path: the spool's file.
    """

    path: Path
    _seen: tuple[tuple[int, int], ...] | None = None
    _counts: tuple[int, int] = (0, 0)

    def run_counts(self) -> tuple[int, int]:
        """Return how many runs wait for the server, and how many it refused."""
        stamp = tuple((file.st_mtime_ns, file.st_size) for file in map(Path.stat, self._files()))
        if stamp != self._seen:
            address = f"{self.path.absolute().as_uri()}?mode=ro"
            with closing(sqlite3.connect(address, uri=True)) as database:
                count, refused = database.execute("SELECT COUNT(*), COUNT(refusal) FROM run").fetchone()
            self._counts, self._seen = (count - refused, refused), stamp
        return self._counts

    def size_bytes(self) -> int:
        """Return what the file and its log take."""
        return sum(file.stat().st_size for file in self._files())

    def _files(self) -> list[Path]:
        log = self.path.with_name(f"{self.path.name}-wal")
        return [file for file in (self.path, log) if file.exists()]
