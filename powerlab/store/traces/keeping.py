"""Compaction every hour, in a thread of the server."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from powerlab.domain.errors import PowerlabError
from powerlab.store.connection import Store

_log = logging.getLogger("powerlab.store")
PERIOD_S = 3600.0
_LAST_S = 5.0
"""How long the end waits for what is under way; what is cut off then is done again the next time."""


@contextmanager
def kept_compact(store: Store, period_s: float = PERIOD_S) -> Iterator[None]:
    """Compact a store's files meanwhile; do nothing where its traces lie in the database."""
    from powerlab.store.traces.database import DatabaseTraceStore

    if isinstance(store.traces, DatabaseTraceStore):
        yield
        return
    over = threading.Event()
    thread = threading.Thread(target=_keep, args=(store, period_s, over), name="powerlab-traces", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(_LAST_S)


def _keep(store: Store, period_s: float, over: threading.Event) -> None:
    from sqlalchemy.exc import DBAPIError

    from powerlab.store.traces.compaction import compact
    from powerlab.store.traces.parquet import ParquetTraceStore

    while not over.wait(period_s):
        home = store.traces
        assert isinstance(home, ParquetTraceStore)  # noqa: S101 - there are two kinds
        try:
            done = compact(store, home)
        except (PowerlabError, DBAPIError) as error:
            _log.warning("traces were not put together: %s", error)  # what is away is tried again the next time
            continue
        for file in done.damaged:
            _log.error("%s at %s is missing or damaged; restore it from a backup", file, home.objects.address)
