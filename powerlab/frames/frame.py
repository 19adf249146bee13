"""A table of results: Arrow inside, pandas or polars on request."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.export import Cell, Column

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import polars as pl
    import pyarrow as pa  # type: ignore[import-untyped]

_ROWS = 10_000
"""Rows that become a batch at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A table of results.

    Whatever reads Arrow's C stream interface takes it as it is: ``polars.DataFrame(frame)``, ``duckdb.sql(...)``.

    Attributes:
        arrow: the table; the metadata of each field has its ``description`` and, if any, its ``unit``.
    """

    arrow: pa.Table

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one."""
        return {
            field.name: field.metadata[b"unit"].decode()
            for field in self.arrow.schema
            if field.metadata and b"unit" in field.metadata
        }

    def pandas(self) -> pd.DataFrame:
        """Return the table as pandas has it, with :attr:`units` in ``attrs["units"]``.

        Whole numbers are ``Int64`` and text is ``string``, so that null stays apart from 0 and from empty text; a
        figure that is missing is NaN.

        Raises:
            PowerlabError: pandas is not installed.
        """
        pandas, arrow = needed("pandas"), needed("pyarrow")
        kinds = {arrow.int64(): pandas.Int64Dtype(), arrow.string(): pandas.StringDtype()}
        frame = self.arrow.to_pandas(types_mapper=kinds.get)
        frame.attrs["units"] = self.units
        return frame

    def polars(self) -> pl.DataFrame:
        """Return the table as polars has it; units are in :attr:`units` alone, because polars keeps no metadata.

        Raises:
            PowerlabError: polars is not installed.
        """
        frame: pl.DataFrame = needed("polars").from_arrow(self.arrow)
        return frame

    def __len__(self) -> int:
        return int(self.arrow.num_rows)

    def __repr__(self) -> str:
        return f"Frame({self.arrow.num_rows} rows: {', '.join(self.arrow.column_names)})"

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.arrow.__arrow_c_stream__(requested_schema)


def needed(name: str) -> ModuleType:
    """Return a library of the extra ``frames``, or a module of one.

    Raises:
        PowerlabError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        library = name.partition(".")[0]
        if error.name not in {library, name}:
            raise
        raise PowerlabError(
            f"this needs {library}; install the frames extra: pip install 'powerlab[frames]'."
        ) from error


def frame_of(columns: Sequence[Column], rows: Iterable[tuple[Cell, ...]]) -> Frame:
    """Return rows, whose cells are in the order of the columns, as a frame."""
    arrow = needed("pyarrow")
    from powerlab.protocol.arrow import batch_of_rows, schema_of

    schema = schema_of(columns)
    waiting = iter(rows)
    batches = [batch_of_rows(schema, some) for some in iter(lambda: list(islice(waiting, _ROWS)), [])]
    return Frame(arrow.Table.from_batches(batches, schema))
