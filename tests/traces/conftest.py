"""A database with a device and its sweep, whose traces lie in each of their homes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import pytest

from clickhouse_over_http import PASSWORD, USER, clickhouse_server
from fresh_store import fresh_database, fresh_store
from postgres_cluster import postgres_cluster
from powerlab.store import Store, open_store
from powerlab.store.traces.registry import open_traces
from s3_server import KEYS, s3_server
from server_examples import Clock
from trace_lab import Lab, lab_with


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    with postgres_cluster() as address:
        yield address


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    with s3_server() as address, pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        yield address


@pytest.fixture(scope="session")
def clickhouse() -> Iterator[str]:
    with clickhouse_server(**KEYS) as port:
        yield f"clickhouse://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:{port}"


def address_of(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of a new, empty home."""
    if kind == "s3":
        endpoint = request.getfixturevalue("s3")
        return f"s3://lab/{quote(tmp_path.name)}/deep?endpoint={endpoint}"
    return {"database": "database", "folder": f"file://{tmp_path}/traces%20of%20a%20'lab'"}[kind]


def opened(kind: str, request: pytest.FixtureRequest, tmp_path: Path, database: str | None = None) -> Store:
    """Open a store whose traces lie at ``database``, ``folder`` or ``s3``, read by what follows a ``+``."""
    place, _, engine = kind.partition("+")
    query = request.getfixturevalue("clickhouse") if engine else None
    traces = open_traces(address_of(place, request, tmp_path), query)
    if database is None:
        return fresh_store(tmp_path / "powerlab.db", Clock(), traces=traces)
    return open_store(database, Clock(), traces=traces)


@pytest.fixture(params=["database", "folder", "s3", "s3+clickhouse"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Traces in every home; in the last ones ClickHouse answers the questions."""
    store = opened(request.param, request, tmp_path)
    yield lab_with(store)
    store.close()


@pytest.fixture
def filed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Traces in a folder."""
    store = opened("folder", request, tmp_path)
    yield lab_with(store)
    store.close()


@pytest.fixture
def remote(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Traces in object storage."""
    store = opened("s3", request, tmp_path)
    yield lab_with(store)
    store.close()


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.campaign)])
def on_both(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    """Traces in a folder, on both databases."""
    with ExitStack() as stack:
        database = None
        if request.param == "postgresql":
            database = stack.enter_context(fresh_database(request.getfixturevalue("cluster")))
        store = opened("folder", request, tmp_path, database)
        yield lab_with(store)
        store.close()
