"""On-disk queue of results until the server has them, and the job the agent holds.

SQLite with ``synchronous = FULL``: when :meth:`Spool.add` returns, the run survives a power cut. Traces that do not fit
any more are shed, as :mod:`~powerlab_agent.shedding` says; a run itself never is.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from powerlab.analysis.summary import searched_figures
from powerlab.domain.errors import PowerlabError
from powerlab.domain.order import Done
from powerlab.domain.run import Run
from powerlab.protocol.messages import Lease, TraceChunk
from powerlab.protocol.wire import decode, encode
from powerlab.sweep.events import RunFinished
from powerlab_agent.reboot_step import RebootStep
from powerlab_agent.room import Limits, SpoolUnwritableError
from powerlab_agent.shedding import BECAUSE_FULL, COUNT_SHED, Shedding, without_traces

_TABLES = (
    "CREATE TABLE IF NOT EXISTS lease (id INTEGER PRIMARY KEY CHECK (id = 1), document BLOB NOT NULL)",
    """CREATE TABLE IF NOT EXISTS run (
    number INTEGER PRIMARY KEY, run_id TEXT NOT NULL UNIQUE, sweep_id TEXT NOT NULL, fencing_token INTEGER NOT NULL,
    document BLOB NOT NULL, refusal TEXT)""",
    """CREATE TABLE IF NOT EXISTS chunk (
    number INTEGER PRIMARY KEY, run_id TEXT NOT NULL REFERENCES run (run_id) ON DELETE CASCADE,
    document BLOB NOT NULL)""",
    """CREATE TABLE IF NOT EXISTS done (
    sweep_id TEXT NOT NULL, point_id TEXT NOT NULL, repeat INTEGER NOT NULL,
    PRIMARY KEY (sweep_id, point_id, repeat))""",
    "CREATE TABLE IF NOT EXISTS reboot (id INTEGER PRIMARY KEY CHECK (id = 1), document BLOB NOT NULL)",
)
_SINCE_VERSION_1 = (
    "ALTER TABLE run ADD COLUMN begun INTEGER NOT NULL DEFAULT 0",
    "ALTER TABLE run ADD COLUMN refusal_kind TEXT",
    "CREATE INDEX ix_chunk_run_id ON chunk (run_id)",
    "PRAGMA user_version = 1",
)
_SINCE_VERSION_2 = (
    "ALTER TABLE run ADD COLUMN added_at REAL",
    "CREATE TABLE shed (id INTEGER PRIMARY KEY CHECK (id = 1), runs INTEGER NOT NULL)",
    "INSERT INTO shed VALUES (1, 0)",
    "PRAGMA user_version = 2",
)
_SINCE_VERSION_3 = ("ALTER TABLE done ADD COLUMN figures BLOB", "PRAGMA user_version = 3")
_LOG_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """A run that the server does not have whole, and the numbers of the chunks that it does not have."""

    run: Run
    fencing_token: int
    chunks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """A run that the server did not take: the last part of the problem's type, and the reason in words."""

    sweep_id: str
    kind: str
    reason: str


class Spool:
    """The spool in one file; used by one thread.

    Every method that writes raises SpoolUnwritableError where the disk is full; what was there is there still.
    """

    def __init__(self, path: Path, limits: Limits | None = None) -> None:
        self._path = path
        try:
            self._db = sqlite3.connect(path, isolation_level=None)
            for pragma in (
                "auto_vacuum = INCREMENTAL",
                "journal_mode = WAL",
                "synchronous = FULL",
                "foreign_keys = ON",
                f"journal_size_limit = {_LOG_BYTES}",
            ):
                self._db.execute(f"PRAGMA {pragma}")
            with self._transaction():
                for statement in _TABLES:
                    self._db.execute(statement)
                version = self._db.execute("PRAGMA user_version").fetchone()[0]
                for number, statements in enumerate((_SINCE_VERSION_1, _SINCE_VERSION_2, _SINCE_VERSION_3), start=1):
                    for statement in statements if version < number else ():
                        self._db.execute(statement)
        except (sqlite3.Error, SpoolUnwritableError) as error:
            raise PowerlabError(
                f"the agent's spool {path} cannot be used ({error}); fix or move that file, it may hold runs."
            ) from error
        self._shedding = Shedding(self._db, path, limits or Limits())

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def hold(self, lease: Lease) -> None:
        """Remember the job, so that a restarted agent goes on with it.

        Runs of its sweep that were refused under an older lease will be sent again; what was done for sweeps of which
        nothing waits here is forgotten, for their leases will say it.
        """
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO lease VALUES (1, ?)", (encode(lease),))
            self._db.execute("UPDATE run SET refusal = NULL, refusal_kind = NULL WHERE sweep_id = ?", (lease.sweep_id,))
            self._db.execute(
                "DELETE FROM done WHERE sweep_id <> ? AND sweep_id NOT IN (SELECT sweep_id FROM run)",
                (lease.sweep_id,),
            )

    def held(self) -> Lease | None:
        """Return the remembered job."""
        row = self._db.execute("SELECT document FROM lease").fetchone()
        return None if row is None else decode(row[0], Lease)

    def let_go(self) -> None:
        """Forget the job."""
        self._write("DELETE FROM lease")

    def keep_reboot(self, step: RebootStep) -> None:
        """Remember a reboot before it is asked for, so that the next boot knows what to do and the way back."""
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO reboot VALUES (1, ?)", (encode(step),))

    def reboot(self) -> RebootStep | None:
        """Return the reboot that the device is on, or has not come back from."""
        row = self._db.execute("SELECT document FROM reboot").fetchone()
        return None if row is None else decode(row[0], RebootStep)

    def forget_reboot(self) -> None:
        """Forget it: the device is as it was."""
        self._write("DELETE FROM reboot")

    def add(self, event: RunFinished, fencing_token: int) -> tuple[str, ...]:
        """Put a run and its traces on disk, whole or not at all; returns why a trace had to be left out.

        Raises:
            PowerlabError: the run holds a figure that is not finite.
            SpoolUnwritableError: there is no room even for the run without its traces; nothing of it is written.
        """
        from powerlab.protocol.chunks import split

        decode(encode(event.run), Run)
        chunks: list[bytes] = []
        complaints: list[str] = []
        for trace in event.traces:
            try:
                chunks.extend(encode(chunk) for chunk in split(trace))
            except PowerlabError as error:
                complaints.append(str(error))
        if why := self._add_whole(event.run, fencing_token, chunks):
            poorer = without_traces(event.run, len(chunks), sum(map(len, chunks)), why)
            self._add(poorer, fencing_token, (), shed=True)
            complaints.append(poorer.conditions.traces_shed if poorer.conditions else why)
        return tuple(complaints)

    def _add_whole(self, run: Run, fencing_token: int, chunks: Sequence[bytes]) -> str:
        """Add a run with its traces; returns why they did not fit, and nothing was added."""
        try:
            if chunks and (why := self._shedding.make_room(sum(map(len, chunks)))):
                return why
            self._add(run, fencing_token, chunks)
        except (sqlite3.OperationalError, SpoolUnwritableError):
            if not chunks:
                raise
            return BECAUSE_FULL
        return ""

    def _add(self, run: Run, fencing_token: int, chunks: Sequence[bytes], *, shed: bool = False) -> None:
        with self._transaction():
            self._db.execute(
                "INSERT INTO run (run_id, sweep_id, fencing_token, document, added_at) VALUES (?, ?, ?, ?, ?)",
                (run.id, run.sweep_id, fencing_token, encode(run), time.time()),
            )
            if shed:
                self._db.execute(COUNT_SHED)
            self._db.executemany(
                "INSERT INTO chunk (run_id, document) VALUES (?, ?)", [(run.id, one) for one in chunks]
            )
            self._db.execute(
                "INSERT INTO done (sweep_id, point_id, repeat, figures) VALUES (?, ?, ?, ?)",
                (run.sweep_id, run.point.id, run.repeat, encode(searched_figures(run))),
            )

    def next(self) -> Spooled | None:
        """Return the oldest run that waits for its upload."""
        row = self._db.execute(
            "SELECT run_id, document, fencing_token FROM run WHERE refusal IS NULL ORDER BY number LIMIT 1"
        ).fetchone()
        if row is None:
            return None
        chunks = self._db.execute("SELECT number FROM chunk WHERE run_id = ? ORDER BY number", (row[0],))
        return Spooled(run=decode(row[1], Run), fencing_token=row[2], chunks=tuple(number for (number,) in chunks))

    def chunk(self, number: int) -> TraceChunk:
        """Return a chunk of a spooled run."""
        (document,) = self._db.execute("SELECT document FROM chunk WHERE number = ?", (number,)).fetchone()
        return decode(document, TraceChunk)

    def begin(self, run_id: str) -> None:
        """Note that a run is about to be sent: what the server may have seen is not changed any more."""
        self._write("UPDATE run SET begun = 1 WHERE run_id = ? AND begun = 0", run_id)

    def sent(self, chunks: Iterable[int]) -> None:
        """Drop chunks that the server has, of a run that it does not have whole."""
        with self._transaction():
            self._db.executemany("DELETE FROM chunk WHERE number = ?", [(number,) for number in chunks])

    def remove(self, run_id: str) -> None:
        """Drop a run that the server has."""
        self._write("DELETE FROM run WHERE run_id = ?", run_id)

    def set_aside(self, run_id: str, kind: str, reason: str) -> None:
        """Keep a run that the server refuses: it waits until its sweep is given to this agent again, if ever."""
        self._write("UPDATE run SET refusal = ?, refusal_kind = ?, begun = 0 WHERE run_id = ?", reason, kind, run_id)

    def refused(self) -> dict[str, Refused]:
        """Return the runs set aside, by run."""
        rows = self._db.execute("SELECT run_id, sweep_id, refusal_kind, refusal FROM run WHERE refusal IS NOT NULL")
        return {
            run_id: Refused(sweep_id=sweep_id, kind=kind or "", reason=reason)
            for run_id, sweep_id, kind, reason in rows
        }

    def done(self, sweep_id: str) -> Done:
        """Return the runs of a sweep that were measured here, uploaded or not; those of an older agent lack figures."""
        rows = self._db.execute("SELECT point_id, repeat, figures FROM done WHERE sweep_id = ?", (sweep_id,))
        return {
            (point_id, repeat): {} if figures is None else decode(figures, dict[str, float])
            for point_id, repeat, figures in rows
        }

    def forget_done(self, sweep_id: str) -> None:
        """Drop the ledger of a sweep that is over."""
        self._write("DELETE FROM done WHERE sweep_id = ?", sweep_id)

    def _write(self, statement: str, *values: str) -> None:
        with self._transaction():
            self._db.execute(statement, values)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Do all that follows, or nothing."""
        try:
            self._db.execute("BEGIN IMMEDIATE")
            with self._db:
                yield
        except sqlite3.OperationalError as error:
            raise SpoolUnwritableError(
                f"the agent's spool {self._path} cannot be written ({error}); free some space on its disk."
            ) from error
