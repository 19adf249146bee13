"""What Alembic runs: the migrations on a connection given by powerlab, or on the URL given to the alembic command."""

from __future__ import annotations

import os

from alembic import context
from sqlalchemy import Connection

from powerlab.store.database import changing_tables, make_engine
from powerlab.store.tables import Base


def _migrate(connection: Connection) -> None:
    # SQLite cannot alter a constraint in place: Alembic's batch mode copies the table instead.
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


def _run() -> None:
    given: Connection | None = context.config.attributes.get("connection")
    if given is not None:
        _migrate(given)
        return
    address = os.environ.get("POWERLAB_DATABASE") or context.config.get_main_option("sqlalchemy.url") or ""
    engine = make_engine(address)
    with changing_tables(engine) as connection:
        _migrate(connection)
    engine.dispose()


if context.is_offline_mode():
    raise SystemExit("powerlab's migrations read the database they change; run them without --sql.")
_run()
