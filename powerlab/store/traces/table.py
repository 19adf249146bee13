"""Schema of trace files: one row per sample, readable by any Parquet program.

Every file says whose samples it holds, so that a folder of them can be read without powerlab's database. Times are
delta-encoded, and Zstandard compresses everything; other encodings of values were measured to be longer. The
encodings: https://parquet.apache.org/docs/file-format/data-pages/encodings.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from pyarrow import parquet

from powerlab.domain.power import Part, Rail
from powerlab.store.traces.base import Samples

_WORDS = ("run_id", "part", "source", "rail", "quantity", "provenance")
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("run_id", "part")),
        pa.field("rail_id", pa.int64(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        *(pa.field(name, pa.string(), nullable=False) for name in ("source", "rail", "quantity", "provenance")),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("value", pa.float64(), nullable=False),
    ]
)
"""``rail_id`` and ``position`` are the database's; the rest is for every reader."""
ROW_GROUP = 1 << 16
"""Samples between two places at which a reader may begin; its statistics let it skip what it does not need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """The samples of one chunk, and whose they are."""

    run_id: str
    rail_id: int
    rail: Rail
    part: Part
    position: int
    samples: Samples


def fingerprint(samples: Samples) -> str:
    """Return the SHA-256 of times and values as little-endian 64-bit numbers: the same however they are compressed."""
    time_ns, value = samples
    total = hashlib.sha256(np.ascontiguousarray(time_ns, dtype="<i8").tobytes())
    total.update(np.ascontiguousarray(value, dtype="<f8").tobytes())
    return total.hexdigest()


def table_of(blocks: Sequence[Block]) -> pa.Table:
    """Return the samples of chunks as rows, in the chunks' order."""
    counts = [len(block.samples[0]) for block in blocks]
    which = pa.array(np.repeat(np.arange(len(blocks)), counts))

    def repeated(values: list[str]) -> pa.Array:
        return pa.array(values, pa.string()).take(which)

    columns = {
        "run_id": repeated([block.run_id for block in blocks]),
        "part": repeated([block.part.value for block in blocks]),
        "rail_id": np.repeat(np.array([block.rail_id for block in blocks], np.int64), counts),
        "position": np.repeat(np.array([block.position for block in blocks], np.int32), counts),
        "source": repeated([block.rail.source for block in blocks]),
        "rail": repeated([block.rail.name for block in blocks]),
        "quantity": repeated([block.rail.quantity.value for block in blocks]),
        "provenance": repeated([block.rail.provenance.value for block in blocks]),
        "time_ns": np.concatenate([block.samples[0] for block in blocks]),
        "value": np.concatenate([block.samples[1] for block in blocks]),
    }
    return pa.table(columns, schema=SCHEMA)


def as_parquet(table: pa.Table, *, for_good: bool = False) -> bytes:
    """Return a table of samples as the content of a file; one that is kept for good is compressed harder."""
    sink = pa.BufferOutputStream()
    parquet.write_table(
        table,
        sink,
        compression="zstd",
        compression_level=9 if for_good else 1,
        row_group_size=ROW_GROUP,
        use_dictionary=list(_WORDS),
        column_encoding=dict.fromkeys(("rail_id", "position", "time_ns"), "DELTA_BINARY_PACKED"),
    )
    content: bytes = sink.getvalue().to_pybytes()
    return content


def parquet_of(content: bytes) -> pa.Table:
    """Return the rows of a file's content; raises pyarrow.ArrowException where it is no Parquet."""
    return parquet.read_table(pa.BufferReader(content))


def groups(table: pa.Table, names: Sequence[str]) -> dict[tuple[Any, ...], slice]:
    """Return which rows hold each combination of some columns' values; those of one stand together."""
    if table.num_rows == 0:
        return {}
    new = np.zeros(table.num_rows - 1, dtype=bool)
    for name in names:
        column = table[name].combine_chunks()
        codes = column.dictionary_encode().indices if pa.types.is_string(column.type) else column
        new |= np.diff(codes.to_numpy()) != 0
    edges = [0, *(np.flatnonzero(new) + 1).tolist(), table.num_rows]
    keys = zip(*(column.to_pylist() for column in table.select(names).take(edges[:-1]).columns), strict=True)
    return {key: slice(start, end) for key, (start, end) in zip(keys, pairwise(edges), strict=True)}


def blocks_in(table: pa.Table) -> dict[tuple[str, int, str, int], slice]:
    """Return which rows belong to each chunk, by run, rail, part and position."""
    return groups(table, ("run_id", "rail_id", "part", "position"))
