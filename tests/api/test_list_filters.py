"""Every list: what its filters leave, and that its pages lose and repeat nothing."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

from powerlab.domain.power import Part
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.workload import Processor
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, RunUpload
from powerlab.protocol.wire import to_document
from powerlab.store import Store
from powerlab.store.writes import control
from server_examples import PLAN, Clock, make_run, make_trace

OTHER = replace(
    PLAN,
    models=("alexnet",),
    threads=(1,),
    batch_sizes=(1,),
    modes=("current",),
    precisions=("int8",),
    processors=(Processor.GPU,),
)


def get(client: TestClient, path: str, **query: Any) -> Any:
    reply = client.get(f"/api/v1{path}", params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


def everything(client: TestClient, path: str, **query: Any) -> list[Any]:
    """Turn pages of two until the end."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = get(client, path, limit=2, **query, **cursor)
        assert len(page["items"]) <= 2
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        cursor = {"cursor": page["next_cursor"]}


def estimated(run: Run) -> Run:
    metrics = tuple(replace(one, provenance=Provenance.ESTIMATED) for one in run.metrics)
    return replace(run, metrics=metrics, verdict=Verdict.VALID)


@pytest.fixture
def stored(client: TestClient, store: Store, clock: Clock, agent: Any, stranger: Any) -> dict[str, Any]:
    """Two devices, three sweeps, six runs: four of the first sweep, two of the second, none of the third."""
    made = []
    for one, plan in ((agent, PLAN), (stranger, OTHER), (agent, OTHER)):
        clock.forward(60)
        query = {"device_id": one.device_id, "plan": to_document(plan)}
        made.append(client.post("/api/v1/sweeps", json=query).json()["id"])
    runs = [make_run(made[0], point, 0, speed=10.0 + n) for n, point in enumerate(PLAN.points()[:4])]
    runs += [estimated(make_run(made[1], OTHER.points()[0], repeat, speed=99.0)) for repeat in (0, 1)]
    for holder, own in ((agent, runs[:4]), (stranger, runs[4:])):
        held = holder.lease()
        for run in own:
            clock.forward(1)
            upload = RunUpload(fencing_token=held.fencing_token, run=run)
            assert holder.send("PUT", f"/runs/{run.id}", upload).status_code == 201
    with store.write() as session:
        control.pause(session, made[2], "ada", clock())
    return {"sweeps": made, "runs": runs, "agent": agent, "stranger": stranger, "now": clock()}


RUN_FILTERS: list[tuple[dict[str, Any], list[int]]] = [
    ({}, [0, 1, 2, 3, 4, 5]),
    ({"model": "alexnet"}, [4, 5]),
    ({"engine": "builtin", "threads": 2}, [1, 3]),
    ({"engine": "ncnn"}, []),
    ({"precision": "int8"}, [4, 5]),
    ({"processor": "gpu"}, [4, 5]),
    ({"processor": "cpu", "threads": 2}, [1, 3]),
    ({"batch_size": 4}, [2, 3]),
    ({"mode": "SLOW"}, []),
    ({"mode": "current", "threads": 1}, [0, 2, 4, 5]),
    ({"scenario": "single-stream", "verdict": "valid"}, [4, 5]),
    ({"scenario": "offline"}, []),
    ({"verdict": "flagged"}, [0, 1, 2, 3]),
    ({"provenance": "estimated"}, [4, 5]),
    ({"provenance": "measured"}, [0, 1, 2, 3]),
    ({"simulated": False}, [0, 1, 2, 3, 4, 5]),
    ({"simulated": True}, []),
]


def test_runs_and_their_figures(client: TestClient, stored: Any) -> None:
    for query, wanted in RUN_FILTERS:
        runs = [stored["runs"][number] for number in wanted]
        assert [one["id"] for one in everything(client, "/runs", **query)] == [run.id for run in runs], query
        figures = everything(client, "/metrics", name="throughput_img_per_s", **query)
        values = [(run.id, run.metric("throughput_img_per_s").value) for run in runs]
        assert [(one["run_id"], one["metric"]["value"]) for one in figures] == values, query


def test_runs_of_a_sweep_a_device_and_a_time(client: TestClient, stored: Any) -> None:
    def ids(**query: Any) -> list[str]:
        return [one["id"] for one in everything(client, "/runs", **query)]

    all_ids = [run.id for run in stored["runs"]]
    assert ids(sweep_id=stored["sweeps"][1]) == all_ids[4:]
    assert ids(device_id=stored["agent"].device_id) == all_ids[:4]
    late = (stored["now"] - timedelta(seconds=2)).isoformat()
    assert (ids(received_from=late), ids(received_to=late)) == (all_ids[3:], all_ids[:3])


def test_figures_within_bounds_carry_what_they_were_measured_on(client: TestClient, stored: Any) -> None:
    found = everything(client, "/metrics", name="throughput_img_per_s", low=11, high=12)
    assert [one["metric"]["value"] for one in found] == [11.0, 12.0]
    first = found[0]
    assert (first["unit"], first["metric"]["provenance"], first["device_name"]) == ("img/s", "measured", "board-1")
    assert first["point"]["workload"]["model"] == "resnet50"
    assert everything(client, "/metrics", name="throughput_img_per_s", low=99, model="resnet50") == []


def test_devices(client: TestClient, stored: Any, clock: Clock) -> None:
    def names(**query: Any) -> list[str]:
        return [one["device"]["name"] for one in everything(client, "/devices", **query)]

    assert names() == ["board-1", "board-2"]
    assert names(name="ARD-2") == ["board-2"]
    assert names(name="%") == []
    assert names(board="generic", simulated=False) == ["board-1", "board-2"]
    assert names(board="jetson-nano") == names(simulated=True) == []
    seen = get(client, f"/devices/{stored['stranger'].device_id}")["seen_at"]
    clock.forward(60)
    assert names(seen_since=clock().isoformat()) == []
    assert "board-2" in names(seen_since=seen)
    said = get(client, f"/devices/{stored['agent'].device_id}")["capabilities"]
    assert get(client, f"/devices/{stored['agent'].device_id}/capabilities") == said


def test_sweeps(client: TestClient, stored: Any) -> None:
    first, second, third = stored["sweeps"]

    def ids(**query: Any) -> list[str]:
        return [one["id"] for one in everything(client, "/sweeps", **query)]

    assert ids() == [third, second, first]
    assert ids(device_id=stored["agent"].device_id) == [third, first]
    assert ids(state="paused") == [third]
    assert ids(model="alexnet") == [third, second]
    assert ids(submitter="nobody") == []
    middle = get(client, f"/sweeps/{second}")["created_at"]
    assert (ids(created_from=middle), ids(created_to=middle)) == ([third, second], [first])


def test_workloads_and_points(client: TestClient, stored: Any) -> None:
    loads = everything(client, "/workloads")
    assert [(one["workload"]["model"], one["workload"]["batch_size"]) for one in loads] == [
        ("resnet50", 1),
        ("resnet50", 4),
        ("alexnet", 1),
    ]
    assert [one["stored_run_count"] for one in loads] == [2, 2, 2]
    assert everything(client, "/workloads", model="alexnet", engine="builtin") == loads[2:]
    points = everything(client, "/points")
    assert len(points) == len(PLAN.points()) + 2
    same = everything(client, "/points", point_id=OTHER.points()[0].id)
    assert [one["sweep_id"] for one in same] == stored["sweeps"][1:]
    assert [one["stored_run_count"] for one in same] == [2, 0]
    assert everything(client, "/points", device_id=stored["stranger"].device_id) == same[:1]
    assert len(everything(client, "/points", sweep_id=stored["sweeps"][0], threads=2, model="resnet50")) == 4


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("/metrics", {}),
        ("/metrics", {"name": "colour"}),
        ("/runs", {"threads": 0}),
        ("/runs", {"received_from": "2026-01-02T03:04:05"}),
        ("/sweeps", {"state": "asleep"}),
        ("/devices", {"cursor": "e30="}),
        ("/points", {"cursor": "x"}),
        ("/workloads", {"cursor": "IngiCg=="}),
    ],
)
def test_wishes_that_make_no_sense(client: TestClient, path: str, query: dict[str, Any]) -> None:
    assert client.get(f"/api/v1{path}", params=query).status_code == 422


def test_windows_of_a_trace_keep_their_ends(client: TestClient, agent: Any, sweep_id: str) -> None:
    held, run, trace = agent.lease(), make_run(sweep_id, PLAN.points()[0], 0), make_trace()
    agent.send("PUT", f"/runs/{run.id}", RunUpload(fencing_token=held.fencing_token, run=run))
    for chunk in split(trace, 300):
        agent.send("PUT", f"/runs/{run.id}/traces/chunks", ChunkUpload(fencing_token=held.fencing_token, chunk=chunk))
    times = trace.time_ns.tolist()
    start, end = times[100], times[800]
    (whole,) = get(client, f"/runs/{run.id}/traces", from_ns=start, to_ns=end, points=5000)
    assert (whole["time_ns"], whole["part"]) == (times[100:801], Part.RUN.value)
    (short,) = get(client, f"/runs/{run.id}/traces", from_ns=start, to_ns=end, points=20)
    assert (short["time_ns"][0], short["time_ns"][-1]) == (start, end)
    assert len(short["time_ns"]) <= 20
    assert max(short["value"]) == max(whole["value"])
    assert get(client, f"/runs/{run.id}/traces", from_ns=times[-1] + 1) == []
    assert get(client, f"/runs/{run.id}/traces", from_ns=end, to_ns=start) == []
    assert client.get(f"/api/v1/runs/{run.id}/traces", params={"from_ns": 2**63}).status_code == 422


def test_what_did_not_change_is_not_sent_again(client: TestClient, stored: Any) -> None:
    sweep, run = f"/api/v1/sweeps/{stored['sweeps'][0]}", f"/api/v1/runs/{stored['runs'][0].id}"
    etags = {}
    for address in (sweep, f"{sweep}/points", run, f"{run}/traces"):
        etags[address] = etag = client.get(address).headers["etag"]
        again = client.get(address, headers={"If-None-Match": etag})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert client.get(address, headers={"If-None-Match": '"other"'}).status_code == 200
    assert client.post(f"{sweep}/cancel").status_code == 200
    for address, etag in etags.items():
        changed = client.get(address, headers={"If-None-Match": etag}).status_code
        assert changed == (200 if address == sweep else 304)
