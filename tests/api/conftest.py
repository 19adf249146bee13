"""The service over an empty SQLite database, with an enrolled device and a queued sweep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient

from fresh_store import fresh_store
from powerlab.protocol.messages import Lease, LeaseReply
from powerlab.store import Store
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from server_examples import PLAN, Clock, capabilities, device


def body(message: object) -> Any:
    return json.loads(msgspec.json.encode(message))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = fresh_store(tmp_path / "powerlab.db", clock)
    yield store
    store.close()


@pytest.fixture
def client(store: Store) -> Iterator[TestClient]:
    with TestClient(create_app(store, Settings(max_body_bytes=500_000))) as client:
        yield client


@dataclass
class Agent:
    """A device's agent, speaking through the test client."""

    client: TestClient
    device_id: str
    token: str

    def send(self, method: str, path: str, message: object) -> Any:
        headers = {"Authorization": f"Bearer {self.token}"}
        return self.client.request(method, f"/api/v1{path}", json=body(message), headers=headers)

    def lease(self) -> Lease | None:
        reply = self.send("POST", "/jobs/lease", {})
        assert reply.status_code == 200, reply.text
        return msgspec.json.decode(reply.content, type=LeaseReply).lease


def make_agent(client: TestClient, name: str) -> Agent:
    code = client.post("/api/v1/enrolment-codes", json={}).json()["code"]
    said = {"code": code, "device": body(device(name)), "capabilities": body(capabilities())}
    reply = client.post("/api/v1/agents", json=said)
    assert reply.status_code == 201, reply.text
    return Agent(client, **reply.json())


@pytest.fixture
def agent(client: TestClient) -> Agent:
    return make_agent(client, "board-1")


@pytest.fixture
def stranger(client: TestClient) -> Agent:
    return make_agent(client, "board-2")


@pytest.fixture
def sweep_id(client: TestClient, agent: Agent) -> str:
    reply = client.post("/api/v1/sweeps", json={"device_id": agent.device_id, "plan": body(PLAN)})
    assert reply.status_code == 201, reply.text
    return str(reply.json()["id"])


@pytest.fixture
def lease(agent: Agent, sweep_id: str) -> Lease:
    held = agent.lease()
    assert held is not None
    return held
