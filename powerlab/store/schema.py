"""Migration of a database's tables to the current version, with a clear message if that is impossible."""

from __future__ import annotations

from functools import cache
from importlib import resources

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, inspect, text

from powerlab.domain.errors import PowerlabError
from powerlab.store.tables import Base

_LOCK_KEY = 0x706F7765726C6162
"""PostgreSQL's advisory lock under which tables are changed: "powerlab" in ASCII."""


def alembic_config(connection: Connection | None = None) -> Config:
    """Return Alembic's settings for the migrations that are installed with this powerlab."""
    config = Config()
    config.set_main_option("script_location", str(resources.files("powerlab_migrations")))
    config.set_main_option("path_separator", "os")
    if connection is not None:
        config.attributes["connection"] = connection
    return config


@cache
def _installed() -> ScriptDirectory:
    """Return the migrations of this powerlab; reading them takes 40 ms, and a process may open many databases."""
    return ScriptDirectory.from_config(alembic_config())


def bring_up_to_date(connection: Connection) -> None:
    """Run the migrations that are missing, inside the connection's transaction.

    An empty SQLite file gets today's tables at once: its migrations, each of which copies a table, take a second. On
    PostgreSQL they also make what the models do not describe: a partition for every month.

    Raises:
        PowerlabError: the tables were made by a newer powerlab, or are not powerlab's.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK_KEY})
    scripts = _installed()
    current = MigrationContext.configure(connection).get_current_revision()
    known = {script.revision for script in scripts.walk_revisions()}
    if current is None:
        tables = inspect(connection).get_table_names()
        if tables:
            raise PowerlabError(
                f"the database holds tables that are not powerlab's ({', '.join(sorted(tables)[:3])}); "
                "give powerlab a database of its own."
            )
    elif current not in known:
        raise PowerlabError(
            f"the database was made by a newer powerlab (revision {current}, known here: {max(known)}); "
            "update powerlab, or use another database."
        )
    if current is None and connection.dialect.name == "sqlite":
        Base.metadata.create_all(connection)
        command.stamp(alembic_config(connection), "head")
    elif current != scripts.get_current_head():
        command.upgrade(alembic_config(connection), "head")
