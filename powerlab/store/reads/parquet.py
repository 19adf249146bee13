"""Tables as Parquet, streamed: never whole in memory.

The format: https://parquet.apache.org/docs/file-format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from powerlab.protocol.export import Cell, Column
from powerlab.protocol.trace_export import TRACE_COLUMNS, Recorded

_FIRST_ROWS, _ROWS = 250, 20_000
"""Figures of the first row group, and of the later ones: whoever waits soon has something."""
_FIRST_SAMPLES, _SAMPLES = 1 << 13, 1 << 18
"""Samples of a row group, at least, likewise."""
_TYPES = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64()}


class _Sink:
    """What Parquet's writer takes for a file; what was written is taken out at the other end."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing waits here."""

    def take(self) -> bytes:
        """Return what was written since the last time."""
        taken, self._parts = b"".join(self._parts), []
        return taken


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the columns as Arrow names them, each with its description."""
    return pa.schema(
        pa.field(one.name, _TYPES[one.kind], nullable=one.nullable, metadata={"description": one.words})
        for one in columns
    )


def rows_as_parquet(columns: Sequence[Column], rows: Iterable[tuple[Cell, ...]]) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file, a row group at a time."""
    schema = schema_of(columns)

    def batch_of(some: Sequence[tuple[Cell, ...]]) -> pa.RecordBatch:
        cells = zip(*some, strict=True)
        arrays = [pa.array(values, field.type) for values, field in zip(cells, schema, strict=True)]
        return pa.record_batch(arrays, schema=schema)

    waiting = iter(rows)
    sizes = _growing(_FIRST_ROWS, _ROWS)
    return _written(schema, map(batch_of, iter(lambda: list(islice(waiting, next(sizes))), [])))


def _growing(first: int, most: int) -> Iterator[int]:
    """Yield the sizes of row groups: each twice the one before, up to the usual one."""
    while True:
        yield first
        first = min(2 * first, most)


def traces_as_parquet(chunks: Iterable[Recorded]) -> Iterator[bytes]:
    """Do so with a row a sample."""
    schema = schema_of(TRACE_COLUMNS)
    return _written(schema, (_samples(schema, some) for some in _enough(chunks)))


def _enough(chunks: Iterable[Recorded]) -> Iterator[list[Recorded]]:
    """Yield chunks in groups with samples enough for a row group."""
    group: list[Recorded] = []
    sizes = _growing(_FIRST_SAMPLES, _SAMPLES)
    enough = next(sizes)
    for chunk in chunks:
        group.append(chunk)
        if sum(len(one.time_ns) for one in group) >= enough:
            yield group
            group, enough = [], next(sizes)
    if group:
        yield group


def _samples(schema: pa.Schema, chunks: Sequence[Recorded]) -> pa.RecordBatch:
    counts = [len(one.time_ns) for one in chunks]
    which = np.repeat(np.arange(len(chunks)), counts)
    starts = zip(*(one.start for one in chunks), strict=True)
    arrays = [pa.array(words, pa.string()).take(pa.array(which)) for words in starts]
    arrays.append(pa.array(np.concatenate([one.time_ns for one in chunks])))
    arrays.append(pa.array(np.concatenate([one.value for one in chunks])))
    return pa.record_batch(arrays, schema=schema)


def _written(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    sink = _Sink()
    with parquet.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()
