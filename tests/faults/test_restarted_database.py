"""PostgreSQL crashes and comes back while an agent hands in what it measures."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent_server import Server
from faults.lives import FAULTS, PLAN, Shim, start_lives
from postgres_cluster import Cluster, running_cluster
from powerlab.store import Store, open_store

pytestmark = pytest.mark.campaign(minutes=0.5)

RESTARTS = int(os.environ.get("POWERLAB_FAULT_DATABASE_RESTARTS", "3"))
_SETTINGS = ("shared_buffers=16MB", "max_connections=40")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster(_SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def postgres_server(cluster: Cluster) -> Iterator[Server]:
    server = Server(database=cluster.address, command=(str(FAULTS / "short_server.py"),))
    server.start()
    yield server
    server.kill()


@pytest.fixture(scope="module")
def postgres_store(cluster: Cluster, postgres_server: Server) -> Iterator[Store]:
    with closing(open_store(cluster.address)) as store:
        yield store


def test_a_database_that_is_restarted_in_a_sweep_loses_nothing(
    cluster: Cluster, postgres_server: Server, postgres_store: Store, shim: Shim, tmp_path: Path
) -> None:
    chance, within = random.Random(11), 0
    with start_lives(shim, postgres_server.enrol(), tmp_path / "agent") as lives:
        for _ in range(RESTARTS):
            sweep_id = postgres_server.create_sweep(lives.identity, PLAN)
            lives.start()
            time.sleep(0.2 * chance.random())
            within += not lives.has_ended()
            cluster.stop()
            cluster.start()
            lives.ended()
            lives.finish(postgres_store, sweep_id)
            lives.check(postgres_store, sweep_id)
    assert postgres_server.process.poll() is None, "the server has outlived it"
    assert within
    sys.stdout.write(f"{RESTARTS} restarts of the database, {within} of them within a life of the agent\n")
