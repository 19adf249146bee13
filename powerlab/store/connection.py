"""How a database is opened and how a session is had."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import Engine
from sqlalchemy.orm import Session


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
    """

    engine: Engine
    address: str
    clock: Callable[[], datetime] = utc_now

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open a session for reading; it sees one state of the database."""
        with Session(self.engine) as session:
            yield session

    def close(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def open_store(url_or_path: str | Path, clock: Callable[[], datetime] = utc_now) -> Store:
    """Open a database and bring its tables up to date.

    Args:
        url_or_path: the path of an SQLite file (made where it is missing), or ``postgresql://user@host/name``.
        clock: tells the time, UTC.

    Raises:
        PowerlabError: the path cannot be written, the file is no database, the server cannot be reached, or the
            tables were made by a newer powerlab.
    """
    raise NotImplementedError
