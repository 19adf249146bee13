"""Traces as Parquet files in a folder or object storage, for fleets that outgrow the database.

Every chunk that arrives becomes an object of its own, ``month=2026-11/device=ID/RANDOM.parquet``, which is never
changed; compaction (:mod:`powerlab.store.traces.compaction`) puts small ones together. The chunk's row in the database
stays, and its ``uri`` says ``KEY#FINGERPRINT``: which object, relative to the root, and the SHA-256 of the samples. So
the rows are the catalogue: what no row refers to is not there. The object is written before the row; a crash between
the two leaves an object that nobody refers to, and that compaction removes.
"""

from __future__ import annotations

import hmac
import re
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Part, Trace
from powerlab.protocol.chunks import check_summary, payload_of, samples_of
from powerlab.protocol.messages import TraceChunk
from powerlab.store.reads.convert import to_rail
from powerlab.store.reads.decimate import Bucket, decimate
from powerlab.store.tables import RunRow, ServerKeyRow, TraceChunkRow
from powerlab.store.traces.base import FOREVER_NS, Piece, Samples, cut, whole
from powerlab.store.traces.database import piece_of
from powerlab.store.traces.object_storage import Objects
from powerlab.store.traces.query_engines import QueryEngine
from powerlab.store.traces.rows import add_rows, new_row, rows_of
from powerlab.store.traces.sql import Wanted, decimated, samples
from powerlab.store.traces.table import Block, as_parquet, fingerprint, groups, table_of

_TOGETHER = 1 << 20
"""Samples that a scan reads at a time, or one chunk's where those are more."""
_FEW = 1 << 20
"""Samples that are sooner read and drawn together here than drawn together where they are read."""
_RUN_ID = re.compile(r"[0-9A-Za-z-]{1,36}")
_OWNER = "powerlab-database"
"""The object that says which database knows what lies here."""


class ParquetTraceStore:
    """Parquet files, and who answers questions about them; what is still in the database is read there."""

    def __init__(self, objects: Objects, engine: QueryEngine) -> None:
        self.objects = objects
        self._engine = engine
        self._claimed = False

    def append(self, session: Session, device_id: str, run_id: str, chunks: Sequence[TraceChunk]) -> int:
        """Store chunks; see :class:`~powerlab.store.traces.base.TraceStore`.

        Raises:
            UnavailableError: the storage cannot be reached.
        """
        rows = []
        for chunk in chunks:
            own = samples_of(chunk, payload_of(chunk), chunk.codec)
            row = new_row(session, device_id, run_id, chunk)
            if row is not None:
                block = Block(
                    run_id=run_id,
                    rail_id=row["rail_id"],
                    rail=chunk.rail,
                    part=chunk.part,
                    position=chunk.position,
                    samples=own,
                )
                rows.append(row | {"uri": self._put(session, device_id, block)})
        return add_rows(session, rows)

    def window(self, session: Session, run_id: str, start_ns: int, end_ns: int) -> Iterator[Trace]:
        """Yield the part of each rail's trace that lies in a window; files outside it are not read."""
        rows = session.scalars(rows_of(run_id, start_ns, end_ns)).all()
        if any(row.uri is None for row in rows):
            yield from cut(whole(self._pieces(rows)), start_ns, end_ns)
        elif rows:
            wanted = Wanted(run_id=run_id, start_ns=start_ns, end_ns=end_ns)
            yield from _traces(rows, self._engine.ask(_keys(rows), samples(wanted)))

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
        """Yield each rail's trace with at most that many points; of a long run only those leave the engine."""
        first, last = 0 if start_ns is None else start_ns, FOREVER_NS if end_ns is None else end_ns
        rows = session.scalars(rows_of(run_id, first, last)).all()
        if any(row.uri is None for row in rows) or sum(row.sample_count for row in rows) <= _FEW:
            yield from (decimate(trace, points, bucket) for trace in self.window(session, run_id, first, last))
        else:
            wanted = Wanted(run_id=run_id, start_ns=first, end_ns=last)
            yield from _traces(rows, self._engine.ask(_keys(rows), decimated(wanted, points, bucket)))

    def scan(self, session: Session, run_id: str) -> Iterator[Piece]:
        """Yield everything, about a million samples in memory at a time."""
        return self._pieces(session.scalars(rows_of(run_id)).all())

    def claim(self, session: Session) -> None:
        """Make sure that the files belong to this database, or make them its own where they are nobody's.

        Two databases on one folder would take each other's files for what a crash has left.

        Raises:
            PowerlabError: they are another database's.
            UnavailableError: the storage cannot be reached.
        """
        if self._claimed:
            return
        secret = bytes.fromhex(session.get_one(ServerKeyRow, "sessions").secret)
        own, found = hmac.digest(secret, b"traces", "sha256").hex().encode(), self.objects.get(_OWNER)
        if found is None:
            self.objects.put(_OWNER, own)
        elif found != own:
            raise PowerlabError(
                f"the traces at {self.objects.address} belong to another database; give each database a folder or "
                "prefix of its own."
            )
        self._claimed = True

    def _put(self, session: Session, device_id: str, block: Block) -> str:
        """Write a chunk's samples into an object of their own; returns what its row says of it."""
        self.claim(session)
        key = new_key(session, device_id, block.run_id)
        self.objects.put(key, as_parquet(table_of([block])))
        return f"{key}#{fingerprint(block.samples)}"

    def _pieces(self, rows: Sequence[TraceChunkRow]) -> Iterator[Piece]:
        for here, group in groupby(rows, key=lambda row: row.uri is None):
            if here:
                yield from map(piece_of, group)
                continue
            for some in _some(list(group)):
                yield from self._read(some)

    def _read(self, rows: Sequence[TraceChunkRow]) -> Iterator[Piece]:
        wanted = Wanted(
            run_id=rows[0].run_id,
            start_ns=min(row.t_first_ns for row in rows),
            end_ns=max(row.t_last_ns for row in rows),
            rail_ids=sorted({row.rail_id for row in rows}),
        )
        found = self._engine.ask(_keys(rows), samples(wanted))
        at, time_ns, value = _columns(found, "rail_id", "part", "position")
        for row in rows:
            own = at.get((row.rail_id, row.part, row.position), slice(0))
            yield Piece(
                rail=to_rail(row.rail),
                part=Part(row.part),
                position=row.position,
                read_cost_ns=row.read_cost_ns,
                samples=partial(_checked, row, (time_ns[own], value[own])),
            )


def new_key(session: Session, device_id: str, run_id: str) -> str:
    """Return the key of a new object, which no other one has or will have: it may be removed without fear.

    Raises:
        PowerlabError: the run's identifier is none that files can be searched for.
    """
    if not _RUN_ID.fullmatch(run_id):
        raise PowerlabError(f"the traces of run {run_id!r} cannot be kept in files; give runs UUIDs for identifiers.")
    month = session.get_one(RunRow, run_id).received_at
    return f"month={month:%Y-%m}/device={device_id}/{uuid.uuid4().hex}.parquet"


def key_of(uri: str) -> str:
    """Return the object that a row refers to."""
    return uri.partition("#")[0]


def _keys(rows: Sequence[TraceChunkRow]) -> list[str]:
    return sorted({key_of(row.uri) for row in rows if row.uri is not None})


def _some(rows: Sequence[TraceChunkRow]) -> Iterator[list[TraceChunkRow]]:
    """Yield rows in groups of not too many samples."""
    group: list[TraceChunkRow] = []
    for row in rows:
        if group and sum(one.sample_count for one in group) + row.sample_count > _TOGETHER:
            yield group
            group = []
        group.append(row)
    yield group


def _checked(row: TraceChunkRow, own: Samples) -> Samples:
    if row.uri is None or len(own[0]) != row.sample_count or fingerprint(own) != row.uri.partition("#")[2]:
        raise PowerlabError(f"the samples in {key_of(row.uri or '')} are not those that were stored; restore the file.")
    check_summary(row, *own)
    return own


def _traces(rows: Sequence[TraceChunkRow], found: pa.Table) -> Iterator[Trace]:
    """Cut an answer into traces, in the order of the rows."""
    at, time_ns, value = _columns(found, "rail_id", "part")
    for key, group in groupby(rows, key=lambda row: (row.rail_id, row.part)):
        row = next(group)
        if key in at:
            yield Trace(
                rail=to_rail(row.rail),
                time_ns=time_ns[at[key]],
                value=value[at[key]],
                read_cost_ns=row.read_cost_ns,
                part=Part(row.part),
            )


def _columns(
    found: pa.Table, *names: str
) -> tuple[dict[tuple[Any, ...], slice], NDArray[np.int64], NDArray[np.float64]]:
    """Return where in an answer each combination of some columns is, its times and its values, which come last."""
    return groups(found, names), found.column(-2).to_numpy(), found.column(-1).to_numpy()
