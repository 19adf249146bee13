"""A server with short leases, the shim, and an agent on a board."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from agent_server import Server
from faults.lives import FAULTS, Lives, Shim, start_lives
from powerlab.store import Store, open_store
from requires import require_program


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Shim:
    compiler = require_program("gcc", "gcc")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-o", library, FAULTS / "shim.c"]
    subprocess.run([*map(str, command), "-ldl"], check=True)
    return Shim(library)


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose leases run out in 0.4 s."""
    database = tmp_path_factory.mktemp("server") / "powerlab.db"
    server = Server(database=database, command=(str(FAULTS / "short_server.py"),))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="session")
def stored(server: Server) -> Iterator[Store]:
    """The server's database, seen from beside it."""
    with closing(open_store(server.database)) as store:
        yield store


@pytest.fixture(scope="session")
def lives(shim: Shim, server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with start_lives(shim, server.enrol(), tmp_path_factory.mktemp("agent")) as started:
        yield started
