"""Open a database and create sessions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.store.database import WRITE_OPTION, changing_tables, make_engine
from powerlab.store.events import note_changes, publish
from powerlab.store.maintenance.partitions import make_ahead
from powerlab.store.schema import bring_up_to_date
from powerlab.store.traces.base import TraceStore
from powerlab.store.traces.database import DatabaseTraceStore

_log = logging.getLogger("powerlab.store")


def utc_now() -> datetime:
    """Return the time now, in UTC."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """An open database.

    Attributes:
        engine: SQLAlchemy's pool of connections.
        address: where the database is, for people; without a password.
        clock: tells the time, UTC; tests bring their own.
        traces: where samples lie; sessions carry it.
    """

    engine: Engine
    address: str
    clock: Callable[[], datetime] = utc_now
    traces: TraceStore = field(default_factory=DatabaseTraceStore)

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session for reading."""
        with self._opened() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session for writing: it commits at the end, and undoes everything where an exception leaves it.

        What rows did becomes events (:mod:`powerlab.store.events`).
        """
        with self._opened() as session, session.begin():
            session.connection(execution_options={WRITE_OPTION: True})
            event.listen(session, "after_flush", note_changes)
            yield session
            publish(session, self.clock())

    def _opened(self) -> Session:
        return Session(self.engine, info={"traces": self.traces})

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def open_store(
    url_or_path: str | Path, clock: Callable[[], datetime] = utc_now, *, traces: TraceStore | None = None
) -> Store:
    """Open a database and bring its tables up to date.

    Args:
        url_or_path: the path of an SQLite file (made where it is missing), or ``postgresql://user@host/name``.
        clock: tells the time, UTC.
        traces: where samples lie, from :func:`~powerlab.store.traces.registry.open_traces`; in the database where it
            is None.

    Raises:
        PowerlabError: the path cannot be written, the file is no database, the server cannot be reached, or the
            tables were made by a newer powerlab.
    """
    engine = make_engine(str(url_or_path))
    address = str(url_or_path) if engine.dialect.name == "sqlite" else _without_password(engine)
    try:
        with changing_tables(engine) as connection:
            bring_up_to_date(connection)
    except DBAPIError as error:
        engine.dispose()
        raise PowerlabError(_why(engine, address, error)) from error
    except PowerlabError as error:
        engine.dispose()
        raise PowerlabError(f"{address}: {error}") from error
    try:
        make_ahead(engine, clock())
    except DBAPIError as error:  # it may be in use, or the user may read only: no reason to stay away
        _log.warning("months were not made ahead; what comes then lies in none: %s", error)
    return Store(engine=engine, address=address, clock=clock, traces=traces or DatabaseTraceStore())


def _without_password(engine: Engine) -> str:
    return engine.url.set(drivername="postgresql").render_as_string(hide_password=True)


def _why(engine: Engine, address: str, error: DBAPIError) -> str:
    reason = " ".join(str(error.orig).split())
    if engine.dialect.name != "sqlite":
        return f"the database {address} cannot be used ({reason}); check the address and that PostgreSQL is running."
    if "not a database" in reason:
        return f"{address} is not an SQLite database; give another path, or move that file away."
    if Path(address).is_dir():
        return f"the database {address} is a folder; give the path of a file."
    if "unable to open" in reason or "readonly" in reason:
        return f"the database {address} cannot be written; give a path in an existing folder of yours."
    return f"the database {address} cannot be used ({reason}); give another path."
