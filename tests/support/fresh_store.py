"""New databases for tests, copied from one whose tables were made once: making them takes a tenth of a second."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from pathlib import Path

from postgres_cluster import drop_database, new_database
from powerlab.store import Store, open_store
from powerlab.store.connection import utc_now
from powerlab.store.traces.base import TraceStore
from server_examples import Clock
from shared_statements import share_statements

share_statements()


def fresh_store(path: Path, clock: Callable[[], datetime] = utc_now, *, traces: TraceStore | None = None) -> Store:
    """Open a new SQLite file that has its tables already."""
    path.write_bytes(_empty_file())
    return open_store(path, clock, traces=traces)


@contextmanager
def fresh_database(cluster: str) -> Iterator[str]:
    """Yield the address of a PostgreSQL database that has its tables already, and drop it in the end."""
    address = new_database(cluster, _template(cluster))
    yield address
    drop_database(cluster, address)


@cache
def _empty_file() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "powerlab.db"
        open_store(path).close()
        return path.read_bytes()


@cache
def _template(cluster: str) -> str:
    address = new_database(cluster)
    open_store(address, Clock()).close()  # months of the tests' time, whatever the day
    return address
