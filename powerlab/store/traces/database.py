"""Traces as compressed chunks in the database: nothing to set up, right for a lab."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Part, Trace
from powerlab.protocol.chunks import check, check_digest, samples_of
from powerlab.protocol.messages import TraceChunk
from powerlab.store.reads.convert import to_rail
from powerlab.store.reads.decimate import Bucket, decimate
from powerlab.store.tables import TraceChunkRow
from powerlab.store.traces.base import FOREVER_NS, Piece, Samples, cut, whole
from powerlab.store.traces.rows import add_rows, new_row, rows_of

_CHUNKS = 4
"""Chunks fetched at a time where a run's are streamed; each is up to a megabyte."""


class DatabaseTraceStore:
    """Chunks as rows of the ``trace_chunk`` table, samples included."""

    def append(self, session: Session, device_id: str, run_id: str, chunks: Sequence[TraceChunk]) -> int:
        """Store chunks; see :class:`~powerlab.store.traces.base.TraceStore`."""
        rows = []
        for chunk in chunks:
            payload = check(chunk)
            row = new_row(session, device_id, run_id, chunk)
            if row is not None:
                rows.append(row | {"payload": payload})
        return add_rows(session, rows)

    def window(self, session: Session, run_id: str, start_ns: int, end_ns: int) -> Iterator[Trace]:
        """Yield the part of each rail's trace that lies in a window; chunks outside it are not read."""
        rows = session.scalars(rows_of(run_id, start_ns, end_ns))
        return cut(whole(map(piece_of, rows)), start_ns, end_ns)

    def decimate(
        self,
        session: Session,
        run_id: str,
        points: int,
        bucket: Bucket,
        *,
        start_ns: int | None = None,
        end_ns: int | None = None,
    ) -> Iterator[Trace]:
        """Yield each rail's trace with at most that many points, of a window where one is given."""
        first, last = 0 if start_ns is None else start_ns, FOREVER_NS if end_ns is None else end_ns
        return (decimate(trace, points, bucket) for trace in self.window(session, run_id, first, last))

    def scan(self, session: Session, run_id: str) -> Iterator[Piece]:
        """Yield everything, a few pieces in memory at a time."""
        return map(piece_of, session.scalars(rows_of(run_id).execution_options(yield_per=_CHUNKS)))


def piece_of(row: TraceChunkRow) -> Piece:
    """Return what a row holds.

    Raises:
        PowerlabError: the samples lie elsewhere.
    """
    if row.payload is None:
        raise PowerlabError(
            f"the samples of run {row.run_id} were moved out of the database; say where to with --traces or "
            "POWERLAB_TRACES."
        )
    return Piece(
        rail=to_rail(row.rail),
        part=Part(row.part),
        position=row.position,
        read_cost_ns=row.read_cost_ns,
        samples=partial(_samples, row, row.payload),
    )


def _samples(row: TraceChunkRow, payload: bytes) -> Samples:
    check_digest(payload, row.sha256)
    return samples_of(row, payload, row.codec)
