"""Numbers that JSON or a database cannot hold, and requests that break off."""

from __future__ import annotations

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient

from powerlab.domain.run import Run
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, Lease, RunUpload
from powerlab_api.cursor import from_cursor
from powerlab_api.guard import Guard
from powerlab_api.settings import Settings
from server_examples import PLAN, make_run, make_trace, runs_of


def send(agent: Any, path: str, message: object, method: str = "PUT") -> Any:
    headers = {"Authorization": f"Bearer {agent.token}", "Content-Type": "application/json"}
    return agent.client.request(method, f"/api/v1{path}", content=json.dumps(message), headers=headers)


def upload_of(run: Run, lease: Lease) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(RunUpload(fencing_token=lease.fencing_token, run=run))
    return document


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "nan", "-Infinity"])
@pytest.mark.parametrize("field", ["value", "high"])
def test_a_figure_that_is_no_number_is_refused(
    agent: Any, sweep_id: str, lease: Lease, value: object, field: str
) -> None:
    run = runs_of(sweep_id)[0]
    message = upload_of(run, lease)
    message["run"]["metrics"][0][field] = value
    reply = send(agent, f"/runs/{run.id}", message)
    assert reply.status_code == 422, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert agent.client.get("/api/v1/runs").json()["items"] == []


@pytest.mark.parametrize("field", ["resolution", "relative_error", "update_period_s"])
def test_a_rail_whose_error_is_no_number_is_refused(
    client: TestClient, agent: Any, sweep_id: str, lease: Lease, field: str
) -> None:
    run = runs_of(sweep_id)[0]
    assert send(agent, f"/runs/{run.id}", upload_of(run, lease)).status_code == 201
    chunk = next(split(make_trace(count=10)))
    message: dict[str, Any] = msgspec.to_builtins(ChunkUpload(fencing_token=lease.fencing_token, chunk=chunk))
    message["chunk"]["rail"][field] = "nan"
    assert send(agent, f"/runs/{run.id}/traces/chunks", message).status_code == 422
    assert client.get(f"/api/v1/runs/{run.id}/traces").json() == []


def test_a_device_cannot_describe_itself_into_unreadability(client: TestClient, agent: Any) -> None:
    said = client.get(f"/api/v1/devices/{agent.device_id}").json()
    message = {"device": said["device"], "capabilities": said["capabilities"]}
    message["capabilities"]["sources"][0]["rails"][0]["resolution"] = "nan"
    assert send(agent, "/agents/me", message).status_code == 422
    message["capabilities"]["sources"][0]["rails"][0]["resolution"] = 0.5
    assert send(agent, "/agents/me", message).status_code == 204
    assert client.get("/api/v1/devices").status_code == 200


@pytest.mark.parametrize("wait_s", ["nan", "inf", float("nan"), float("-inf")])
def test_a_lease_request_does_not_wait_for_ever(agent: Any, wait_s: object) -> None:
    reply = send(agent, "/jobs/lease", {"wait_s": wait_s}, "POST")
    assert reply.status_code == 422
    assert "wait_s" in reply.json()["detail"]


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 10**30])
def test_numbers_beyond_the_database_are_a_problem(agent: Any, sweep_id: str, lease: Lease, number: int) -> None:
    run = runs_of(sweep_id)[0]
    message = upload_of(run, lease)
    message["run"]["window_ns"] = [min(number, 0), max(number, 0)]
    reply = send(agent, f"/runs/{run.id}", message)
    assert reply.status_code == 422
    assert "too large" in reply.json()["detail"]


@pytest.mark.parametrize("number", [2**31, 10**400])
@pytest.mark.parametrize("field", ["threads", "batch_sizes"])
def test_a_plan_with_a_huge_number_is_a_sentence(client: TestClient, agent: Any, field: str, number: int) -> None:
    plan = {"models": ["resnet50"], "threads": [1], field: [number]}
    reply = client.post("/api/v1/sweeps", json={"device_id": agent.device_id, "plan": plan})
    assert reply.status_code == 422
    assert "integers up to" in reply.json()["detail"]


def test_a_repeat_beyond_the_plan_is_refused(agent: Any, sweep_id: str, lease: Lease) -> None:
    run = make_run(sweep_id, PLAN.points()[0], PLAN.repeats)
    reply = send(agent, f"/runs/{run.id}", upload_of(run, lease))
    assert reply.status_code == 422
    assert "3 repeats" in reply.json()["detail"]


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00"])
def test_a_cursor_from_the_end_of_time(client: TestClient, time: str) -> None:

    cursor = base64.urlsafe_b64encode(json.dumps([time, "x"]).encode()).decode()
    for path in ("/runs", "/sweeps"):
        reply = client.get(f"/api/v1{path}", params={"cursor": cursor})
        assert reply.status_code == 422
        assert "start again" in reply.json()["detail"]
    assert from_cursor(None) is None


@pytest.mark.parametrize(
    ("header", "status"), [("*", 304), ("W/{}", 304), ('"a", W/{}', 304), ('"*"', 200), ("{}x", 200), ("", 200)]
)
def test_conditional_requests(agent: Any, sweep_id: str, lease: Lease, header: str, status: int) -> None:
    client = agent.client
    run = runs_of(sweep_id)[0]
    send(agent, f"/runs/{run.id}", upload_of(run, lease))
    etag = client.get(f"/api/v1/runs/{run.id}").headers["etag"]
    reply = client.get(f"/api/v1/runs/{run.id}", headers={"If-None-Match": header.replace("{}", etag)})
    assert reply.status_code == status
    assert client.get("/api/v1/runs/x", headers={"If-None-Match": "*"}).status_code == 404


def test_two_runs_with_other_figures_have_other_etags(
    client: TestClient, agent: Any, sweep_id: str, lease: Lease
) -> None:
    first, second, *_ = runs_of(sweep_id)
    for run in (first, replace(second, inference_count=1)):
        send(agent, f"/runs/{run.id}", upload_of(run, lease))
    etags = {client.get(f"/api/v1/runs/{run.id}").headers["etag"] for run in (first, second)}
    assert len(etags) == 2


def test_half_a_body_reaches_no_route() -> None:
    reached: list[str] = []
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        reached.append(scope["path"])

    messages = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(messages)

    async def take(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [], "method": "POST", "path": "/x"}
    # In a thread of its own: a browser's tests may have left an event loop in this one.
    with ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(lambda: asyncio.run(Guard(app, Settings())(scope, receive, take))).result()
    assert (reached, sent) == ([], [])
