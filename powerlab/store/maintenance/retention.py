"""Retention of traces, live events and the audit log: whole months are removed, and recorded before they are.

Runs with their figures stay for good. A run whose traces went says so (:mod:`powerlab.store.maintenance.retired`),
and a chunk of
it that comes late is not taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import ColumnElement, CursorResult, delete, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute

from powerlab.domain.errors import PowerlabError
from powerlab.store.connection import Store
from powerlab.store.maintenance.partitions import drop_months, month_of
from powerlab.store.tables import AuditEventRow, EventRow, RetirementRow, TraceChunkRow
from powerlab.store.tables.retirement import Kind
from powerlab.store.traces.database import DatabaseTraceStore
from powerlab.store.writes.audit import COMMAND_LINE, record

LONGEST = 1200
BATCH = 1000
"""Rows that are deleted in one transaction: others write in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """What went.

    Attributes:
        kind: of what.
        before: what is older than this is gone, UTC.
        row_count: chunks of traces, or events.
        file_count: files of traces.
    """

    kind: Kind
    before: datetime
    row_count: int
    file_count: int = 0


def check_months(months: int) -> None:
    """Raise PowerlabError where nothing can be kept for so many months."""
    if not 1 <= months <= LONGEST:
        raise PowerlabError(f"traces, events and the log are kept for 1 to {LONGEST} months, not {months}.")


def retire(store: Store, kind: Kind, months: int, *, by: str = COMMAND_LINE) -> Retired:
    """Remove what is older than so many whole months and the present one; what is left over goes the next time.

    Args:
        store: which database, and where its traces lie.
        kind: what goes.
        months: how many months are kept beside the present one, at least 1.
        by: who asks.

    Raises:
        PowerlabError: ``months`` is less than 1, or more than a hundred years.
        UnavailableError: files of traces cannot be reached.
        OperationalError: the database cannot be reached, or somebody reads a month for so long that it cannot go now.
    """
    check_months(months)
    now = store.clock()
    before = month_of(now, -months)
    row_count, file_count = {Kind.TRACES: _traces, Kind.EVENTS: _events, Kind.AUDIT: _audit}[kind](store, before, now)
    if row_count or file_count:
        with store.write() as session:
            record(session, now, by, f"retire {kind}", f"{before:%Y-%m-%d}", rows=row_count, files=file_count)
    return Retired(kind=kind, before=before, row_count=row_count, file_count=file_count)


def _traces(store: Store, before: datetime, now: datetime) -> tuple[int, int]:
    _write_down(store, Kind.TRACES, before, now)
    dropped = drop_months(store.engine, before)
    # All of them on SQLite; on PostgreSQL what lies in no month, among it what an upload brought just now.
    row_count = dropped + _delete(store, TraceChunkRow.id, TraceChunkRow.received_at < before)
    if isinstance(store.traces, DatabaseTraceStore):
        return row_count, 0
    from powerlab.store.traces.compaction import remove_months
    from powerlab.store.traces.parquet import ParquetTraceStore

    assert isinstance(store.traces, ParquetTraceStore)  # noqa: S101 - there are two kinds
    return row_count, remove_months(store, store.traces, before)


def _events(store: Store, before: datetime, now: datetime) -> tuple[int, int]:
    """Remove events up to a number, so that those which are kept have no gaps; the newest always stays.

    It carries the count: SQLite would begin again with the numbers of events that are gone.
    """
    with store.session() as session:
        newest = session.scalar(select(func.max(EventRow.id))) or 0
        kept = select(EventRow.id).where(EventRow.at >= before).order_by(EventRow.id).limit(1)
        first = session.scalar(kept) or newest
        last = session.scalar(select(func.max(EventRow.id)).where(EventRow.id < first)) or 0
    _write_down(store, Kind.EVENTS, before, now, last)
    return _delete(store, EventRow.id, EventRow.id <= last), 0


def _audit(store: Store, before: datetime, now: datetime) -> tuple[int, int]:
    _write_down(store, Kind.AUDIT, before, now)
    return _delete(store, AuditEventRow.id, AuditEventRow.at < before), 0


def _write_down(store: Store, kind: Kind, before: datetime, now: datetime, last_id: int = 0) -> None:
    """Say that something goes before it does: nobody shall look for what is half gone."""
    insert = postgresql.insert if store.engine.dialect.name == "postgresql" else sqlite.insert
    first = insert(RetirementRow).values(kind=kind.value, before=before, retired_at=now, last_id=last_id)
    with store.write() as session:
        session.execute(first.on_conflict_do_nothing())  # two servers may be the first
        row = session.get_one(RetirementRow, kind.value, with_for_update=True)
        if row.before < before or row.last_id < last_id:
            row.before, row.retired_at = max(row.before, before), now
            row.last_id = max(row.last_id, last_id)


def _delete(store: Store, key: InstrumentedAttribute[int], old: ColumnElement[bool]) -> int:
    """Delete a table's old rows, a thousand in a transaction; return how many."""
    some = select(key).where(old).limit(BATCH)
    gone = delete(key.class_).where(old, key.in_(some)).execution_options(synchronize_session=False)
    count = 0
    while True:
        with store.write() as session:
            found = cast("CursorResult[Any]", session.execute(gone)).rowcount
        count += found
        if found < BATCH:
            return count
