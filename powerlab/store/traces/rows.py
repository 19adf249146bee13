"""The rows of the ``trace_chunk`` table, which every home of traces keeps: what is known of each chunk."""

from __future__ import annotations

from sqlalchemy import Select, select
from sqlalchemy.orm import Session, joinedload

from powerlab.domain.power import Rail
from powerlab.protocol.messages import TraceChunk
from powerlab.store.errors import ConflictError
from powerlab.store.models import RailRow, TraceChunkRow

_SAID = (
    *("position", "read_cost_ns", "t_first_ns", "t_last_ns", "sample_count"),
    *("value_min", "value_max", "value_sum", "codec", "sha256"),
)


def new_row(session: Session, device_id: str, run_id: str, chunk: TraceChunk) -> TraceChunkRow | None:
    """Return a row for a chunk, without its samples and not yet in the session; None where it is stored already.

    Raises:
        ConflictError: other bytes were stored in its place before.
    """
    rail = rail_row(session, device_id, chunk.rail)
    place = (
        *(TraceChunkRow.run_id == run_id, TraceChunkRow.rail_id == rail.id),
        *(TraceChunkRow.part == chunk.part.value, TraceChunkRow.position == chunk.position),
    )
    before = session.scalar(select(TraceChunkRow.sha256).where(*place))
    if before is None:
        row = TraceChunkRow(run_id=run_id, rail_id=rail.id, part=chunk.part.value)
        for name in _SAID:
            setattr(row, name, getattr(chunk, name))
        return row
    if before != chunk.sha256:
        raise ConflictError(
            f"chunk {chunk.position} of {chunk.rail.key} of run {run_id} was uploaded before with other bytes; "
            "the first upload stays."
        )
    return None


def rows_of(run_id: str, start_ns: int | None = None, end_ns: int | None = None) -> Select[TraceChunkRow]:
    """Ask for a run's chunks, those that reach into a window where one is given, in the order of their samples."""
    wanted = (
        select(TraceChunkRow)
        .join(TraceChunkRow.rail)
        .where(TraceChunkRow.run_id == run_id)
        .options(joinedload(TraceChunkRow.rail))
        .order_by(RailRow.source, RailRow.name, RailRow.id, TraceChunkRow.part, TraceChunkRow.position)
    )
    if start_ns is not None:
        wanted = wanted.where(TraceChunkRow.t_last_ns >= start_ns)
    if end_ns is not None:
        wanted = wanted.where(TraceChunkRow.t_first_ns <= end_ns)
    return wanted


def rail_row(session: Session, device_id: str, rail: Rail) -> RailRow:
    """Return a device's rail as it says of itself; one that says something else is a new row."""
    said = {
        "device_id": device_id,
        "source": rail.source,
        "name": rail.name,
        "quantity": rail.quantity.value,
        "resolution": rail.resolution,
        "relative_error": rail.relative_error,
        "update_period_s": rail.update_period_s,
        "provenance": rail.provenance.value,
        "offset": rail.offset,
        "lag_s": rail.lag_s,
        "lag_error_s": rail.lag_error_s,
    }
    row = session.scalar(select(RailRow).filter_by(**said))
    if row is None:
        row = RailRow(**said)
        session.add(row)
        session.flush()
    return row
