"""Compaction: merge small trace files and delete unreferenced ones.

Rows in the database say which file holds what, so a new file counts from the moment in which one transaction lets the
rows refer to it. Of two servers that put the same files together one finds the rows changed, and takes its own file
back. Readers that asked for rows before may still be reading the old files: those go after a time of grace.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from random import SystemRandom
from typing import Any, cast

import pyarrow as pa  # type: ignore[import-untyped]
from sqlalchemy import CursorResult, func, select, update
from sqlalchemy.orm import Session

from powerlab.store.connection import Store
from powerlab.store.tables import RunRow, SweepRow, TraceChunkRow
from powerlab.store.traces.object_storage import Found, Objects
from powerlab.store.traces.parquet import ParquetTraceStore
from powerlab.store.traces.rows import of_run
from powerlab.store.traces.table import as_parquet, blocks_in, fingerprint, parquet_of

GRACE = timedelta(hours=1)
"""How long a file that nobody refers to is kept: longer than any request takes."""
FEWEST = 8
"""Files of a device and month that are worth putting together."""
LARGE_SAMPLES = 4_000_000
"""Samples of a file that is large enough: about 20 MB, 200 MB in memory while it is made."""
_SMALL_SAMPLES = LARGE_SAMPLES // 4
"""A file with more is left alone; so a sample is written a few times in all, however long its month."""
_MERGED = "merged-"


class _MovedMeanwhile(Exception):  # noqa: N818 - no error: somebody else was first
    """Rows refer to other files by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What was done: files that were put together and what became of them, files removed, and damaged files."""

    merged_count: int = 0
    made_count: int = 0
    removed_count: int = 0
    damaged: tuple[str, ...] = ()

    def __add__(self, other: Compacted) -> Compacted:
        return Compacted(
            merged_count=self.merged_count + other.merged_count,
            made_count=self.made_count + other.made_count,
            removed_count=self.removed_count + other.removed_count,
            damaged=self.damaged + other.damaged,
        )


@dataclass(frozen=True, slots=True)
class _Chunk:
    """A chunk's row: whose samples, how many, in which file, and their fingerprint."""

    key: tuple[str, int, str, int]
    sample_count: int
    file: str
    sha256: str


def compact(store: Store, home: ParquetTraceStore, *, grace: timedelta = GRACE, fewest: int = FEWEST) -> Compacted:
    """Go through all months and devices: remove what was replaced earlier, then put small files together.

    Args:
        store: the database whose rows refer to the files.
        home: where the files lie.
        grace: how long files are kept that nobody refers to.
        fewest: small files that are worth it.

    Raises:
        UnavailableError: the storage cannot be reached.
        PowerlabError: the files belong to another database.
    """
    with store.session() as session:
        home.claim(session)
    total = Compacted()
    months = [folder for folder in home.objects.folders() if folder.startswith("month=")]
    folders = [folder for month in months for folder in home.objects.folders(month)]
    # Servers that compact at the same time seldom meet in a folder.
    SystemRandom().shuffle(folders)
    for folder in folders:
        total += _folder(store, home.objects, folder, grace=grace, fewest=fewest)
    return total


def remove_month(home: ParquetTraceStore, month: str) -> int:
    """Remove every file of a month, written ``2026-11``, whose runs are no longer wanted; return how many."""
    count = home.objects.delete(found.key for found in list(home.objects.list(f"month={month}/")))
    home.objects.remove_folder(f"month={month}")
    return count


def remove_months(store: Store, home: ParquetTraceStore, before: datetime) -> int:
    """Remove the files of all months that were over at a time, which no row may refer to; return how many.

    Raises:
        UnavailableError: the storage cannot be reached; the months that are left go the next time.
        PowerlabError: the files belong to another database.
    """
    with store.session() as session:
        home.claim(session)
    months = (folder.removeprefix("month=") for folder in home.objects.folders() if folder.startswith("month="))
    return sum(remove_month(home, month) for month in months if month < f"{before:%Y-%m}")


def _folder(store: Store, objects: Objects, folder: str, *, grace: timedelta, fewest: int) -> Compacted:
    with store.session() as session:
        chunks = list(_chunks(session, folder))
    # Looked for after the rows were: so whatever has replaced a file that they no longer name is seen too.
    files = list(objects.list(folder))
    of_file: dict[str, list[_Chunk]] = {}
    for chunk in chunks:
        of_file.setdefault(chunk.file, []).append(chunk)
    total = Compacted(removed_count=objects.delete(_forgotten(files, set(of_file), datetime.now(UTC) - grace)))
    there = {found.key for found in files}
    small = {
        file: own
        for file, own in sorted(of_file.items())
        if file in there and sum(chunk.sample_count for chunk in own) <= _SMALL_SAMPLES
    }
    if len(small) >= max(2, fewest):
        for batch in _batches(small):
            total += _merge(store, objects, folder, batch)
    if total.damaged:  # or has a month gone meanwhile, rows and files?
        with store.session() as session:
            wanted = {chunk.file for chunk in _chunks(session, folder)}
        total = replace(total, damaged=tuple(file for file in total.damaged if file in wanted))
    return total


def _forgotten(files: Sequence[Found], wanted: set[str], before: datetime) -> Iterator[str]:
    """Yield files that no row has referred to for long: neither they nor what may have replaced them is young."""
    if any(PurePosixPath(one.key).name.startswith(_MERGED) and one.written_at > before for one in files):
        return
    yield from (one.key for one in files if one.key not in wanted and one.written_at <= before)


def _chunks(session: Session, folder: str) -> Iterator[_Chunk]:
    """Yield the rows of a device's runs of a month whose samples lie in files."""
    month, device_id = (part.partition("=")[2] for part in folder.split("/"))
    first = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
    after = (first + timedelta(days=32)).replace(day=1)
    wanted = (
        select(
            *(TraceChunkRow.run_id, TraceChunkRow.rail_id, TraceChunkRow.part, TraceChunkRow.position),
            *(TraceChunkRow.sample_count, TraceChunkRow.uri),
        )
        .join(RunRow, RunRow.id == TraceChunkRow.run_id)
        .join(SweepRow, SweepRow.id == RunRow.sweep_id)
        .where(SweepRow.device_id == device_id, RunRow.received_at == TraceChunkRow.received_at)
        .where(TraceChunkRow.received_at >= first, TraceChunkRow.received_at < after)
        .where(TraceChunkRow.uri.is_not(None))
    )
    for run_id, rail_id, part, position, sample_count, uri in session.execute(wanted):
        file, _, sha256 = (uri or "").partition("#")
        yield _Chunk((run_id, rail_id, part, position), sample_count, file, sha256)


def _batches(small: dict[str, list[_Chunk]]) -> Iterator[dict[str, list[_Chunk]]]:
    """Yield files that are large enough together, two at least."""
    batch: dict[str, list[_Chunk]] = {}
    count = 0
    for file, chunks in small.items():
        size = sum(chunk.sample_count for chunk in chunks)
        if count + size > LARGE_SAMPLES:
            yield batch
            batch, count = {}, 0
        batch[file] = chunks
        count += size
    if len(batch) > 1:
        yield batch


def _merge(store: Store, objects: Objects, folder: str, batch: dict[str, list[_Chunk]]) -> Compacted:
    tables, damaged = [], []
    for file, chunks in batch.items():
        table = _rows_of(objects, file, chunks)
        if table is None:
            damaged.append(file)
        else:
            tables.append(table)
    done = Compacted(damaged=tuple(damaged))
    batch = {file: chunks for file, chunks in batch.items() if file not in damaged}
    if len(batch) < 2:
        return done
    order = [(name, "ascending") for name in ("run_id", "rail_id", "part", "position", "time_ns")]
    key = f"{folder}/{_MERGED}{uuid.uuid4().hex}.parquet"
    objects.put(key, as_parquet(pa.concat_tables(tables).sort_by(order), for_good=True))
    try:
        with store.write() as session:
            for file, chunks in batch.items():
                _refer(session, file, key, chunks)
    except _MovedMeanwhile:
        objects.delete([key])
        return done
    return replace(done, merged_count=len(batch), made_count=1)


def _rows_of(objects: Objects, file: str, chunks: Sequence[_Chunk]) -> pa.Table | None:
    """Return the rows of a file that are still wanted; None where they are not what was stored."""
    content = objects.get(file)
    try:
        table = None if content is None else parquet_of(content)
    except (pa.ArrowException, OSError):
        table = None
    if table is None:
        return None
    places, parts = blocks_in(table), []
    for chunk in chunks:
        place = places.get(chunk.key)
        if place is None:
            return None
        part = table.slice(place.start, place.stop - place.start)
        if fingerprint((part["time_ns"].to_numpy(), part["value"].to_numpy())) != chunk.sha256:
            return None
        parts.append(part)
    return pa.concat_tables(parts)


def _refer(session: Session, old: str, new: str, chunks: Sequence[_Chunk]) -> None:
    """Let the rows of a file refer to another one.

    Raises:
        _MovedMeanwhile: they do not refer to the old one any more.
    """
    for run_id in sorted({chunk.key[0] for chunk in chunks}):
        own = (of_run(run_id), TraceChunkRow.uri.startswith(f"{old}#", autoescape=True))
        changed = update(TraceChunkRow).where(*own).values(uri=func.replace(TraceChunkRow.uri, old, new))
        done = session.execute(changed, execution_options={"synchronize_session": False})
        if cast("CursorResult[Any]", done).rowcount != sum(chunk.key[0] == run_id for chunk in chunks):
            raise _MovedMeanwhile(old)
