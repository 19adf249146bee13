"""Opens what ``--from`` names; by default the server of POWERLAB_SERVER, else what this machine has measured."""

from __future__ import annotations

import argparse
import importlib.util
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.cli.arguments.server import DEFAULT_SERVER, connect
from powerlab.cli.arguments.trace_store import open_trace_store
from powerlab.cli.stored.file_source import FileSource
from powerlab.cli.stored.local_database import default_store
from powerlab.cli.stored.server_source import ServerSource
from powerlab.cli.stored.source import Source
from powerlab.domain.errors import PowerlabError
from powerlab.state_dir import state_dir

if TYPE_CHECKING:
    from powerlab.store import Store

_SERVERS = ("http://", "https://")


@contextmanager
def open_source(args: argparse.Namespace) -> Iterator[Source]:
    """Open the source that the options name, and close it at the end.

    Raises:
        PowerlabError: there is no such source, or it cannot be used.
    """
    address = address_from(args)
    with closing(_local() if address is None else _named(address)) as source:
        yield source


def address_from(args: argparse.Namespace) -> str | None:
    """Return the address that the options or the environment name; None for what this machine has measured."""
    return args.read_from or os.environ.get("POWERLAB_SERVER") or None


def kept_files(beginning: str = "") -> list[Path]:
    """Return the results files of sweeps that this machine has measured, those whose identifier begins so."""
    return sorted(path for path in (state_dir() / "sweeps").glob("*.ndjson") if path.stem.startswith(beginning))


def _named(address: str) -> Source:
    if address.startswith(_SERVERS):
        return ServerSource(connect(address))
    if "://" not in address and _is_results_file(Path(address)):
        return FileSource([Path(address)])
    return _database(open_existing(address))


def _is_results_file(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            return path.suffix in {".json", ".ndjson"} or file.read(1) == b"{"
    except OSError as error:
        raise PowerlabError(f"{path} cannot be read ({error.strerror}); give a file that can be.") from error


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


def has_database_reader() -> bool:
    """Whether what reads databases is installed: the server extra."""
    return importlib.util.find_spec("sqlalchemy") is not None


def _database(store: Store) -> Source:
    from powerlab.cli.stored.database_source import DatabaseSource

    return DatabaseSource(store)


def open_existing(address: str | None) -> Store:
    """Open a database: a file that does not exist is a mistake here, not a wish for a new one.

    Raises:
        PowerlabError: there is none, it cannot be used, or what reads databases is not installed.
    """
    chosen = address or str(default_store())
    if "://" not in chosen and not Path(chosen).exists():
        raise PowerlabError(
            f"there is no database {chosen}; `powerlab profile` makes one, or give another one with --database, or "
            "the http:// address of a server."
        )
    if not has_database_reader():
        raise PowerlabError("a database needs the server extra; install `powerlab[server]`, or read a server.")
    from powerlab.store import open_store

    return open_store(chosen, traces=open_trace_store())
