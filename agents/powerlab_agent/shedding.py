"""Which traces to drop when the disk budget is used up.

Before a run is added, traces are shed until it fits into the spool's bound and the disk keeps its reserve:

1. of runs that the server refused, which nobody waits for, oldest first;
2. of runs that wait for the server, oldest first;
3. of the run that is to be added.

A run loses all of its traces or none: with half of them nobody could audit it. It says so itself, in
``conditions.traces_shed``, before the server hears of it. So a run whose upload has begun keeps its traces: the server
may know it already as one that has them. Runs themselves are never shed, and may use the reserve.
"""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import replace
from pathlib import Path

from powerlab.domain.run import Run
from powerlab.protocol.wire import decode, encode
from powerlab_agent.room import Limits, free_bytes, in_words

_log = logging.getLogger("powerlab.agent")
BECAUSE_FULL = "the disk of its spool was full"
COUNT_SHED = "UPDATE shed SET runs = runs + 1"
"""Counts a run that loses its traces, in the transaction in which it does."""
_NEXT = """
SELECT run_id, document FROM run
WHERE begun = 0 AND EXISTS (SELECT 1 FROM chunk WHERE chunk.run_id = run.run_id)
ORDER BY refusal IS NULL, number LIMIT 1"""


def without_traces(run: Run, chunk_count: int, size_bytes: int, why: str) -> Run:
    """Return a run that says that its traces were shed; one that failed has no traces, and nowhere to say it."""
    if run.conditions is None:
        return run
    chunks = "1 chunk" if chunk_count == 1 else f"{chunk_count} chunks"
    said = (
        f"its traces ({chunks}, {in_words(size_bytes)}) were shed on the device before the server could take them, "
        f"because {why}."
    )
    return replace(run, conditions=replace(run.conditions, traces_shed=said))


class Shedding:
    """Makes room in a spool."""

    def __init__(self, database: sqlite3.Connection, path: Path, limits: Limits) -> None:
        self._db = database
        self._path = path
        self._limits = limits

    def make_room(self, size_bytes: int) -> str:
        """Shed traces until that many bytes fit; returns why they do not fit, where nothing more can be shed.

        Raises:
            sqlite3.Error: the database takes no write.
        """
        while why := self._why_not(size_bytes):
            if not self._shed_one(why):
                return why
        return ""

    def _why_not(self, size_bytes: int) -> str:
        page, pages, free_pages = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
        )
        if page * (pages - free_pages) + size_bytes > self._limits.spool_bytes:
            return f"its spool had reached {in_words(self._limits.spool_bytes)}"
        growth = max(0, size_bytes - page * free_pages)
        if free_bytes(self._path.parent) - growth < self._limits.reserve_bytes:
            return f"less than {in_words(self._limits.reserve_bytes)} were left on the disk of its spool"
        return ""

    def _shed_one(self, why: str) -> bool:
        """Shed the traces of one run; returns whether there was one."""
        row = self._db.execute(_NEXT).fetchone()
        if row is None:
            return False
        run_id, document = row
        size = "SELECT COUNT(*), SUM(LENGTH(document)) FROM chunk WHERE run_id = ?"
        count, size_bytes = self._db.execute(size, (run_id,)).fetchone()
        poorer = without_traces(decode(document, Run), count, size_bytes, why)
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            self._db.execute("DELETE FROM chunk WHERE run_id = ?", (run_id,))
            self._db.execute(COUNT_SHED)
            self._db.execute("UPDATE run SET document = ? WHERE run_id = ?", (encode(poorer), run_id))
        # What is free in the file goes back to the disk, which somebody else may have filled. As a script, for of the
        # vacuum execute() makes a single step, which frees a single page.
        self._db.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE);")
        _log.warning("run %s keeps its figures, but %s", run_id, why)
        return True
