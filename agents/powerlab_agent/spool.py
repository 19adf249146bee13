"""What was measured, on disk until the server has it; and which job the agent holds.

SQLite with ``synchronous = FULL``: when :meth:`Spool.add` returns, the run survives a power cut.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import Lease, TraceChunk
from powerlab.protocol.wire import decode, encode
from powerlab.sweep.events import RunFinished

_TABLES = """
CREATE TABLE IF NOT EXISTS lease (id INTEGER PRIMARY KEY CHECK (id = 1), document BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS run (
    number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, sweep_id TEXT NOT NULL, fencing_token INTEGER NOT NULL,
    document BLOB NOT NULL, refusal TEXT);
CREATE TABLE IF NOT EXISTS chunk (
    number INTEGER PRIMARY KEY, run_id TEXT NOT NULL REFERENCES run (run_id) ON DELETE CASCADE, document BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS done (
    sweep_id TEXT NOT NULL, point_id TEXT NOT NULL, repeat INTEGER NOT NULL, PRIMARY KEY (sweep_id, point_id, repeat));
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """A run that the server does not have yet."""

    run: Run
    fencing_token: int
    chunks: tuple[TraceChunk, ...]


class Spool:
    """The spool in one file; used by one thread."""

    def __init__(self, path: Path) -> None:
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
                self._db.execute(f"PRAGMA {pragma}")
            self._db.executescript(_TABLES)
        except sqlite3.Error as error:
            raise PowerlabError(
                f"the agent's spool {path} cannot be used ({error}); mend or move that file, it may hold runs."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def hold(self, lease: Lease) -> None:
        """Remember the job, so that a restarted agent goes on with it."""
        self._db.execute("INSERT OR REPLACE INTO lease VALUES (1, ?)", (encode(lease),))

    def held(self) -> Lease | None:
        """Return the remembered job."""
        row = self._db.execute("SELECT document FROM lease").fetchone()
        return None if row is None else decode(row[0], Lease)

    def let_go(self) -> None:
        """Forget the job."""
        self._db.execute("DELETE FROM lease")

    def add(self, event: RunFinished, fencing_token: int) -> tuple[str, ...]:
        """Put a run and its traces on disk, whole or not at all; returns why a trace had to be left out.

        Raises:
            PowerlabError: the run holds a figure that is not finite.
        """
        run = event.run
        decode(encode(run), Run)
        chunks: list[TraceChunk] = []
        complaints: list[str] = []
        for trace in event.traces:
            try:
                chunks.extend(split(trace))
            except PowerlabError as error:
                complaints.append(str(error))
        self._db.execute("BEGIN IMMEDIATE")
        with self._db:
            self._db.execute(
                "INSERT INTO run (run_id, sweep_id, fencing_token, document) VALUES (?, ?, ?, ?)",
                (run.id, run.sweep_id, fencing_token, encode(run)),
            )
            self._db.executemany(
                "INSERT INTO chunk (run_id, document) VALUES (?, ?)", [(run.id, encode(chunk)) for chunk in chunks]
            )
            self._db.execute("INSERT INTO done VALUES (?, ?, ?)", (run.sweep_id, run.point.id, run.repeat))
        return tuple(complaints)

    def next(self) -> Spooled | None:
        """Return the oldest run that waits for its upload."""
        row = self._db.execute(
            "SELECT run_id, document, fencing_token FROM run WHERE refusal IS NULL ORDER BY number LIMIT 1"
        ).fetchone()
        if row is None:
            return None
        chunks = self._db.execute("SELECT document FROM chunk WHERE run_id = ? ORDER BY number", (row[0],))
        return Spooled(
            run=decode(row[1], Run),
            fencing_token=row[2],
            chunks=tuple(decode(document, TraceChunk) for (document,) in chunks),
        )

    def remove(self, run_id: str) -> None:
        """Drop a run that the server has."""
        self._db.execute("DELETE FROM run WHERE run_id = ?", (run_id,))

    def set_aside(self, run_id: str, reason: str) -> None:
        """Keep a run that the server refuses: it is not sent again, and not lost either."""
        self._db.execute("UPDATE run SET refusal = ? WHERE run_id = ?", (reason, run_id))

    def refused(self) -> dict[str, str]:
        """Return the reasons of the runs set aside, by run."""
        return dict(self._db.execute("SELECT run_id, refusal FROM run WHERE refusal IS NOT NULL"))

    def done(self, sweep_id: str) -> frozenset[tuple[str, int]]:
        """Return the (point id, repeat) of a sweep that were measured here, uploaded or not."""
        return frozenset(self._db.execute("SELECT point_id, repeat FROM done WHERE sweep_id = ?", (sweep_id,)))

    def forget_done(self, sweep_id: str) -> None:
        """Drop the ledger of a sweep that is over."""
        self._db.execute("DELETE FROM done WHERE sweep_id = ?", (sweep_id,))
