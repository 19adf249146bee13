"""Index of a device's rails and a run's stored chunks, read once per transaction.

An upload brings a run's chunks, twenty and more, together. Nobody else adds to that run meanwhile: whoever does holds
the lock of its sweep's job (:func:`powerlab.store.writes.jobs.held_job_of_sweep`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.domain.power import Rail
from powerlab.protocol.messages import TraceChunk
from powerlab.store.errors import ConflictError
from powerlab.store.tables import RailRow, RunRow, TraceChunkRow

_SAID = (
    *("source", "name", "quantity", "resolution", "relative_error", "update_period_s", "provenance", "offset"),
    *("lag_s", "lag_error_s", "seen_share"),
)


@dataclass(slots=True)
class ChunkPlaces:
    """One run's: when it arrived, its device's rails by what they say of themselves, the SHA-256 of what is where."""

    session: Session
    device_id: str
    run_id: str
    received_at: datetime
    rails: dict[tuple[object, ...], int]
    taken: dict[tuple[int, str, int], str]

    def take(self, chunk: TraceChunk) -> int | None:
        """Return the rail's id for a new chunk, whose place is taken from now on; None where it is stored already.

        Raises:
            ConflictError: other bytes were stored in its place before.
        """
        rail_id = self._rail_id(chunk.rail)
        place = (rail_id, chunk.part.value, chunk.position)
        before = self.taken.get(place)
        if before is None:
            self.taken[place] = chunk.sha256
            return rail_id
        if before != chunk.sha256:
            raise ConflictError(
                f"chunk {chunk.position} of {chunk.rail.key} of run {self.run_id} was uploaded before with other "
                "bytes; the first upload is kept."
            )
        return None

    def _rail_id(self, rail: Rail) -> int:
        """Return the id of a rail; one that says something else of itself than before is a new row."""
        said = tuple(getattr(rail, name) for name in _SAID)
        if said not in self.rails:
            row = RailRow(device_id=self.device_id, **dict(zip(_SAID, map(_plain, said), strict=True)))
            self.session.add(row)
            self.session.flush()
            self.rails[said] = row.id
        return self.rails[said]


def places_of(session: Session, device_id: str, run_id: str) -> ChunkPlaces:
    """Return a run's places as this session's transaction, which holds its job, knows them."""
    known: dict[str, ChunkPlaces] = session.info.setdefault("chunk_places", {})
    if run_id not in known:
        columns = (getattr(RailRow, name) for name in _SAID)
        rails = session.execute(select(RailRow.id, *columns).where(RailRow.device_id == device_id))
        received_at = session.execute(select(RunRow.received_at).where(RunRow.id == run_id)).scalar_one()
        chunks = session.execute(
            select(TraceChunkRow.rail_id, TraceChunkRow.part, TraceChunkRow.position, TraceChunkRow.sha256).where(
                TraceChunkRow.received_at == received_at, TraceChunkRow.run_id == run_id
            )
        )
        known[run_id] = ChunkPlaces(
            session,
            device_id,
            run_id,
            received_at,
            rails={tuple(said): rail_id for rail_id, *said in rails},
            taken={(rail_id, part, position): sha256 for rail_id, part, position, sha256 in chunks},
        )
    return known[run_id]


def _plain(value: object) -> object:
    """Return what a column holds of a word that is one of an enumeration."""
    return getattr(value, "value", value)
