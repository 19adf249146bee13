"""The API as a reader and an agent use it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from fastapi.testclient import TestClient

from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.run import Run
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunksUpload, ChunkUpload, Description, Fence, Finish, Lease, RunUpload
from powerlab.protocol.records import DevicePage, RunPage, SweepPage, SweepRecord
from powerlab.store import open_store
from powerlab_api.app import create_app
from server_examples import PLAN, RAIL, Clock, capabilities, device, make_trace, runs_of

OPENAPI = Path(__file__).parents[2] / "api" / "openapi.json"


def upload(agent: Any, lease: Lease, run: Run) -> Any:
    return agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=lease.fencing_token, run=run))


def get(client: TestClient, path: str, kind: Any, **params: Any) -> Any:
    reply = client.get(f"/api/v1{path}", params=params)
    assert reply.status_code == 200, reply.text
    return msgspec.json.decode(reply.content, type=kind)


def test_health(client: TestClient) -> None:
    assert client.get("/api/v1/health").json()["status"] == "ok"


def test_devices_show_what_they_can_do(client: TestClient, agent: Any) -> None:
    (found,) = get(client, "/devices", DevicePage).items
    assert (found.device, found.capabilities) == (device(), capabilities())
    assert client.get(f"/api/v1/devices/{agent.device_id}").json()["id"] == agent.device_id
    names = [mode["name"] for mode in client.get(f"/api/v1/devices/{agent.device_id}/modes").json()]
    assert names == ["current", "SLOW", "REBOOT"]


def test_a_sweep_from_plan_to_table(client: TestClient, agent: Any, sweep_id: str, lease: Lease) -> None:
    runs = runs_of(sweep_id)
    for run in runs:
        assert upload(agent, lease, run).status_code == 201
    assert agent.send("POST", f"/jobs/{lease.job_id}/heartbeat", Fence(fencing_token=1)).status_code == 200
    over = Finish(fencing_token=lease.fencing_token, state="done")
    assert agent.send("POST", f"/jobs/{lease.job_id}/finish", over).status_code == 204
    record = get(client, f"/sweeps/{sweep_id}", SweepRecord)
    assert (record.state, record.stored_run_count, record.plan) == ("done", 24, PLAN)
    assert get(client, f"/sweeps/{sweep_id}/points", tuple[PointSummary, ...]) == summarise(runs)
    assert get(client, f"/runs/{runs[0].id}", Run) == runs[0]


def test_a_plan_given_in_part_takes_the_defaults(client: TestClient, agent: Any) -> None:
    reply = client.post(
        "/api/v1/sweeps", json={"device_id": agent.device_id, "plan": {"models": ["resnet50"], "threads": [1]}}
    )
    assert reply.status_code == 201
    assert reply.json()["plan"]["repeats"] == 3
    assert client.get(reply.headers["location"]).json() == reply.json()


def test_an_upload_twice_changes_nothing(agent: Any, sweep_id: str, lease: Lease) -> None:
    run = runs_of(sweep_id)[0]
    answers = [upload(agent, lease, run) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert [answer.json()["outcome"] for answer in answers] == ["created", "unchanged"]


def test_a_finished_run_has_an_etag(client: TestClient, agent: Any, sweep_id: str, lease: Lease) -> None:
    run = runs_of(sweep_id)[0]
    upload(agent, lease, run)
    etag = client.get(f"/api/v1/runs/{run.id}").headers["etag"]
    again = client.get(f"/api/v1/runs/{run.id}", headers={"If-None-Match": f'"other", {etag}'})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    assert client.get(f"/api/v1/runs/{run.id}", headers={"If-None-Match": '"other"'}).status_code == 200


def test_runs_come_in_pages(client: TestClient, clock: Clock, agent: Any, sweep_id: str, lease: Lease) -> None:
    runs = runs_of(sweep_id)[:5]
    for run in runs:
        upload(agent, lease, run)
        clock.forward(1)
    seen: list[Run] = []
    page = get(client, "/runs", RunPage, limit=2, sweep_id=sweep_id)
    while True:
        seen.extend(page.items)
        if page.next_cursor is None:
            break
        page = get(client, "/runs", RunPage, limit=2, sweep_id=sweep_id, cursor=page.next_cursor)
    assert seen == runs
    assert get(client, "/runs", RunPage, verdict="valid").items == ()


def test_sweeps_come_in_pages(client: TestClient, clock: Clock, agent: Any) -> None:
    made = []
    for _ in range(3):
        clock.forward(1)
        plan = {"models": ["resnet50"], "threads": [1]}
        made.append(client.post("/api/v1/sweeps", json={"device_id": agent.device_id, "plan": plan}).json()["id"])
    first = get(client, "/sweeps", SweepPage, limit=2)
    rest = get(client, "/sweeps", SweepPage, limit=2, cursor=first.next_cursor)
    assert [one.id for one in (*first.items, *rest.items)] == made[::-1]
    assert rest.next_cursor is None


@pytest.mark.parametrize("bucket", ["minmax", "mean"])
def test_traces_are_short_enough_to_draw(
    client: TestClient, agent: Any, sweep_id: str, lease: Lease, bucket: str
) -> None:
    run, trace = runs_of(sweep_id)[0], make_trace()
    upload(agent, lease, run)
    for chunk in split(trace, 400):
        message = ChunkUpload(fencing_token=lease.fencing_token, chunk=chunk)
        assert agent.send("PUT", f"/runs/{run.id}/traces/chunks", message).status_code == 201
        assert agent.send("PUT", f"/runs/{run.id}/traces/chunks", message).status_code == 200
    (short,) = client.get(f"/api/v1/runs/{run.id}/traces", params={"points": 40, "bucket": bucket}).json()
    assert len(short["value"]) == len(short["time_ns"]) <= 40
    assert short["rail"]["name"] == RAIL.name
    (whole,) = client.get(f"/api/v1/runs/{run.id}/traces", params={"points": 5000}).json()
    assert np.array_equal(whole["value"], trace.value)
    assert whole["time_ns"] == trace.time_ns.tolist()


def test_chunks_that_come_together_are_stored_once(client: TestClient, agent: Any, sweep_id: str, lease: Lease) -> None:
    run, trace = runs_of(sweep_id)[0], make_trace()
    upload(agent, lease, run)
    address, chunks = f"/runs/{run.id}/traces/chunks", tuple(split(trace, 300))
    token = lease.fencing_token
    assert agent.send("PUT", address, ChunkUpload(fencing_token=token, chunk=chunks[1])).status_code == 201
    for expected in (201, 200):
        reply = agent.send("POST", address, ChunksUpload(fencing_token=token, chunks=(*chunks, chunks[0])))
        assert reply.status_code == expected, reply.text
    (whole,) = client.get(f"/api/v1/runs/{run.id}/traces", params={"points": 5000}).json()
    assert (whole["time_ns"], whole["value"]) == (trace.time_ns.tolist(), trace.value.tolist())


def test_exports(client: TestClient, agent: Any, sweep_id: str, lease: Lease) -> None:
    runs = runs_of(sweep_id)[:3]
    for run in runs:
        upload(agent, lease, run)
    rows = list(csv.DictReader(io.StringIO(client.get("/api/v1/exports/runs", params={"sweep_id": sweep_id}).text)))
    power = next(row for row in rows if row["run_id"] == runs[0].id and row["metric"] == "power_w")
    assert float(power["value"]) == runs[0].metric("power_w").value
    assert power["provenance"] == "measured"
    lines = client.get("/api/v1/exports/runs", params={"format": "ndjson"}).text.splitlines()
    assert sorted(json.loads(line)["id"] for line in lines) == sorted(run.id for run in runs)


def test_an_agent_describes_its_device_anew(client: TestClient, agent: Any) -> None:
    said = Description(device=device("board-1", cores=2), capabilities=capabilities())
    assert agent.send("PUT", "/agents/me", said).status_code == 204
    assert client.get(f"/api/v1/devices/{agent.device_id}").json()["device"]["core_count"] == 2


def test_a_job_is_given_back(agent: Any, lease: Lease) -> None:
    assert agent.lease() is None
    fence = Fence(fencing_token=lease.fencing_token)
    assert agent.send("POST", f"/jobs/{lease.job_id}/release", fence).json() == {"state": "queued"}
    assert agent.lease().fencing_token == 2


def test_the_committed_description_of_the_api_is_the_real_one() -> None:
    store = open_store("sqlite://")
    try:
        assert json.loads(OPENAPI.read_text(encoding="utf-8")) == create_app(store).openapi()
    finally:
        store.close()
