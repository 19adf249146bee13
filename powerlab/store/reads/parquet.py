"""Tables as Parquet, streamed: never whole in memory.

The format: https://parquet.apache.org/docs/file-format.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from powerlab.protocol.arrow import batch_of_rows, batch_of_samples, schema_of
from powerlab.protocol.export import Cell, Column
from powerlab.protocol.trace_export import TRACE_COLUMNS, Recorded

_FIRST_ROWS, _ROWS = 250, 20_000
"""Figures of the first row group, and of the later ones: whoever waits soon has something."""
_FIRST_SAMPLES, _SAMPLES = 1 << 13, 1 << 18
"""Samples of a row group, at least, likewise."""


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


def rows_as_parquet(columns: Sequence[Column], rows: Iterable[tuple[Cell, ...]]) -> Iterator[bytes]:
    """Yield the bytes of a Parquet file, a row group at a time."""
    schema = schema_of(columns)
    waiting = iter(rows)
    sizes = _growing(_FIRST_ROWS, _ROWS)
    groups = iter(lambda: list(islice(waiting, next(sizes))), [])
    return _written(schema, (batch_of_rows(schema, some) for some in groups))


def _growing(first: int, most: int) -> Iterator[int]:
    """Yield the sizes of row groups: each twice the one before, up to the usual one."""
    while True:
        yield first
        first = min(2 * first, most)


def traces_as_parquet(chunks: Iterable[Recorded]) -> Iterator[bytes]:
    """Do so with a row a sample."""
    schema = schema_of(TRACE_COLUMNS)
    return _written(schema, (batch_of_samples(schema, some) for some in _enough(chunks)))


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


def _written(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
    sink = _Sink()
    with parquet.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.take()
    yield sink.take()
