"""Tables as Arrow: one schema for Parquet files and for frames.

It needs pyarrow, so it is imported only where a table is made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from powerlab.protocol.export import Cell, Column
from powerlab.protocol.trace_export import Recorded

_TYPES = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """Return the columns as Arrow names them; a field's metadata has its ``description`` and, if any, its ``unit``."""
    return pa.schema(
        pa.field(
            one.name,
            _TYPES[one.kind],
            nullable=one.nullable,
            metadata={"description": one.words} | ({"unit": one.unit} if one.unit else {}),
        )
        for one in columns
    )


def batch_of_rows(schema: pa.Schema, rows: Sequence[tuple[Cell, ...]]) -> pa.RecordBatch:
    """Return rows, at least one, whose cells are in the schema's order; None is null."""
    cells = zip(*rows, strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(cells, schema, strict=True)]
    return pa.record_batch(arrays, schema=schema)


def batch_of_samples(schema: pa.Schema, chunks: Sequence[Recorded]) -> pa.RecordBatch:
    """Return chunks of samples, at least one, with a row a sample; ``schema`` is that of the traces."""
    counts = [len(one.time_ns) for one in chunks]
    which = np.repeat(np.arange(len(chunks)), counts)
    starts = zip(*(one.start for one in chunks), strict=True)
    arrays = [pa.array(words, pa.string()).take(pa.array(which)) for words in starts]
    arrays.append(pa.array(np.concatenate([one.time_ns for one in chunks])))
    arrays.append(pa.array(np.concatenate([one.value for one in chunks])))
    return pa.record_batch(arrays, schema=schema)
