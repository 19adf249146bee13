"""Everything that goes wrong is an RFC 9457 problem with one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunksUpload, ChunkUpload, Fence, Lease, RunUpload
from powerlab.store import Store
from powerlab_api.app import create_app
from powerlab_api.settings import LOOPBACK_NAMES, Settings
from server_examples import make_trace, runs_of


def check(reply: Any, status: int, words: str, kind: str | None = None) -> None:
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["status"] == status
    assert words in problem["detail"]
    assert "Traceback" not in reply.text
    assert "\n" not in problem["detail"]
    if kind is not None:
        assert problem["type"].endswith(f"/{kind}")


@pytest.mark.parametrize(
    "path", ["/devices/x", "/devices/x/modes", "/sweeps/x", "/sweeps/x/points", "/runs/x", "/runs/x/traces"]
)
def test_what_is_not_there(client: TestClient, path: str) -> None:
    check(client.get(f"/api/v1{path}"), 404, "'x'", "not-found")


def test_no_such_address(client: TestClient) -> None:
    check(client.get("/api/v1/watts"), 404, "/api/v1/watts")
    check(client.delete("/api/v1/health"), 405, "Method Not Allowed")


@pytest.mark.parametrize(
    "content", [b"{", b"", b"[]", b'{"device_id": 7}', b"\xff\xfe", b'{"device_id": "x", "plan": {"models": 3}}']
)
def test_malformed_bodies(client: TestClient, content: bytes) -> None:
    reply = client.post("/api/v1/sweeps", content=content, headers={"Content-Type": "application/json"})
    check(reply, reply.status_code, "")
    assert reply.status_code in (400, 422)


@pytest.mark.parametrize("query", ["limit=0", "limit=many", "cursor=%21%21", "cursor=e30=", "verdict=nice"])
def test_malformed_queries(client: TestClient, query: str) -> None:
    check(client.get(f"/api/v1/runs?{query}"), 422, "")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"threads": [9]}, "4 cores"),
        ({"modes": ["TURBO"]}, "TURBO"),
        ({"modes": ["REBOOT"]}, "reboot"),
        ({"repeats": 2}, "repeats"),
        ({"models": []}, "models"),
    ],
)
def test_an_impossible_plan(client: TestClient, agent: Any, change: dict[str, Any], words: str) -> None:
    plan = {"models": ["resnet50"], "threads": [1], **change}
    check(
        client.post("/api/v1/sweeps", json={"device_id": agent.device_id, "plan": plan}), 422, words, "cannot-be-done"
    )


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer guess"}, {"Authorization": "Basic Zm9v"}])
def test_a_wrong_token(client: TestClient, headers: dict[str, str]) -> None:
    reply = client.post("/api/v1/jobs/lease", json={}, headers=headers)
    check(reply, 401, "token", "unauthorised")
    assert reply.headers["www-authenticate"] == "Bearer"


def test_a_wrong_code(client: TestClient, agent: Any) -> None:
    said = client.get(f"/api/v1/devices/{agent.device_id}").json()
    message = {"code": "guess", "device": said["device"], "capabilities": said["capabilities"]}
    check(client.post("/api/v1/agents", json=message), 401, "code", "unauthorised")


def test_a_wrong_fencing_token(agent: Any, sweep_id: str, lease: Lease) -> None:
    run = runs_of(sweep_id)[0]
    stale = RunUpload(fencing_token=lease.fencing_token + 1, run=run)
    check(agent.send("PUT", f"/runs/{run.id}", stale), 409, "given out again", "stale-lease")
    fence = Fence(fencing_token=0)
    for action in ("heartbeat", "release"):
        check(agent.send("POST", f"/jobs/{lease.job_id}/{action}", fence), 409, "fencing token 0", "stale-lease")


def test_other_devices_rows(agent: Any, stranger: Any, sweep_id: str, lease: Lease, trace_of: Any) -> None:
    run = runs_of(sweep_id)[0]
    message = RunUpload(fencing_token=lease.fencing_token, run=run)
    check(stranger.send("PUT", f"/runs/{run.id}", message), 403, "another device", "forbidden")
    fence = Fence(fencing_token=lease.fencing_token)
    for action in ("heartbeat", "release"):
        check(stranger.send("POST", f"/jobs/{lease.job_id}/{action}", fence), 403, "another device", "forbidden")
    over = {"fencing_token": lease.fencing_token, "state": "done"}
    check(stranger.send("POST", f"/jobs/{lease.job_id}/finish", over), 403, "another device", "forbidden")
    agent.send("PUT", f"/runs/{run.id}", message)
    check(stranger.send("PUT", f"/runs/{run.id}/traces/chunks", trace_of(lease)), 403, "another device", "forbidden")
    assert stranger.lease() is None


@pytest.fixture
def trace_of() -> Any:
    return lambda lease: ChunkUpload(fencing_token=lease.fencing_token, chunk=next(split(make_trace(count=10))))


def test_other_bytes_under_the_same_id(agent: Any, sweep_id: str, lease: Lease) -> None:
    run = runs_of(sweep_id)[0]
    agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=lease.fencing_token, run=run))
    other = RunUpload(fencing_token=lease.fencing_token, run=replace(run, inference_count=7))
    check(agent.send("PUT", f"/runs/{run.id}", other), 409, "different content", "conflict")
    check(agent.send("PUT", "/runs/elsewhere", other), 422, "elsewhere")


def test_a_damaged_chunk(agent: Any, sweep_id: str, lease: Lease, trace_of: Any) -> None:
    run = runs_of(sweep_id)[0]
    message = trace_of(lease)
    check(agent.send("PUT", f"/runs/{run.id}/traces/chunks", message), 404, "before its traces")
    agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=lease.fencing_token, run=run))
    damaged = replace(message, chunk=replace(message.chunk, sha256="0" * 64))
    check(agent.send("PUT", f"/runs/{run.id}/traces/chunks", damaged), 422, "sha256")


def test_one_damaged_chunk_among_others(client: TestClient, agent: Any, sweep_id: str, lease: Lease) -> None:
    run = runs_of(sweep_id)[0]
    agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=lease.fencing_token, run=run))
    good, bad = split(make_trace(count=20), 10)
    damaged = ChunksUpload(fencing_token=lease.fencing_token, chunks=(good, replace(bad, value_sum=0.0)))
    check(agent.send("POST", f"/runs/{run.id}/traces/chunks", damaged), 422, "sum")
    assert client.get(f"/api/v1/runs/{run.id}/traces").json() == []


def test_an_oversized_body(client: TestClient) -> None:
    big = b"[" + b"1," * 300_000 + b"1]"
    headers = {"Content-Type": "application/json"}
    check(client.post("/api/v1/sweeps", content=big, headers=headers), 413, "500000 bytes")

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(big), 10_000):
            yield big[start : start + 10_000]

    check(client.post("/api/v1/sweeps", content=pieces(), headers=headers), 413, "500000 bytes")


def test_an_unexpected_error_is_logged_and_not_shown(
    client: TestClient, agent: Any, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("UPDATE device_snapshot SET document = 'not JSON'"))
    check(client.get("/api/v1/devices"), 500, "its log says why", "unexpected")
    assert any(record.exc_info for record in caplog.records)


def test_a_database_that_is_gone(client: TestClient, agent: Any, store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(text("PRAGMA foreign_keys = OFF"))
        connection.execute(text("DROP TABLE trace_chunk"))
        connection.execute(text("DROP TABLE run_metric"))
        connection.execute(text("DROP TABLE run"))
    check(client.get("/api/v1/sweeps"), 503, "try again later", "no-database")


def test_a_server_on_loopback_answers_to_its_own_names_only(store: Store) -> None:
    app = create_app(store, Settings(allowed_hosts=LOOPBACK_NAMES))
    for name in ("127.0.0.1:8765", "localhost:8765", "LOCALHOST", "[::1]:8765"):
        assert TestClient(app).get("/api/v1/health", headers={"Host": name}).status_code == 200
    check(TestClient(app).get("/api/v1/health", headers={"Host": "evil.example"}), 421, "evil.example")


def test_the_configured_token_is_asked_for(store: Store) -> None:
    client = TestClient(create_app(store, Settings(operator_token="s3cret-word")))
    assert client.get("/api/v1/health").status_code == 200
    check(client.get("/api/v1/sweeps"), 401, "POWERLAB_TOKEN", "unauthorised")
    plan = {"device_id": "x", "plan": {"models": ["resnet50"], "threads": [1]}}
    for path, message in (("/enrolment-codes", {}), ("/sweeps", plan)):
        check(client.post(f"/api/v1{path}", json=message), 401, "token", "unauthorised")
        wrong = {"Authorization": "Bearer s3cret"}
        check(client.post(f"/api/v1{path}", json=message, headers=wrong), 401, "this token is unknown")
    right = {"Authorization": "Bearer s3cret-word"}
    assert client.post("/api/v1/enrolment-codes", json={}, headers=right).status_code == 201
