"""The trace stores, by the scheme of their addresses."""

from __future__ import annotations

from collections.abc import Callable

from powerlab.domain.errors import PowerlabError
from powerlab.store.traces.base import TraceStore
from powerlab.store.traces.database import DatabaseTraceStore

DATABASE = "database"


def _database(_address: str, query: str | None) -> TraceStore:
    if query is not None:
        raise PowerlabError(f"{query!r} is for traces in files; say with --traces where they lie.")
    return DatabaseTraceStore()


def _parquet(address: str, query: str | None) -> TraceStore:
    from powerlab.store.traces.object_storage import open_objects
    from powerlab.store.traces.parquet import ParquetTraceStore
    from powerlab.store.traces.query_engines import open_engine

    objects = open_objects(address)
    return ParquetTraceStore(objects, open_engine(query, objects))


TRACE_STORES: dict[str, Callable[[str, str | None], TraceStore]] = {
    DATABASE: _database,
    "file": _parquet,
    "s3": _parquet,
}
"""By scheme; each opens a store from an address and a query engine."""


def open_traces(address: str | None, query: str | None = None) -> TraceStore:
    """Return the trace store at an address.

    Args:
        address: ``database`` (so it is where nothing is given), ``file:///folder``, or
            ``s3://bucket/prefix?endpoint=URL&region=NAME``.
        query: who answers questions about files: ``duckdb`` within this process, or ``clickhouse://host:8123``.

    Raises:
        PowerlabError: there is no such store, or it cannot be used.
    """
    chosen = address or DATABASE
    make = TRACE_STORES.get(chosen.partition(":")[0])
    if make is None:
        raise PowerlabError(
            f"cannot store traces at {chosen!r}; give database, file:///FOLDER or s3://BUCKET/PREFIX?endpoint=URL."
        )
    return make(chosen, query or None)
