"""The query engine for trace files: DuckDB within this process, unless a cluster is configured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pyarrow as pa  # type: ignore[import-untyped]

from powerlab.domain.errors import PowerlabError
from powerlab.store.traces.clickhouse import ClickHouse
from powerlab.store.traces.duckdb import Duck
from powerlab.store.traces.object_storage import Objects


class QueryEngine(Protocol):
    """Answers the questions of :mod:`powerlab.store.traces.sql`."""

    def ask(self, keys: Sequence[str], question: str) -> pa.Table:
        """Return the answer from some of the files.

        Raises:
            UnavailableError: the files or the engine cannot be reached.
        """
        ...


ENGINES: dict[str, Callable[[str, Objects], QueryEngine]] = {"duckdb": Duck, "clickhouse": ClickHouse}
"""By scheme; each is made of its address and of the files."""


def open_engine(address: str | None, objects: Objects) -> QueryEngine:
    """Return what answers questions about files; DuckDB where nothing is named.

    Raises:
        PowerlabError: there is no such engine, or its address is wrong.
    """
    chosen = address or "duckdb"
    make = ENGINES.get(chosen.partition(":")[0])
    if make is None:
        raise PowerlabError(f"nothing answers questions about traces at {chosen!r}; give one of: {', '.join(ENGINES)}.")
    return make(chosen, objects)
