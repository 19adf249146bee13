"""An empty store, on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fresh_store import fresh_database, fresh_store
from postgres_cluster import postgres_cluster
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.store import Store, open_store
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from server_examples import PLAN, Clock, capabilities, device

ALWAYS_ON_BOTH = {"test_job_machine", "test_jobs", "test_months", "test_races", "test_runs", "test_schema"}
"""Files whose tests run on PostgreSQL in the fast tests, too: what is locked, counted or refused by the database."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the other files' tests on PostgreSQL, each of which copies a database, to the campaigns."""
    here = Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.path.stem not in ALWAYS_ON_BOTH:
            params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
            if params.get("address") == "postgresql":
                item.add_marker("campaign")


@pytest.fixture(scope="session")
def cluster() -> Iterator[str]:
    with postgres_cluster() as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Yield the address of a new database that has its tables."""
    if request.param == "sqlite":
        fresh_store(tmp_path / "powerlab.db").close()
        yield str(tmp_path / "powerlab.db")
        return
    with fresh_database(request.getfixturevalue("cluster")) as database:
        yield database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(address: str, clock: Clock) -> Iterator[Store]:
    store = open_store(address, clock)
    yield store
    store.close()


@pytest.fixture
def device_id(store: Store) -> str:
    return add_device(store, "board-1")


def add_device(store: Store, name: str) -> str:
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        request = EnrolRequest(code=code, device=device(name), capabilities=capabilities())
        return enrol(session, request, store.clock()).device_id


@pytest.fixture
def sweep_id(store: Store, device_id: str) -> str:
    with store.write() as session:
        return create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), store.clock())


@pytest.fixture
def other_id(store: Store) -> str:
    return add_device(store, "board-2")
