"""Loading rows by the million: COPY into PostgreSQL, one INSERT for many rows into SQLite."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb
from sqlalchemy import JSON, Boolean, Connection, Double, LargeBinary, Table
from sqlalchemy.types import BigInteger, DateTime, Integer

from powerlab.store.tables import Base
from powerlab.store.tables.base import UtcDateTime

_ROWS = 20_000
"""Rows of one table that wait for the next load."""


class Loader:
    """Takes rows of any table and loads them by the ten thousand; nothing checks what they refer to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._raw: Any = connection.connection.driver_connection
        connection.detach()  # nobody else shall get a connection with the settings below
        self._postgres = connection.dialect.name == "postgresql"
        self._waiting: defaultdict[Table, list[tuple[Any, ...]]] = defaultdict(list)
        if self._postgres:  # references hold by construction; asking for each of 40 million takes longer than all else
            connection.exec_driver_sql("SET session_replication_role = replica")
            connection.exec_driver_sql("SET synchronous_commit = off")
            connection.exec_driver_sql("SET maintenance_work_mem = '512MB'")
        else:
            self._raw.execute("PRAGMA foreign_keys = OFF")  # it does nothing inside a transaction
        self._indexes = [index for table in Base.metadata.sorted_tables for index in table.indexes]
        for index in self._indexes:  # sorted once at the end is several times faster than kept in order meanwhile
            index.drop(connection)

    def add(self, table: Table, row: Mapping[str, Any]) -> None:
        """Add a row; columns that are not named are NULL; JSON is given as its bytes."""
        waiting = self._waiting[table]
        waiting.append(tuple(self._value(column.type, row.get(column.name)) for column in table.columns))
        if len(waiting) == _ROWS:
            self._load(table, waiting)
            waiting.clear()

    def finish(self) -> None:
        """Load what waits, let columns that count by themselves go on after it, and make the indexes again."""
        for table, waiting in self._waiting.items():
            self._load(table, waiting)
        self._waiting.clear()
        for index in self._indexes:
            index.create(self._connection)
        if self._postgres:
            for table in ("workload", "point", "power_mode", "device_snapshot", "rail", "audit_event", "trace_chunk"):
                count = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"  # noqa: S608
                self._connection.exec_driver_sql(count)
        self._connection.commit()

    def _value(self, kind: Any, value: Any) -> Any:
        if value is None:
            return None
        if isinstance(kind, JSON):
            return Jsonb(value, dumps=_as_it_is) if self._postgres else value.decode()
        if isinstance(value, datetime) and not self._postgres:
            return value.replace(tzinfo=None).strftime("%Y-%m-%d %H:%M:%S.%f")
        return value

    def _load(self, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
        if not self._postgres:
            names = ", ".join(f'"{column.name}"' for column in table.columns)
            places = ", ".join("?" * len(table.columns))
            self._raw.executemany(f"INSERT INTO {table.name} ({names}) VALUES ({places})", rows)  # noqa: S608
            return
        columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
        command = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table.name), columns)
        with self._raw.cursor() as cursor, cursor.copy(command) as copy:
            copy.set_types([_postgres_type(column.type) for column in table.columns])
            for row in rows:
                copy.write_row(row)


def _as_it_is(encoded: bytes) -> bytes:
    return encoded


def _postgres_type(kind: Any) -> str:
    if isinstance(kind, UtcDateTime | DateTime):
        return "timestamptz"
    for types, name in (
        (JSON, "jsonb"), (LargeBinary, "bytea"), (Boolean, "bool"), (BigInteger, "int8"), (Integer, "int4"),
        (Double, "float8"),
    ):  # fmt: skip
        if isinstance(kind, types):
            return name
    return "text"
