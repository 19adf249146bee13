"""Monthly partitions of ``trace_chunk`` on PostgreSQL; nothing on SQLite.

A chunk lies in the month in which its run arrived, UTC. Months are made ahead, by whoever opens the database and by
servers every hour; a chunk whose month nobody has made lies in the default partition, and moves once somebody makes it.

To drop a month locks the table of chunks, to add one those of runs and rails as well. Whoever changes months waits for
each lock for so short a time, and then lets go of all and tries again, that writers who wait for it wait for less than
a second: PostgreSQL looks for deadlocks no sooner, and undoes no write on its behalf
(https://www.postgresql.org/docs/current/runtime-config-locks.html).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import OperationalError

AHEAD = 2
"""Months after the present one that have partitions already."""
TRIES = 40
"""How often locks are asked for, within about four seconds."""
_WAIT_MS = 50
_LOCK_KEY = 0x706C6D6F6E746873
"""PostgreSQL's advisory lock under which months come and go: "plmonths" in ASCII."""
_LOCK_NOT_AVAILABLE = "55P03"
_Result = TypeVar("_Result")


def month_of(at: datetime, later: int = 0) -> datetime:
    """Return when the month that holds a time begins, in UTC, or one that comes so many months later than that."""
    own = at.astimezone(UTC)
    months = 12 * own.year + own.month - 1 + later
    return datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC)


def partitions(connection: Connection) -> dict[str, datetime]:
    """Return when each month that has a partition begins, by the partition's name, the oldest first."""
    wanted = text(
        "SELECT relname FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid "
        "WHERE inhparent = to_regclass('trace_chunk') AND relname ~ '^trace_chunk_[0-9]{6}$' ORDER BY relname"
    )
    names: list[str] = list(connection.scalars(wanted))
    return {name: datetime(int(name[-6:-2]), int(name[-2:]), 1, tzinfo=UTC) for name in names}


def make_ahead(engine: Engine, now: datetime) -> list[str]:
    """Make this month and the next ones where they are missing; see :func:`make_months`."""
    return make_months(engine, [month_of(now, later) for later in range(AHEAD + 1)])


def make_months(engine: Engine, months: Iterable[datetime]) -> list[str]:
    """Make the partitions of months, each given by its beginning, where they are missing.

    Returns:
        the names of those that were made here.

    Raises:
        OperationalError: somebody reads or writes the table for so long that the locks cannot be had now.
    """
    there = _there(engine)
    if there is None:
        return []
    missing = [month for month in months if _name(month) not in there]
    return [_name(month) for month in missing if _locked(engine, partial(_make, month))]


def drop_months(engine: Engine, before: datetime) -> int:
    """Drop the partitions of all months that were over at a time; return how many chunks went.

    Raises:
        OperationalError: as :func:`make_months` does; months that went before that are gone.
    """
    count = 0
    for name, month in (_there(engine) or {}).items():
        if month_of(month, 1) <= before:
            own = _locked(engine, partial(_count, name))  # by itself: it takes its time, and nobody adds to it now
            count += own if _locked(engine, partial(_drop, name)) else 0
    return count


def _there(engine: Engine) -> dict[str, datetime] | None:
    """Return the months that there are; None where a database has no partitions."""
    if engine.dialect.name != "postgresql":
        return None
    with engine.connect() as connection:
        return partitions(connection)


def _name(month: datetime) -> str:
    return f"trace_chunk_{month:%Y%m}"


def _locked(engine: Engine, change: Callable[[Connection], _Result]) -> _Result:
    """Carry out a change in a transaction of its own, alone; ask again where a lock is not to be had at once."""
    for left in reversed(range(TRIES)):
        try:
            with engine.begin() as connection:
                connection.execute(text(f"SET LOCAL lock_timeout = {_WAIT_MS}"))
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
                return change(connection)
        except OperationalError as error:
            if not left or getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
        time.sleep(random.uniform(0, 2 * _WAIT_MS / 1000))  # noqa: S311 - nothing secret
    raise AssertionError("the last try returns or raises")


def _make(month: datetime, connection: Connection) -> bool:
    """Make a month and move there what came before it was made; False where somebody else was quicker."""
    name = _name(month)
    if name in partitions(connection):
        return False
    first, following = month.isoformat(), month_of(month, 1).isoformat()
    # Nobody may put a chunk of this month into the default partition between the move and the end.
    connection.execute(text("LOCK TABLE trace_chunk_default IN ACCESS EXCLUSIVE MODE"))
    connection.execute(text(f"CREATE TABLE {name} (LIKE trace_chunk INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"))
    early = "DELETE FROM trace_chunk_default WHERE received_at >= :first AND received_at < :following RETURNING *"
    moved = text(f"WITH early AS ({early}) INSERT INTO {name} SELECT * FROM early")  # noqa: S608
    connection.execute(moved, {"first": month, "following": month_of(month, 1)})
    # PARTITION OF would lock the whole table; to attach a finished one lets others read and write the other months.
    bounds = f"FROM ('{first}') TO ('{following}')"
    connection.execute(text(f"ALTER TABLE trace_chunk ATTACH PARTITION {name} FOR VALUES {bounds}"))
    return True


def _count(name: str, connection: Connection) -> int:
    """Count a month's chunks; 0 where somebody else was quicker to drop it."""
    if name not in partitions(connection):
        return 0
    return connection.scalar(text(f"SELECT count(*) FROM {name}")) or 0  # noqa: S608


def _drop(name: str, connection: Connection) -> bool:
    """Drop a month; False where somebody else was quicker."""
    if name not in partitions(connection):
        return False
    connection.execute(text(f"DROP TABLE {name}"))
    return True
