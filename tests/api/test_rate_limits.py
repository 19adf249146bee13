"""Who asks too often is told to wait, as a problem, and for how long."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from access_world import bearer, body, new_token
from fresh_store import fresh_store
from powerlab.access.limits import Limit, Limits
from powerlab.protocol.access import Role
from powerlab.store import Store
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from server_examples import capabilities, device


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = fresh_store(tmp_path / "powerlab.db")
    yield store
    store.close()


@contextmanager
def server(store: Store, seconds: Seconds, requests: int = 1000) -> Iterator[TestClient]:
    limits = Limits(
        requests=Limit(burst=requests, per_s=1, clock=seconds), guesses=Limit(burst=3, per_s=0.1, clock=seconds)
    )
    with TestClient(create_app(store, Settings(operator_token="s3cret-word", limits=limits))) as client:
        yield client


def statuses(client: TestClient, token: str, count: int) -> list[int]:
    return [client.get("/api/v1/devices", headers=bearer(token)).status_code for _ in range(count)]


def check_too_many(reply: Any, retry_after: str) -> None:
    assert reply.status_code == 429
    assert reply.headers["retry-after"] == retry_after
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["type"].endswith("/too-many-requests")
    assert f"try again in {retry_after} s" in reply.json()["detail"]


def test_a_token_has_so_many_requests_and_others_have_their_own(store: Store, seconds: Seconds) -> None:
    alice, bob = (new_token(store, name) for name in ("alice", "bob"))
    with server(store, seconds, requests=5) as client:
        assert statuses(client, alice, 7) == [200] * 5 + [429] * 2
        assert statuses(client, bob, 2) == [200] * 2
        check_too_many(client.get("/api/v1/devices", headers=bearer(alice)), "1")
        seconds.now += 2
        assert statuses(client, alice, 3) == [200, 200, 429]


def test_the_configured_token_cannot_be_tried_out(store: Store, seconds: Seconds) -> None:
    alice = new_token(store, "alice", Role.ADMIN)
    with server(store, seconds) as client:
        assert [statuses(client, f"s3cret-{number}", 1) for number in range(3)] == [[401]] * 3
        check_too_many(client.get("/api/v1/devices", headers=bearer("s3cret-3")), "10")
        assert statuses(client, "s3cret-word", 1) == [429]  # nothing tells a right guess from a wrong one
        assert statuses(client, alice, 1) == [200]  # what cannot be guessed is not held up
        seconds.now += 10
        assert statuses(client, "s3cret-word", 1) == [200]


def test_enrolment_codes_cannot_be_tried_out(store: Store, seconds: Seconds) -> None:
    with server(store, seconds) as client:
        code = client.post("/api/v1/enrolment-codes", json={}, headers=bearer("s3cret-word")).json()["code"]

        def enrol(word: str) -> Any:
            said = {"code": word, "device": body(device()), "capabilities": body(capabilities())}
            return client.post("/api/v1/agents", json=said)

        assert [enrol(f"guess-{number}").status_code for number in range(3)] == [401] * 3
        check_too_many(enrol(code), "10")
        seconds.now += 10
        assert enrol(code).status_code == 201


def test_a_whole_laboratory_enrols_at_once(store: Store, seconds: Seconds) -> None:
    with server(store, seconds) as client:
        for number in range(20):
            code = client.post("/api/v1/enrolment-codes", json={}, headers=bearer("s3cret-word")).json()["code"]
            said = {"code": code, "device": body(device(f"board-{number}")), "capabilities": body(capabilities())}
            assert client.post("/api/v1/agents", json=said).status_code == 201


def test_health_is_always_told(store: Store, seconds: Seconds) -> None:
    with server(store, seconds, requests=1) as client:
        assert {client.get("/api/v1/health").status_code for _ in range(20)} == {200}
