"""Differences between the two supported databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from powerlab.domain.errors import PowerlabError

WRITE_OPTION = "powerlab_write"
"""Execution option of a connection whose transaction will write; see :func:`_begin`."""

CONNECTIONS = 16
"""To PostgreSQL, and threads of a server that ask it: more would only wait for the interpreter and for each other."""
_MORE_CONNECTIONS = 8
"""For what needs a second one while it streams; given back at once."""
_BUSY_TIMEOUT_MS = 10_000
_CONNECT_TIMEOUT_S = 5
_SCHEMES = {"postgresql": "postgresql+psycopg", "postgres": "postgresql+psycopg"}


def parse_address(address: str) -> URL:
    """Turn ``postgresql://...`` or the path of a file into SQLAlchemy's URL.

    Raises:
        PowerlabError: the address has a scheme that powerlab does not speak, or is no URL at all.
    """
    if not address:
        raise PowerlabError("no database is named; give the path of a file or a postgresql:// address.")
    if "://" not in address:
        return URL.create("sqlite", database=address)
    try:
        url = make_url(address)
    except (ArgumentError, ValueError) as error:
        raise PowerlabError(
            f"the database address cannot be read ({error}); write postgresql://user@host/name."
        ) from error
    scheme = _SCHEMES.get(url.drivername, url.drivername)
    if scheme not in ("sqlite", "postgresql+psycopg"):
        raise PowerlabError(
            f"databases of the kind {url.drivername!r} are not supported; give the path of a file (SQLite) "
            "or a postgresql:// address."
        )
    return url.set(drivername=scheme)


def make_engine(address: str) -> Engine:
    """Return an engine for a path or URL; nothing is opened yet."""
    url = parse_address(address)
    if url.get_backend_name() == "sqlite":
        # check_same_thread: the pool hands a connection to one thread at a time, but not always the one that made it.
        engine = create_engine(
            url,
            connect_args={"check_same_thread": False, "timeout": _BUSY_TIMEOUT_MS / 1000},
            json_deserializer=msgspec.json.decode,
        )
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin)
        return engine
    return create_engine(
        url,
        pool_size=CONNECTIONS,
        max_overflow=_MORE_CONNECTIONS,
        pool_timeout=_CONNECT_TIMEOUT_S,
        pool_pre_ping=True,
        connect_args={"connect_timeout": _CONNECT_TIMEOUT_S},
        json_deserializer=msgspec.json.decode,
    )


@contextmanager
def changing_tables(engine: Engine) -> Iterator[Connection]:
    """Yield a connection in whose one transaction tables may be changed; it commits at the end.

    To change a table SQLite copies it and drops the old one, which would count as deleting rows that others refer to
    (https://www.sqlite.org/lang_altertable.html, section 7): references are checked once, before the commit.

    Raises:
        PowerlabError: the change would leave a row that refers to nothing.
    """
    with engine.connect().execution_options(**{WRITE_OPTION: True}) as connection:
        raw = connection.connection.driver_connection
        if isinstance(raw, sqlite3.Connection):
            connection.detach()  # nobody else shall get a connection without references
            raw.execute("PRAGMA foreign_keys = OFF")
        yield connection
        if isinstance(raw, sqlite3.Connection):
            dangling = connection.exec_driver_sql("PRAGMA foreign_key_check").first()
            if dangling is not None:
                raise PowerlabError(
                    f"the tables cannot be changed: a row of {dangling[0]} refers to a missing row of {dangling[2]}; "
                    "restore the database from a copy, or start a new one."
                )
        connection.commit()


def _set_up_sqlite(connection: sqlite3.Connection, _entry: ConnectionPoolEntry) -> None:
    # None: sqlite3 opens no transactions of its own accord, so that _begin decides of which kind they are.
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout = {_BUSY_TIMEOUT_MS}",
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    """Open a transaction; one that will write takes the lock first.

    A deferred transaction that reads and then writes fails at once, without waiting, where somebody wrote in between
    (https://www.sqlite.org/isolation.html); BEGIN IMMEDIATE waits for its turn instead.
    """
    writes = connection.get_execution_options().get(WRITE_OPTION, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
