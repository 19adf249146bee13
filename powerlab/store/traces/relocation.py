"""Move traces from the database to files, run by run; safe to interrupt and repeat."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session, joinedload

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Part
from powerlab.store.connection import Store
from powerlab.store.errors import UnavailableError
from powerlab.store.reads.convert import to_rail
from powerlab.store.tables import RunRow, SweepRow, TraceChunkRow
from powerlab.store.traces.database import piece_of
from powerlab.store.traces.parquet import ParquetTraceStore, new_key
from powerlab.store.traces.rows import of_run
from powerlab.store.traces.table import Block, as_parquet, blocks_in, fingerprint, parquet_of, table_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What became of a run's samples: how many chunks, their bytes before and after, and why not, where not."""

    run_id: str
    chunk_count: int = 0
    sample_count: int = 0
    before_bytes: int = 0
    after_bytes: int = 0
    complaint: str = ""


def move(store: Store, home: ParquetTraceStore) -> Iterator[Moved]:
    """Move the samples of every run whose samples are in the database, and tell of each.

    A run's file is written and read back, every chunk is held against its SHA-256 before and its fingerprint after, and
    then one transaction lets the rows refer to the file. A run with a damaged chunk stays where it is.

    Raises:
        UnavailableError: the storage cannot be reached.
        PowerlabError: the files belong to another database.
    """
    with store.session() as session:
        home.claim(session)
    run: tuple[datetime, str] | None = None
    while (run := _next(store, run)) is not None:
        yield _move(store, home, run[1])


def _next(store: Store, after: tuple[datetime, str] | None) -> tuple[datetime, str] | None:
    """Return when the next run arrived whose samples are here, and its identifier; None behind the last one."""
    place = (TraceChunkRow.received_at, TraceChunkRow.run_id)
    wanted = select(*place).where(TraceChunkRow.payload.is_not(None)).order_by(*place).limit(1)
    if after is not None:
        wanted = wanted.where(tuple_(*place) > after)
    with store.session() as session:
        found = session.execute(wanted).one_or_none()
        return None if found is None else (found.received_at, found.run_id)


def _move(store: Store, home: ParquetTraceStore, run_id: str) -> Moved:
    with store.write() as session:
        wanted = select(TraceChunkRow).where(of_run(run_id), TraceChunkRow.payload.is_not(None))
        order = (TraceChunkRow.rail_id, TraceChunkRow.part, TraceChunkRow.position)
        rows = session.scalars(wanted.options(joinedload(TraceChunkRow.rail)).order_by(*order)).all()
        before = sum(len(row.payload or b"") for row in rows)
        try:
            blocks = [_block(row) for row in rows]
            key = new_key(session, _device_of(session, run_id), run_id)
        except UnavailableError:
            raise
        except PowerlabError as error:
            return Moved(run_id=run_id, chunk_count=len(rows), complaint=str(error))
        content = as_parquet(table_of(blocks), for_good=True)
        home.objects.put(key, content)
        _check(home, key, blocks)
        for row, block in zip(rows, blocks, strict=True):
            row.payload, row.uri = None, f"{key}#{fingerprint(block.samples)}"
        return Moved(
            run_id=run_id,
            chunk_count=len(rows),
            sample_count=sum(row.sample_count for row in rows),
            before_bytes=before,
            after_bytes=len(content),
        )


def _block(row: TraceChunkRow) -> Block:
    return Block(
        run_id=row.run_id,
        rail_id=row.rail_id,
        rail=to_rail(row.rail),
        part=Part(row.part),
        position=row.position,
        samples=piece_of(row).samples(),
    )


def _device_of(session: Session, run_id: str) -> str:
    sweep_id = session.get_one(RunRow, run_id).sweep_id
    return session.get_one(SweepRow, sweep_id).device_id


def _check(home: ParquetTraceStore, key: str, blocks: list[Block]) -> None:
    """Read a new file back.

    Raises:
        UnavailableError: it does not hold what was written.
    """
    table = parquet_of(home.objects.get(key) or b"")
    places = blocks_in(table)
    for block in blocks:
        place = places[block.run_id, block.rail_id, block.part.value, block.position]
        there = (table["time_ns"][place].to_numpy(), table["value"][place].to_numpy())
        if fingerprint(there) != fingerprint(block.samples):
            raise UnavailableError(f"{key} at {home.objects.address} does not hold what was written into it.")
