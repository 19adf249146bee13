"""The operating point through the API, and through the typed client's record."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from powerlab.analysis.operating_point.bounds import BOUND_KINDS
from powerlab.analysis.operating_point.devices import OperatingPoints
from powerlab.domain.sweep import SweepPlan
from server_examples import PLAN
from store_writing import upload
from tests.analysis.operating_point.idling_runs import idling

TWO = replace(PLAN, batch_sizes=(1,), modes=("current",))
SPEEDS = {1: (50.0, 7.0, 4.0), 2: (100.0, 12.0, 4.0)}


@pytest.fixture
def measured(client, store, agent) -> str:
    """Return a sweep whose runs are stored."""
    sweep = client.post("/api/v1/sweeps", json={"device_id": agent.device_id, "plan": plan_body(TWO)}).json()["id"]
    held = agent.lease()
    for run in idling({point: SPEEDS[point.threads] for point in TWO.points()}, repeats=3, sweep_id=sweep):
        upload(store, agent.device_id, held, replace(run, id=str(uuid.uuid4())))
    return sweep


def plan_body(plan: SweepPlan):
    return msgspec.to_builtins(plan)


def asked(client, **wishes):
    return client.get("/api/v1/best", params=wishes)


def best(client, **wishes) -> OperatingPoints:
    reply = asked(client, **wishes)
    assert reply.status_code == 200, reply.text
    return msgspec.json.decode(reply.content, type=OperatingPoints)


def test_the_best_point_of_a_sweep_and_of_a_model(client, agent, measured):
    (item,) = best(client, sweep_id=measured, p99="15ms", rate="25/s", battery="50Wh").items
    (answer,) = item.answers
    assert answer.best.point.threads == 2
    assert answer.costs[0].without.point.threads == 1
    assert {row.rate_img_per_s for row in answer.rates} >= {10, 25, 50}
    assert all(row.hours is not None for row in answer.rates)
    assert best(client, model="resnet50").items == best(client, model="resnet50", device_id=agent.device_id).items


@pytest.mark.parametrize(
    ("wishes", "status", "said"),
    [
        ({"p99": "1ms"}, 422, "99th percentile latency of at most 1 ms is missed by"),
        ({"p99": "soon"}, 422, "invalid p99 'soon'"),
        ({"accuracy": "90%"}, 422, "top-1 accuracy on labelled images"),
        ({"goal": "speed"}, 422, "there is no goal 'speed'"),
        ({"p98": "30ms"}, 422, "there is no parameter 'p98' (did you mean p99?); choose from: sweep_id, model,"),
        ({"model": "resnet50"}, 422, "give either sweep_id, or model"),
        ({"device_id": "x"}, 422, "give either sweep_id, or model"),
        ({"sweep_id": str(uuid.UUID(int=1))}, 404, "there is no sweep"),
        ({"sweep_id": None, "model": "alexnet"}, 404, "there are no runs of the model 'alexnet'"),
        ({"sweep_id": None, "model": "resnet50", "device_id": "x"}, 404, "there is no device"),
    ],
)
def test_what_cannot_be_answered_is_a_problem(client, measured, wishes, status, said):
    fields = {name: value for name, value in ({"sweep_id": measured} | wishes).items() if value is not None}
    reply = asked(client, **fields)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/problem+json"
    assert said in reply.json()["detail"]


def test_every_bound_can_be_asked_for():
    description = json.loads((Path(__file__).parents[2] / "api" / "openapi.json").read_text(encoding="utf-8"))
    asked_for = {one["name"] for one in description["paths"]["/api/v1/best"]["get"]["parameters"]}
    assert asked_for >= BOUND_KINDS.keys()


def test_a_sweep_without_runs_is_a_problem(client, sweep_id):
    assert "there are no runs to choose from" in asked(client, sweep_id=sweep_id).json()["detail"]
