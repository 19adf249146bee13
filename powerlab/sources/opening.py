"""Opens the source that an address means; without one the server of POWERLAB_SERVER, else what was measured here."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.client.transport import DEFAULT_SERVER
from powerlab.domain.errors import PowerlabError
from powerlab.sources.results_file import FileSource
from powerlab.sources.source import Source
from powerlab.sources.trace_store import open_trace_store
from powerlab.state_dir import state_dir

if TYPE_CHECKING:
    from powerlab.store import Store

SERVERS = ("http://", "https://")


def open_address(address: str | None) -> Source:
    """Open a source; the caller closes it.

    Args:
        address: a server's, a database's, or the path of a database or a results file; None for POWERLAB_SERVER, and
            where that is not set for what this machine has measured.

    Raises:
        PowerlabError: there is no such source, or it cannot be used.
    """
    found = address or address_of_environment()
    return _local() if found is None else _named(found)


def address_of_environment() -> str | None:
    """Return the server that POWERLAB_SERVER names; None where it names none."""
    return os.environ.get("POWERLAB_SERVER") or None


def default_store() -> Path:
    """Return where the local database lies."""
    return state_dir() / "powerlab.db"


def kept_files(beginning: str = "") -> list[Path]:
    """Return the results files of sweeps that this machine has measured, those whose identifier begins so."""
    return sorted(path for path in (state_dir() / "sweeps").glob("*.ndjson") if path.stem.startswith(beginning))


def is_results_file(path: Path) -> bool:
    """Whether a path is a file of results, and no database: by its ending, or because it begins as JSON does.

    Raises:
        PowerlabError: it cannot be read.
    """
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return path.suffix in {".json", ".ndjson"} or file.read(1) == b"{"
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read ({error.strerror}); give a file that can be.") from error


def has_database_reader() -> bool:
    """Whether what reads databases is installed: the server extra."""
    return importlib.util.find_spec("sqlalchemy") is not None


def open_existing(address: str | None) -> Store:
    """Open a database: a file that does not exist is a mistake here, not a wish for a new one.

    Raises:
        PowerlabError: there is none, it cannot be used, or what reads databases is not installed.
    """
    chosen = address or str(default_store())
    if "://" not in chosen and not Path(chosen).exists():
        raise PowerlabError(
            f"there is no database {chosen}; `powerlab profile` makes one, or give another one, a results file, or "
            "the http:// address of a server."
        )
    if not has_database_reader():
        raise PowerlabError(
            "a database needs the server extra; pip install 'powerlab[server]', or read a results file or a server."
        )
    from powerlab.store import open_store

    return open_store(chosen, traces=open_trace_store())


def _named(address: str) -> Source:
    if address.startswith(SERVERS):
        from powerlab.client import Client
        from powerlab.sources.server import ServerSource

        return ServerSource(Client(address, os.environ.get("POWERLAB_TOKEN")))
    if "://" not in address and is_results_file(Path(address)):
        return FileSource([Path(address)])
    return _database(open_existing(address))


def _local() -> Source:
    """Return the local database; without one, or without what reads it, the results files of this machine."""
    if default_store().is_file() and has_database_reader():
        return _database(open_existing(None))
    kept = kept_files()
    if kept:
        return FileSource(kept, name=f"results files in {kept[0].parent}")
    raise PowerlabError(
        f"this machine has measured nothing yet (there is no database {default_store()}); `powerlab profile` measures, "
        f"--from {DEFAULT_SERVER} (or POWERLAB_SERVER) reads a server."
    )


def _database(store: Store) -> Source:
    from powerlab.sources.database import DatabaseSource

    return DatabaseSource(store)
