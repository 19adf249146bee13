"""Rows of the ``trace_chunk`` table, which every trace store keeps: what is known of each chunk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, insert, select
from sqlalchemy.orm import Session, joinedload

from powerlab.protocol.messages import TraceChunk
from powerlab.store.tables import RailRow, RunRow, TraceChunkRow
from powerlab.store.traces.index import places_of

_SAID = (
    *("position", "read_cost_ns", "t_first_ns", "t_last_ns", "sample_count"),
    *("value_min", "value_max", "value_sum", "codec", "sha256"),
)


def new_row(session: Session, device_id: str, run_id: str, chunk: TraceChunk) -> dict[str, Any] | None:
    """Return a row for a chunk, without its samples, for :func:`add_rows`; None where it is stored already.

    Raises:
        ConflictError: other bytes were stored in its place before.
    """
    places = places_of(session, device_id, run_id)
    rail_id = places.take(chunk)
    if rail_id is None:
        return None
    place = {"run_id": run_id, "received_at": places.received_at, "rail_id": rail_id, "part": chunk.part.value}
    return place | {"payload": None, "uri": None} | {name: getattr(chunk, name) for name in _SAID}


def add_rows(session: Session, rows: Sequence[dict[str, Any]]) -> int:
    """Write rows, all in one go and none as an object, for nobody looks at them here; returns how many samples."""
    if rows:
        session.connection().execute(insert(TraceChunkRow), rows)
    return sum(row["sample_count"] for row in rows)


def of_run(run_id: str) -> ColumnElement[bool]:
    """Say which chunks are a run's: also when it arrived, for that leads to its month and begins the index."""
    received_at = select(RunRow.received_at).where(RunRow.id == run_id).scalar_subquery()
    return and_(TraceChunkRow.received_at == received_at, TraceChunkRow.run_id == run_id)


def rows_of(run_id: str, start_ns: int | None = None, end_ns: int | None = None) -> Select[TraceChunkRow]:
    """Ask for a run's chunks, those that reach into a window where one is given, in the order of their samples."""
    wanted = (
        select(TraceChunkRow)
        .join(TraceChunkRow.rail)
        .where(of_run(run_id))
        .options(joinedload(TraceChunkRow.rail))
        .order_by(RailRow.source, RailRow.name, RailRow.id, TraceChunkRow.part, TraceChunkRow.position)
    )
    if start_ns is not None:
        wanted = wanted.where(TraceChunkRow.t_last_ns >= start_ns)
    if end_ns is not None:
        wanted = wanted.where(TraceChunkRow.t_first_ns <= end_ns)
    return wanted
