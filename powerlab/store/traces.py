"""Where power traces lie. Today: compressed chunks in the database; the four methods are all that callers use."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import groupby
from typing import Protocol

import numpy as np
from sqlalchemy import Select, select
from sqlalchemy.orm import Session, joinedload

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Part, Rail, Trace
from powerlab.protocol.chunks import check, join
from powerlab.protocol.messages import TraceChunk
from powerlab.store.convert import to_rail
from powerlab.store.decimate import Bucket, decimate
from powerlab.store.errors import ConflictError
from powerlab.store.models import RailRow, TraceChunkRow

_FOREVER_NS = 2**63 - 1
_CHUNKS = 4
"""Chunks fetched at a time where a run's are streamed; each is up to a megabyte."""


class TraceStore(Protocol):
    """A home for traces."""

    def append(self, device_id: str, run_id: str, chunk: TraceChunk) -> bool:
        """Store a chunk; False where the same bytes are there already."""
        ...

    def window(self, run_id: str, start_ns: int, end_ns: int) -> Iterator[Trace]:
        """Yield the part of each rail's trace that lies in a window, both ends included."""
        ...

    def decimate(
        self, run_id: str, points: int, bucket: Bucket, start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[Trace]:
        """Yield each rail's trace with at most that many points, of a window where one is given."""
        ...

    def scan(self, run_id: str) -> Iterator[Trace]:
        """Yield each rail's trace, whole."""
        ...


class DatabaseTraces:
    """Chunks as rows of the ``trace_chunk`` table."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def append(self, device_id: str, run_id: str, chunk: TraceChunk) -> bool:
        """Store a chunk; False where the same bytes are there already.

        Raises:
            PowerlabError: the chunk is damaged.
            ConflictError: other bytes were stored in its place before.
        """
        payload = check(chunk)
        rail = self._rail(device_id, chunk.rail)
        place = (
            *(TraceChunkRow.run_id == run_id, TraceChunkRow.rail_id == rail.id),
            *(TraceChunkRow.part == chunk.part.value, TraceChunkRow.position == chunk.position),
        )
        before = self._session.scalar(select(TraceChunkRow).where(*place))
        if before is not None:
            if before.sha256 != chunk.sha256:
                raise ConflictError(
                    f"chunk {chunk.position} of {chunk.rail.key} of run {run_id} was uploaded before with other bytes; "
                    "the first upload stays."
                )
            return False
        row = TraceChunkRow(run_id=run_id, rail_id=rail.id, part=chunk.part.value, payload=payload)
        for name in (
            *("position", "read_cost_ns", "t_first_ns", "t_last_ns", "sample_count"),
            *("value_min", "value_max", "value_sum", "codec", "sha256"),
        ):
            setattr(row, name, getattr(chunk, name))
        self._session.add(row)
        return True

    def window(self, run_id: str, start_ns: int, end_ns: int) -> Iterator[Trace]:
        """Yield the part of each rail's trace that lies in a window; chunks outside it are not read."""
        for trace in self._traces(run_id, start_ns, end_ns):
            inside = (trace.time_ns >= start_ns) & (trace.time_ns <= end_ns)
            if np.any(inside):
                yield Trace(
                    rail=trace.rail,
                    time_ns=trace.time_ns[inside],
                    value=trace.value[inside],
                    read_cost_ns=trace.read_cost_ns,
                    part=trace.part,
                )

    def decimate(
        self, run_id: str, points: int, bucket: Bucket, start_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[Trace]:
        """Yield each rail's trace with at most that many points, of a window where one is given."""
        first, last = 0 if start_ns is None else start_ns, _FOREVER_NS if end_ns is None else end_ns
        return (decimate(trace, points, bucket) for trace in self.window(run_id, first, last))

    def scan(self, run_id: str) -> Iterator[Trace]:
        """Yield each rail's trace, whole."""
        return self._traces(run_id)

    def chunks(self, run_id: str) -> Iterator[TraceChunk]:
        """Yield every chunk of a run as it was sent, each trace's in their order; nothing is checked.

        Raises:
            PowerlabError: the samples were moved away.
        """
        rows = self._rows(run_id).execution_options(yield_per=_CHUNKS)
        return (_to_chunk(row) for row in self._session.scalars(rows))

    def _rows(self, run_id: str) -> Select[TraceChunkRow]:
        return (
            select(TraceChunkRow)
            .join(TraceChunkRow.rail)
            .where(TraceChunkRow.run_id == run_id)
            .options(joinedload(TraceChunkRow.rail))
            .order_by(RailRow.source, RailRow.name, RailRow.id, TraceChunkRow.part, TraceChunkRow.position)
        )

    def _traces(self, run_id: str, start_ns: int | None = None, end_ns: int | None = None) -> Iterator[Trace]:
        wanted = self._rows(run_id)
        if start_ns is not None:
            wanted = wanted.where(TraceChunkRow.t_last_ns >= start_ns)
        if end_ns is not None:
            wanted = wanted.where(TraceChunkRow.t_first_ns <= end_ns)
        for _, rows in groupby(self._session.scalars(wanted), key=lambda row: (row.rail_id, row.part)):
            yield join([_to_chunk(row) for row in rows])

    def _rail(self, device_id: str, rail: Rail) -> RailRow:
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
        row = self._session.scalar(select(RailRow).filter_by(**said))
        if row is None:
            row = RailRow(**said)
            self._session.add(row)
            self._session.flush()
        return row


def _to_chunk(row: TraceChunkRow) -> TraceChunk:
    if row.payload is None:
        raise PowerlabError(f"the samples of run {row.run_id} were moved to {row.uri}, which cannot be read from here.")
    return TraceChunk(
        rail=to_rail(row.rail),
        position=row.position,
        read_cost_ns=row.read_cost_ns,
        t_first_ns=row.t_first_ns,
        t_last_ns=row.t_last_ns,
        sample_count=row.sample_count,
        value_min=row.value_min,
        value_max=row.value_max,
        value_sum=row.value_sum,
        codec=row.codec,
        sha256=row.sha256,
        payload_base64=base64.b64encode(row.payload).decode("ascii"),
        part=Part(row.part),
    )
