"""What a server is and keeps, for its admins: versions, where the database is and how large, what was removed.

Nothing is counted row by row: runs and samples come from ``device_tally``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from powerlab import __version__
from powerlab.protocol import PROTOCOL_VERSION
from powerlab.store.connection import Store
from powerlab.store.tables import DeviceRow, DeviceTallyRow, RetirementRow, SweepRow
from powerlab.store.tables.retirement import Kind
from powerlab.store.traces.database import DatabaseTraceStore


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """A server as it is now.

    Attributes:
        version: of powerlab.
        protocol: the version that its agents must speak.
        database: SQLite or PostgreSQL, with its version.
        address: where the database is, without a password.
        size_bytes: of the database: of a file its pages, of PostgreSQL what its tables take.
        traces_in_database: whether samples lie in the database; else in files, which are not part of its size.
        devices: devices that were ever enrolled.
        sweeps: sweeps that were ever asked for and are there.
        runs: runs that devices have ever stored.
        samples: samples that they have ever stored.
        removed_before: of each kind of which older months were removed, from when on it is there.
    """

    version: str
    protocol: int
    database: str
    address: str
    size_bytes: int
    traces_in_database: bool
    devices: int
    sweeps: int
    runs: int
    samples: int
    removed_before: Mapping[Kind, datetime]


def server_facts(session: Session, store: Store) -> ServerFacts:
    """Return the facts; takes a handful of queries."""
    tally = select(func.sum(DeviceTallyRow.run_count), func.sum(DeviceTallyRow.sample_count))
    runs, samples = session.execute(tally).one()
    database, size_bytes = _database(session)
    return ServerFacts(
        version=__version__,
        protocol=PROTOCOL_VERSION,
        database=database,
        address=store.address,
        size_bytes=size_bytes,
        traces_in_database=isinstance(store.traces, DatabaseTraceStore),
        devices=session.scalar(select(func.count()).select_from(DeviceRow)) or 0,
        sweeps=session.scalar(select(func.count()).select_from(SweepRow)) or 0,
        runs=int(runs or 0),
        samples=int(samples or 0),
        removed_before={Kind(row.kind): row.before for row in session.scalars(select(RetirementRow))},
    )


def _database(session: Session) -> tuple[str, int]:
    """Return the name and version of the database, and its size in bytes."""
    if session.get_bind().dialect.name == "postgresql":
        version = session.scalar(text("SHOW server_version"))
        size = session.scalar(text("SELECT pg_database_size(current_database())"))
        return f"PostgreSQL {version}", int(size or 0)
    version = session.scalar(text("SELECT sqlite_version()"))
    pages, page_bytes = (session.scalar(text(f"PRAGMA {name}")) for name in ("page_count", "page_size"))
    return f"SQLite {version}", int(pages or 0) * int(page_bytes or 0)
