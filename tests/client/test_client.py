"""The typed client against a real server: every answer is a record, every list is whole."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from powerlab.client import Client, ServerAwayError, StatusError
from powerlab.client import client as client_module
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.workload import Scenario
from powerlab.protocol.messages import Backlog, CloneRequest, EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.store import Store
from powerlab.store.writes import backlogs, jobs
from powerlab.store.writes.devices import enrol
from quick_server import quick_server
from server_examples import PLAN, capabilities, device, make_trace, runs_of
from store_writing import upload, upload_trace


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    with quick_server(tmp_path_factory.mktemp("client") / "powerlab.db") as found:
        yield found


@pytest.fixture
def store(served: tuple[str, Store]) -> Store:
    return served[1]


@pytest.fixture
def client(served: tuple[str, Store], monkeypatch: pytest.MonkeyPatch) -> Client:
    monkeypatch.setattr(client_module, "PAGE", 3)  # so that lists have several pages
    return Client(served[0])


@pytest.fixture
def device_id(client: Client, store: Store, tmp_path: Path) -> str:
    code = client.enrolment_code(EnrolmentCodeRequest()).code
    with store.write() as session:
        request = EnrolRequest(code=code, device=device(f"{tmp_path.name}-{uuid.uuid4()}"), capabilities=capabilities())
        return enrol(session, request, store.clock()).device_id


@pytest.fixture
def request_(device_id: str) -> SweepRequest:
    return SweepRequest(device_id=device_id, plan=PLAN)


def measured(store: Store, device_id: str, count: int) -> list[Run]:
    with store.write() as session:
        held = jobs.lease(session, device_id, store.clock())
    runs = runs_of(held.sweep_id)[:count]
    for run in runs:
        upload(store, device_id, held, run)
        upload_trace(store, device_id, held, run.id, make_trace(count=20))
    return runs


def test_devices(client: Client, device_id: str) -> None:
    found = client.device(device_id)
    assert found in list(client.devices())
    assert list(client.devices(name=found.device.name.upper(), board="generic", simulated=False)) == [found]
    assert list(client.devices(seen_since=found.seen_at + timedelta(days=1))) == []
    assert client.capabilities(device_id) == capabilities()


def test_a_device_with_what_waits_on_its_disk(client: Client, store: Store, device_id: str) -> None:
    assert client.device(device_id).backlog is None, "its agent has not said, which is not 0"
    said = Backlog(runs=3, refused_runs=1, chunks=12, size_bytes=5000, oldest_age_s=60.0, shed_runs=2)
    with store.write() as session:
        backlogs.note(session, device_id, said, store.clock())
    found = client.device(device_id)
    assert found.backlog is not None
    assert (found.backlog.runs, found.backlog.size_bytes, found.backlog.shed_runs) == (3, 5000, 2)
    assert found.backlog.said_at - found.backlog.oldest_since == timedelta(seconds=60)
    assert found in list(client.devices())


def test_a_sweep_from_preview_to_clone(client: Client, request_: SweepRequest) -> None:
    assert client.preview(request_).run_count == len(PLAN.points()) * PLAN.repeats
    made = client.submit(request_)
    assert client.submit(request_).id != made.id  # every call asks for a sweep of its own
    assert client.submit(request_, key="k") == client.submit(request_, key="k")
    chosen = str(uuid.uuid4())
    assert client.submit_as(chosen, request_) == client.submit_as(chosen, request_) == client.sweep(chosen)
    assert client.pause(made.id).state is SweepState.PAUSED
    assert [one.id for one in client.sweeps(state=SweepState.PAUSED, device_id=request_.device_id)] == [made.id]
    assert client.resume(made.id).state is SweepState.QUEUED
    assert client.cancel(made.id).state is SweepState.CANCELLED
    clone = client.clone(made.id, CloneRequest(changes={"seed": 5}))
    assert (clone.cloned_from, clone.plan) == (made.id, replace(PLAN, seed=5))
    everything = list(client.sweeps(device_id=request_.device_id, model="resnet50"))
    assert len(everything) == len({one.id for one in everything}) == 5
    queue = list(client.jobs(device_id=request_.device_id, state=SweepState.QUEUED))
    assert len(queue) == 4
    assert client.job(queue[0].id) == queue[0]


def test_runs_figures_and_traces(client: Client, store: Store, request_: SweepRequest) -> None:
    sweep = client.submit(request_)
    runs = measured(store, request_.device_id, 7)
    assert list(client.runs(sweep_id=sweep.id)) == runs
    every = {"model": "resnet50", "engine": "builtin", "precision": "fp32", "scenario": Scenario.SINGLE_STREAM}
    more = {"verdict": Verdict.FLAGGED, "provenance": Provenance.MEASURED, "simulated": False, "mode": "current"}
    assert list(client.runs(device_id=request_.device_id, **every, **more)) == [
        run for run in runs if run.point.mode == "current"
    ]
    assert list(client.runs(sweep_id=sweep.id, threads=2, batch_size=1)) == [
        run for run in runs if (run.point.threads, run.point.workload.batch_size) == (2, 1)
    ]
    assert client.run(runs[0].id) == runs[0]
    figures = list(client.figures("power_w", sweep_id=sweep.id))
    assert [(one.run_id, one.metric) for one in figures] == [(run.id, run.metric("power_w")) for run in runs]
    assert list(client.figures("power_w", sweep_id=sweep.id, low=1000.0)) == []
    (trace,) = client.traces(runs[0].id, points=50)
    whole = make_trace(count=20)
    assert (trace.time_ns, trace.value) == (tuple(whole.time_ns.tolist()), tuple(whole.value.tolist()))
    (part,) = client.traces(runs[0].id, from_ns=trace.time_ns[3], to_ns=trace.time_ns[9])
    assert part.time_ns == trace.time_ns[3:10]
    assert [one.run_count for one in client.summaries(sweep.id)] == [3, 3, 1]
    points = list(client.points(sweep_id=sweep.id))
    assert [one.point for one in points] == list(PLAN.points())
    assert {one.workload.model for one in client.workloads(engine="builtin")} == {"resnet50"}
    assert list(client.layer_profiles(device_id=request_.device_id)) == []


def test_a_no_is_an_error_with_its_kind(client: Client, request_: SweepRequest) -> None:
    with pytest.raises(StatusError, match="there is no sweep 'a b'") as caught:
        client.sweep("a b")
    assert (caught.value.kind, caught.value.status) == ("not-found", 404)
    client.submit(request_, key="same")
    with pytest.raises(StatusError) as caught:
        client.submit(replace(request_, priority=1), key="same")
    assert (caught.value.kind, caught.value.status) == ("conflict", 409)


def test_addresses_that_are_none() -> None:
    with pytest.raises(PowerlabError, match="not a server address"):
        Client("server:8765")
    with pytest.raises(ServerAwayError, match="no powerlab server answers"):
        next(Client("http://127.0.0.1:1").devices())


def test_the_best_point_of_a_sweep(client: Client, store: Store, request_: SweepRequest) -> None:
    sweep = client.submit(request_)
    with store.write() as session:
        held = jobs.lease(session, request_.device_id, store.clock())
    for run in runs_of(held.sweep_id):
        upload(store, request_.device_id, held, replace(run, verdict=Verdict.VALID, findings=()))
    (item,) = client.best(sweep_id=sweep.id, goal="throughput", power="8W").items
    assert (item.sweep_ids, item.run_count) == ((sweep.id,), len(PLAN.points()) * PLAN.repeats)
    assert all(held.fit == "kept" for held in item.answers[0].held)
    with pytest.raises(StatusError, match="power while running of at most 1 W is missed by"):
        client.best(sweep_id=sweep.id, power="1W", goal="throughput")
