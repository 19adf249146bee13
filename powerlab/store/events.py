"""Events derived from changed rows: every write through ``Store.write`` records them, so none is forgotten.

A reader remembers the last id that it saw and asks for larger ones. That works only if a smaller id never becomes
visible after a larger one. PostgreSQL gives ids out when rows are inserted, not when they are committed; so the events
of a transaction are inserted as its very last statements, under a lock that is kept until the commit is visible
(https://www.postgresql.org/docs/current/explicit-locking.html, 13.3.5: a transaction's advisory lock is released at its
end). It can be part of no deadlock: after it a transaction waits for nothing but the rows its events refer to, devices,
sweeps and runs, which nobody locks for update or deletes. SQLite has one writer at a time anyway.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import insert, inspect, text
from sqlalchemy.orm import Session

from powerlab.protocol.events import EventKind
from powerlab.protocol.records import SweepState
from powerlab.store.tables import DeviceRow, EventRow, JobRow, RunRow, SweepRow

_LOCK_KEY = 0x706F7765_6576656E
"""PostgreSQL's advisory lock for the order of events: "poweeven" in ASCII."""
_NOTED = "powerlab_events"
_OF_STATE = {
    "queued": EventKind.SWEEP_QUEUED,
    "running": EventKind.SWEEP_STARTED,
    "paused": EventKind.SWEEP_PAUSED,
    "cancelled": EventKind.SWEEP_CANCELLED,
    "done": EventKind.SWEEP_FINISHED,
    "failed": EventKind.SWEEP_FAILED,
}


def note_changes(session: Session, _flush: object) -> None:
    """Note what a flush has just written; a listener of ``after_flush``, where old values are still known."""
    for row in session.new:
        if isinstance(row, SweepRow):
            _note(session, EventKind.SWEEP_CREATED, device_id=row.device_id, sweep_id=row.id)
        elif isinstance(row, RunRow):
            ids = {"device_id": row.device_id, "sweep_id": row.sweep_id, "run_id": row.id}
            _note(session, EventKind.RUN_STORED, detail=row.verdict, **ids)
        elif isinstance(row, DeviceRow):
            _note(session, EventKind.DEVICE_ENROLLED, device_id=row.id, detail=row.name)
    for row in session.dirty:
        if isinstance(row, JobRow) and (kind := _kind_of(row)) is not None:
            _note(session, kind, device_id=row.device_id, sweep_id=row.sweep_id, detail=row.detail)


def _kind_of(row: JobRow) -> EventKind | None:
    """Return what a change of a job's row is; a running one says in its detail what its device waits for."""
    changed = inspect(row).attrs
    if changed.state.history.has_changes():
        return _OF_STATE[row.state]
    waiting = row.state == SweepState.RUNNING.value and changed.detail.history.has_changes()
    return EventKind.SWEEP_WAITING if waiting else None


def note_device_seen(session: Session, device_id: str) -> None:
    """Note that a device's agent has started; that alone changes no row that says so."""
    _note(session, EventKind.DEVICE_SEEN, device_id=device_id)


def publish(session: Session, now: datetime) -> None:
    """Write down what was noted, as the last thing before the commit."""
    session.flush()
    noted: list[dict[str, Any]] = session.info.pop(_NOTED, [])
    if not noted:
        return
    if session.get_bind().dialect.name == "postgresql":
        session.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
    none = {"sweep_id": None, "run_id": None}
    # Row by row, in this order: their ids follow the order in which things happened.
    session.connection().execute(insert(EventRow), [{"at": now, **none, **one} for one in noted])


def _note(session: Session, kind: EventKind, *, detail: str = "", **ids: str) -> None:
    session.info.setdefault(_NOTED, []).append({"kind": kind.value, "detail": detail, **ids})
