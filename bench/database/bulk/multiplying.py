"""A small past many times over: what a database holds is copied inside it, which is quicker than loading it all."""

from __future__ import annotations

from sqlalchemy import Connection, Engine, text

from powerlab.store.database import WRITE_OPTION

_COPIED = ("sweep", "job", "point", "audit_event", "sweep_summary", "run", "run_metric")
_OWN_ID = "md5(t.{column}::text || copy)::uuid"
_CHANGED = {
    ("sweep", "id"): _OWN_ID,
    ("sweep", "cloned_from"): "NULL",
    ("sweep", "request_key"): "NULL",
    ("job", "id"): _OWN_ID,
    ("run", "id"): _OWN_ID,
    ("point", "id"): "t.id + copy * :points",
    ("audit_event", "id"): "t.id + copy * :events",
    ("run", "point_id"): "t.point_id + copy * :points",
}
_LATER = ("created_at", "received_at", "at")
"""Copies of a moment lie a little after it: nothing that lists by time meets thousands of the same moment."""


def multiply(engine: Engine, times: int) -> None:
    """Copy all sweeps and their runs, without traces, until there are so many times as many (PostgreSQL)."""
    with engine.connect().execution_options(**{WRITE_OPTION: True}) as connection:
        connection.execute(text("SET session_replication_role = replica"))
        connection.execute(text("SET work_mem = '256MB'"))
        connection.execute(text("SET maintenance_work_mem = '512MB'"))
        dropped = _drop_indexes(connection)
        counts = {
            "last": times - 1,
            "points": connection.scalar(text("SELECT max(id) FROM point")),
            "events": connection.scalar(text("SELECT max(id) FROM audit_event")),
        }
        for table in _COPIED:  # a statement reads the rows that were there before it, so no copy is copied
            connection.execute(text(_copy(connection, table)), counts)
        for table, column in (("device_tally", "run_count"), ("device_tally", "sample_count")):
            connection.execute(text(f"UPDATE {table} SET {column} = {column} * :times"), {"times": times})  # noqa: S608
        for definition in dropped:
            connection.execute(text(definition))
        for table in ("point", "audit_event"):
            found = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT max(id) FROM {table}))"  # noqa: S608
            connection.execute(text(found))
        connection.commit()


def _copy(connection: Connection, table: str) -> str:
    names = list(
        connection.scalars(
            text("SELECT column_name FROM information_schema.columns WHERE table_name = :table"), {"table": table}
        )
    )
    values = [_value(table, name) for name in names]
    return (
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "  # noqa: S608
        f"FROM {table} t CROSS JOIN generate_series(1, :last) copy"
    )


def _value(table: str, column: str) -> str:
    if (table, column) in _CHANGED:
        return _CHANGED[table, column].format(column=column)
    if column in ("sweep_id", "run_id") or (table, column) == ("audit_event", "subject"):
        return f"md5(t.{column}::text || copy)::uuid" + ("::text" if column == "subject" else "")
    if column in _LATER:
        return f"t.{column} + copy * interval '37 milliseconds'"
    return f"t.{column}"


def _drop_indexes(connection: Connection) -> list[str]:
    """Drop what is quicker made again at the end; returns the commands that do so."""
    found = connection.execute(
        text(
            "SELECT i.indexrelid::regclass::text, pg_get_indexdef(i.indexrelid) FROM pg_index i "
            "JOIN pg_class c ON c.oid = i.indrelid WHERE NOT i.indisunique AND NOT c.relispartition "
            "AND c.relname = ANY(:tables)"
        ),
        {"tables": list(_COPIED)},
    ).all()
    for name, _ in found:
        connection.execute(text(f"DROP INDEX {name}"))
    return [definition.replace(" ON ONLY ", " ON ") for _, definition in found]
