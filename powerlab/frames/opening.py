"""Which records a source means."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from powerlab.client import Client
from powerlab.domain.errors import PowerlabError
from powerlab.frames.frame import needed
from powerlab.frames.records import Records
from powerlab.frames.results_file import FileRecords
from powerlab.frames.server import ServerRecords
from powerlab.state_dir import state_dir

if TYPE_CHECKING:
    from powerlab.store import Store

Source: TypeAlias = Union[Client, "Store", str, Path, None]
"""A client or a server's address, an open database, its path or address, a results file; None: the local database."""
_SERVERS = ("http://", "https://")


@contextmanager
def opened(source: Source) -> Iterator[Records]:
    """Open a source, and close at the end what was opened here.

    Raises:
        PowerlabError: there is no such source, it cannot be read, or an extra is missing.
    """
    needed("pyarrow")
    if isinstance(source, Client):
        yield ServerRecords(source)
    elif isinstance(source, str) and source.startswith(_SERVERS):
        yield ServerRecords(Client(source, os.environ.get("POWERLAB_TOKEN")))
    elif isinstance(source, str) and "://" in source:
        with _database(source) as records:
            yield records
    elif source is None or isinstance(source, str | Path):
        with _file(state_dir() / "powerlab.db" if source is None else Path(source)) as records:
            yield records
    else:
        from powerlab.frames.database import DatabaseRecords

        yield DatabaseRecords(source)


@contextmanager
def _file(path: Path) -> Iterator[Records]:
    """Open a database or a results file: the latter is JSON."""
    try:
        with path.open("rb") as file:
            is_json = file.read(1) == b"{"
    except OSError as error:
        raise PowerlabError(
            f"{path} cannot be read ({error.strerror}); give a database, a results file, or a server's http:// address."
        ) from error
    if is_json:
        yield FileRecords(path)
    else:
        with _database(str(path)) as records:
            yield records


@contextmanager
def _database(address: str) -> Iterator[Records]:
    if importlib.util.find_spec("sqlalchemy") is None:
        raise PowerlabError("a database needs the server extra; pip install 'powerlab[server]', or read a server.")
    from powerlab.frames.database import DatabaseRecords
    from powerlab.store import open_store
    from powerlab.store.traces.registry import open_traces

    traces = open_traces(os.environ.get("POWERLAB_TRACES"), os.environ.get("POWERLAB_TRACES_QUERY"))
    with closing(open_store(address, traces=traces)) as store:
        yield DatabaseRecords(store)
