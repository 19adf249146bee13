"""A sweep's life over HTTP: asked for once, looked at, paused, resumed, cancelled, asked for again."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient

from powerlab.protocol.messages import Fence, Finish, Lease, RunUpload
from powerlab.protocol.records import JobPage, SweepPreview, SweepRecord
from powerlab.protocol.wire import to_document
from powerlab.store import open_store
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from server_examples import PLAN, runs_of


def post(client: TestClient, path: str, status: int = 200, request: Any = None, **headers: str) -> SweepRecord:
    reply = client.post(f"/api/v1{path}", json={} if request is None else request, headers=headers)
    assert reply.status_code == status, reply.text
    return msgspec.json.decode(reply.content, type=SweepRecord)


def wish_of(agent: Any, **changes: Any) -> dict[str, Any]:
    return {"device_id": agent.device_id, "plan": to_document(replace(PLAN, **changes))}


def test_a_running_sweep_is_paused_resumed_and_cancelled(
    client: TestClient, agent: Any, sweep_id: str, lease: Lease
) -> None:
    fence = Fence(fencing_token=lease.fencing_token)
    beat = f"/jobs/{lease.job_id}/heartbeat"
    assert agent.send("POST", beat, fence).json() == {"state": "running"}
    paused = post(client, f"/sweeps/{sweep_id}/pause")
    assert (paused.state, paused.held_until is None) == ("paused", False)
    assert agent.send("POST", beat, fence).json() == {"state": "paused"}
    run = runs_of(sweep_id)[0]
    for status in (201, 200):
        reply = agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=lease.fencing_token, run=run))
        assert reply.status_code == status
    assert agent.send("POST", f"/jobs/{lease.job_id}/release", fence).json() == {"state": "paused"}
    assert agent.lease() is None
    assert post(client, f"/sweeps/{sweep_id}/resume").state == "queued"
    again = agent.lease()
    assert [(one.point_id, one.repeat) for one in again.done] == [(run.point.id, run.repeat)]
    cancelled = post(client, f"/sweeps/{sweep_id}/cancel")
    assert (cancelled.state, cancelled.stored_run_count) == ("cancelled", 1)
    assert client.post(f"/api/v1/sweeps/{sweep_id}/resume").status_code == 409


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel"])
def test_what_is_over_or_not_there_is_a_problem(
    client: TestClient, agent: Any, sweep_id: str, lease: Lease, verb: str
) -> None:
    over = Finish(fencing_token=lease.fencing_token, state="done")
    assert agent.send("POST", f"/jobs/{lease.job_id}/finish", over).status_code == 204
    reply = client.post(f"/api/v1/sweeps/{sweep_id}/{verb}")
    assert (reply.status_code, "is done" in reply.json()["detail"]) == (409, True)
    assert reply.json()["type"].endswith("/conflict")
    assert client.post(f"/api/v1/sweeps/x/{verb}").status_code == 404


def test_asking_again_under_a_key_gives_the_same_sweep(client: TestClient, agent: Any) -> None:
    request, key = wish_of(agent), {"Idempotency-Key": "monday"}
    first = post(client, "/sweeps", 201, request, **key)
    again = client.post("/api/v1/sweeps", json=request, headers=key)
    assert (again.status_code, again.headers["location"]) == (200, f"/api/v1/sweeps/{first.id}")
    assert msgspec.json.decode(again.content, type=SweepRecord) == first
    other = client.post("/api/v1/sweeps", json=wish_of(agent, seed=5), headers=key)
    assert (other.status_code, first.id in other.json()["detail"]) == (409, True)
    assert post(client, "/sweeps", 201, request).id != first.id


def test_a_client_may_choose_the_identifier(client: TestClient, agent: Any) -> None:
    address = f"/api/v1/sweeps/{uuid.uuid4()}"
    replies = [client.put(address, json=wish_of(agent)) for _ in range(2)]
    assert [reply.status_code for reply in replies] == [201, 200]
    assert replies[0].json() == replies[1].json() == client.get(address).json()
    assert client.put(address, json=wish_of(agent, seed=5)).status_code == 409
    assert client.put("/api/v1/sweeps/monday", json=wish_of(agent)).status_code == 422


def test_a_clone_has_its_changes(client: TestClient, agent: Any, sweep_id: str) -> None:
    request = {"changes": {"threads": [2]}, "priority": 3}
    for status in (201, 200):
        clone = post(client, f"/sweeps/{sweep_id}/clone", status, request, **{"Idempotency-Key": "again"})
    assert (clone.cloned_from, clone.plan.threads, clone.priority) == (sweep_id, (2,), 3)
    assert clone.plan == replace(PLAN, threads=(2,))
    refused = client.post(f"/api/v1/sweeps/{sweep_id}/clone", json={"changes": {"threads": [99]}})
    assert (refused.status_code, "4 cores" in refused.json()["detail"]) == (422, True)


def test_a_preview_says_all_that_speaks_against_it(client: TestClient, agent: Any) -> None:
    def look(**changes: Any) -> SweepPreview:
        reply = client.post("/api/v1/sweeps/preview", json=wish_of(agent, **changes))
        assert reply.status_code == 200, reply.text
        return msgspec.json.decode(reply.content, type=SweepPreview)

    fine = look()
    assert (fine.point_count, fine.run_count, fine.complaints) == (8, 24, ())
    assert 0 < fine.expected_s <= fine.longest_s
    assert len(look(threads=(99,), modes=("TURBO",)).complaints) == 2
    assert client.get("/api/v1/sweeps").json()["items"] == []


def test_the_queue_is_read(client: TestClient, agent: Any, stranger: Any) -> None:
    made = [post(client, "/sweeps", 201, wish_of(one)).id for one in (agent, agent, stranger)]
    held = agent.lease()

    def queue(**request: Any) -> JobPage:
        reply = client.get("/api/v1/jobs", params=request)
        assert reply.status_code == 200, reply.text
        return msgspec.json.decode(reply.content, type=JobPage)

    first = queue(limit=2)
    rest = queue(limit=2, cursor=first.next_cursor)
    assert sorted(job.sweep_id for job in (*first.items, *rest.items)) == sorted(made)
    assert rest.next_cursor is None
    (running,) = queue(state="running").items
    assert (running.id, running.sweep_id) == (held.job_id, held.sweep_id)
    assert [job.sweep_id for job in queue(device_id=stranger.device_id).items] == [made[2]]
    assert client.get(f"/api/v1/jobs/{held.job_id}").json()["state"] == "running"
    assert client.get("/api/v1/jobs/x").status_code == 404


def test_changing_sweeps_needs_the_operators_token(tmp_path: Any) -> None:
    store = open_store(tmp_path / "p.db")
    with TestClient(create_app(store, Settings(operator_token="secret"))) as client:
        for verb in ("pause", "resume", "cancel", "clone"):
            assert client.post(f"/api/v1/sweeps/x/{verb}", json={}).status_code == 401
            allowed = client.post(f"/api/v1/sweeps/x/{verb}", json={}, headers={"Authorization": "Bearer secret"})
            assert allowed.status_code == 404
        request = {"device_id": "x", "plan": to_document(PLAN)}
        assert client.put(f"/api/v1/sweeps/{uuid.uuid4()}", json=request).status_code == 401
    store.close()


def test_the_examples_of_the_description_are_understood(client: TestClient, agent: Any, sweep_id: str) -> None:
    """A device that is named in an example is not there: everything else about it is right."""
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    for path in ("/api/v1/sweeps", "/api/v1/sweeps/preview", "/api/v1/sweeps/{sweep_id}/clone"):
        examples = paths[path]["post"]["requestBody"]["content"]["application/json"]["examples"]
        for example in examples.values():
            reply = client.post(path.format(sweep_id=sweep_id), json=example["value"])
            if "device_id" in example["value"]:
                assert (reply.status_code, "there is no device" in reply.text) == (404, True)
            else:
                assert reply.status_code in (201, 422), reply.text
                assert reply.status_code == 201 or "4 cores" in reply.text or "no device is chosen" in reply.text
