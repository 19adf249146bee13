"""Size of a spool, readable from other threads."""

from __future__ import annotations

import logging
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from powerlab.protocol.messages import Backlog

_log = logging.getLogger("powerlab.agent")
_OLDEST_S = 10 * 365 * 86400.0
"""No run waits for longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What a look found; ``oldest_at_s`` in seconds since 1970, None where nothing waits or nobody noted it."""

    waiting: int
    refused: int
    chunks: int
    used_bytes: int
    oldest_at_s: float | None
    shed: int


@dataclass(slots=True)
class SpoolSize:
    """Looks at a spool's file through a connection of its own, which cannot write, and only where the file changed.

    Attributes:
        path: the spool's file.
    """

    path: Path
    _last: tuple[tuple[tuple[int, int], ...], _Counted] | None = None
    """What the last look found, and of which files: one value, for two threads may look at the same time."""

    def run_counts(self) -> tuple[int, int]:
        """Return how many runs wait for the server, and how many it refused."""
        counted = self._look()
        return counted.waiting, counted.refused

    def backlog(self) -> Backlog | None:
        """Return what the server does not have; None where the file cannot be read now, which is not nothing."""
        try:
            counted = self._look()
        except (sqlite3.Error, OSError) as error:
            _log.warning("what waits in the spool is not known: %s", error)
            return None
        return Backlog(
            runs=counted.waiting,
            refused_runs=counted.refused,
            chunks=counted.chunks,
            size_bytes=counted.used_bytes if counted.waiting or counted.refused else 0,
            oldest_age_s=_age_s(counted.oldest_at_s),
            shed_runs=counted.shed,
        )

    def size_bytes(self) -> int:
        """Return what the file and its log take."""
        return sum(file.stat().st_size for file in self._files())

    def _look(self) -> _Counted:
        stamp = tuple((file.st_mtime_ns, file.st_size) for file in map(Path.stat, self._files()))
        last = self._last
        if last is not None and last[0] == stamp:
            return last[1]
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as database:
            counted = _count(database)
        self._last = stamp, counted
        return counted

    def _files(self) -> list[Path]:
        log = self.path.with_name(f"{self.path.name}-wal")
        return [file for file in (self.path, log) if file.exists()]


def _age_s(since_s: float | None) -> float | None:
    """Return how long ago something was, None where the clock was wrong then: boards without a battery wake in 1970."""
    if since_s is None or (age_s := time.time() - since_s) > _OLDEST_S:
        return None
    # A clock that was set back meanwhile makes no run younger than it is now.
    return max(0.0, age_s)


def _count(database: sqlite3.Connection) -> _Counted:
    """Count what is cheap to count however much there is: rows of small indexes, and the pages that are in use."""
    count, refused = database.execute("SELECT COUNT(*), COUNT(refusal) FROM run").fetchone()
    oldest = database.execute("SELECT added_at FROM run WHERE refusal IS NULL ORDER BY number LIMIT 1").fetchone()
    page, pages, free = (
        database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
    )
    return _Counted(
        waiting=count - refused,
        refused=refused,
        chunks=database.execute("SELECT COUNT(*) FROM chunk").fetchone()[0],
        used_bytes=page * (pages - free),
        oldest_at_s=None if oldest is None else oldest[0],
        shed=database.execute("SELECT runs FROM shed").fetchone()[0],
    )
