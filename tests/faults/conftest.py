"""A server with short leases, the shim, and an agent on a board."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_server import Server
from faults.lives import FAULTS, Lives, Shim, start_lives
from memory import memory_folder
from powerlab.store import Store, open_store
from requires import require_program

ENOUGH_BYTES = 1 << 29


@pytest.fixture(scope="session")
def quick_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder in memory, where there is room for one: whoever is killed loses nothing that the kernel has by then.

    So the tests of kills find the same there, and wait for no disk, of which an agent's life waits some hundred times.
    """
    memory = memory_folder(ENOUGH_BYTES)
    if memory is None:
        yield tmp_path_factory.mktemp("disk")
        return
    with tempfile.TemporaryDirectory(prefix="powerlab-faults-", dir=memory) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Shim:
    compiler = require_program("gcc", "gcc")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, FAULTS / "shim.c"]
    subprocess.run([*map(str, command), "-ldl"], check=True)
    return Shim(library)


@pytest.fixture(scope="session")
def server(quick_disk: Path) -> Iterator[Server]:
    """A server whose leases run out in 0.4 s."""
    server = Server(database=quick_disk / "powerlab.db", command=(str(FAULTS / "short_server.py"),))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def stored(server: Server) -> Iterator[Store]:
    """The server's database, seen from beside it."""
    with closing(open_store(server.database)) as store:
        yield store


@pytest.fixture(scope="session")
def lives(shim: Shim, server: Server, quick_disk: Path) -> Iterator[Lives]:
    with start_lives(shim, server.enrol(), quick_disk / "agent") as started:
        yield started
