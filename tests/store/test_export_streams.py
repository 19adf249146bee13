"""Exports of much take no more memory than exports of little, from either database."""

from __future__ import annotations

import gc
import tracemalloc
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import parquet
from sqlalchemy import insert, select

from powerlab.protocol.export import FIGURE_COLUMNS, csv_lines, figure_rows
from powerlab.protocol.messages import Lease
from powerlab.protocol.trace_export import trace_csv_lines
from powerlab.store import Store
from powerlab.store.reads import parquet as store_parquet
from powerlab.store.reads import queries
from powerlab.store.reads.trace_stream import stream_chunks
from powerlab.store.tables import RunMetricRow, RunRow
from server_examples import COUNTER, make_trace, runs_of
from store_writing import take, upload, upload_trace

pytestmark = pytest.mark.campaign

LITTLE, MUCH = 250, 1000
FEW_SAMPLES, MANY_SAMPLES = 40_000, 240_000
_COLLECTED_EVERY_BYTES = 1 << 20


def peak_of(parts: Callable[[], Iterator[str] | Iterator[bytes]]) -> tuple[int, int, int]:
    """Return the bytes that came out, and the most that Python and Arrow held meanwhile.

    Garbage that waits for its collector is not held; after fifteen thousand tests it may wait long.
    """
    arrow = size = collected = 0
    tracemalloc.start()
    try:
        for part in parts():
            size += len(part)
            arrow = max(arrow, pa.total_allocated_bytes())
            if size - collected > _COLLECTED_EVERY_BYTES:
                gc.collect()
                collected = size
        return size, tracemalloc.get_traced_memory()[1], arrow
    finally:
        tracemalloc.stop()


def copies(store: Store, run_id: str, count: int) -> None:
    """Copy a run with its figures until there are so many, as other repeats of its point."""
    with store.write() as session:
        run = session.get_one(RunRow, run_id)
        columns = {column.name: getattr(run, column.name) for column in RunRow.__table__.columns}
        figures = [
            {column.name: getattr(metric, column.name) for column in RunMetricRow.__table__.columns}
            for metric in run.metrics
        ]
        first = session.scalars(select(RunRow.repeat).order_by(RunRow.repeat.desc()).limit(1)).one() + 1
        names = {repeat: str(uuid.uuid4()) for repeat in range(first, count)}
        session.execute(insert(RunRow), [{**columns, "id": name, "repeat": n} for n, name in names.items()])
        session.execute(insert(RunMetricRow), [{**one, "run_id": name} for name in names.values() for one in figures])


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_runs(store: Store, device_id: str, sweep_id: str, format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in ("_FIRST_ROWS", "_ROWS"):
        monkeypatch.setattr(store_parquet, size, 500)
    run = runs_of(sweep_id)[0]
    upload(store, device_id, take(store, device_id), run)

    def parts() -> Iterator[str] | Iterator[bytes]:
        with store.session() as session:
            runs = (one for _, one in queries.stream_runs(session, queries.RunFilter()))
            if format_ == "csv":
                yield from csv_lines(runs)
            else:
                yield from store_parquet.rows_as_parquet(FIGURE_COLUMNS, figure_rows(runs))

    found = []
    for count in (LITTLE, MUCH):
        copies(store, run.id, count)
        found.append(peak_of(parts))
    (small, least, least_arrow), (large, most, most_arrow) = found
    assert large > (3 if format_ == "csv" else 2) * small
    assert most < 1.5 * least + 1_000_000, f"{least} and {most} bytes for {LITTLE} and {MUCH} runs"
    assert most_arrow <= 1.5 * least_arrow + 1_000_000
    if format_ == "parquet":
        file = parquet.ParquetFile(pa.BufferReader(b"".join(parts())))
        assert (file.metadata.num_rows, file.metadata.num_row_groups) == (MUCH * 4, MUCH * 4 // 500)


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_traces(store: Store, device_id: str, sweep_id: str, format_: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_parquet, "_SAMPLES", 16_384)
    held = take(store, device_id)
    runs = runs_of(sweep_id)[:2]

    def parts(run_id: str) -> Iterator[str] | Iterator[bytes]:
        with store.session() as session:
            chunks = stream_chunks(session, None, run_id)
            yield from trace_csv_lines(chunks) if format_ == "csv" else store_parquet.traces_as_parquet(chunks)

    found = []
    for run, count in zip(runs, (FEW_SAMPLES, MANY_SAMPLES), strict=True):
        upload(store, device_id, held, run)
        for chunked in range(0, count, 20_000):  # rails of their own, so that chunks may be as long as usual
            upload_long(store, device_id, held, run.id, chunked)
        found.append(peak_of(lambda run_id=run.id: parts(run_id)))
    (small, least, least_arrow), (large, most, most_arrow) = found
    assert large > 5 * small
    assert most < 1.5 * least + 1_000_000, f"{least} and {most} bytes for {FEW_SAMPLES} and {MANY_SAMPLES} samples"
    assert most_arrow <= 1.5 * least_arrow + 1_000_000


def upload_long(store: Store, device_id: str, held: Lease, run_id: str, number: int) -> None:
    rail = replace(COUNTER, name=f"package-{number}")
    upload_trace(store, device_id, held, run_id, make_trace(rail, 20_000, seed=number), max_samples=10_000)
