"""Hourly compaction in a thread of the server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from powerlab.domain.errors import PowerlabError
from powerlab.periodic import at_intervals
from powerlab.store.connection import Store

_log = logging.getLogger("powerlab.store")
PERIOD_S = 3600.0


@contextmanager
def kept_compact(store: Store, period_s: float = PERIOD_S) -> Iterator[None]:
    """Compact a store's files meanwhile; do nothing where its traces lie in the database."""
    from powerlab.store.traces.database import DatabaseTraceStore

    if isinstance(store.traces, DatabaseTraceStore):
        yield
        return
    with at_intervals(partial(_compact, store), period_s, "powerlab-traces"):
        yield  # what is cut off at the end is done again the next time


def _compact(store: Store) -> None:
    from sqlalchemy.exc import DBAPIError

    from powerlab.store.traces.compaction import compact
    from powerlab.store.traces.parquet import ParquetTraceStore

    home = store.traces
    assert isinstance(home, ParquetTraceStore)  # noqa: S101 - there are two kinds
    try:
        done = compact(store, home)
    except (PowerlabError, DBAPIError) as error:
        _log.warning("traces were not put together: %s", error)  # what is away is tried again the next time
        return
    for file in done.damaged:
        _log.error("%s at %s is missing or damaged; restore it from a backup", file, home.objects.address)
