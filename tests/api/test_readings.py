"""The routes of telemetry: agents send, viewers read and follow, and what is malformed is a problem."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from powerlab.store import Store
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from served import served

SEEN = {
    "mode": "15W",
    "total": {"power_w": 6.5, "provenance": "measured", "scope": "the module"},
    "temperatures": [{"name": "CPU-therm", "celsius": 51.5}],
}


def upload(**changes: Any) -> dict[str, Any]:
    return {"readings": [{"age_s": 0.5, "seen": SEEN | changes}]}


def test_what_an_agent_sends_a_viewer_reads(client: TestClient, agent: Any) -> None:
    reply = agent.send("POST", "/agents/me/readings", upload())
    assert reply.json() == {"period_s": 10.0}
    found = client.get(f"/api/v1/devices/{agent.device_id}/readings").json()
    assert found["phase"] is None
    assert found["readings"][0]["seen"]["total"]["power_w"] == 6.5
    assert client.get(f"/api/v1/devices/{agent.device_id}/readings?seconds=0.1").json()["readings"] == []
    assert client.get("/api/v1/devices/nobody/readings").status_code == 404


def test_the_fleet_is_one_answer(client: TestClient, agent: Any, stranger: Any, lease: Any) -> None:
    agent.send("POST", "/agents/me/readings", upload() | {"phase": {"sweep_id": lease.sweep_id, "phase": "warm-up"}})
    fleet = client.get("/api/v1/fleet").json()
    doing = {one["id"]: one["activity"] for one in fleet["devices"]}
    assert doing == {agent.device_id: "busy", stranger.device_id: "idle"}
    (busy,) = [one["running"] for one in fleet["devices"] if one["running"] is not None]
    assert (busy["record"]["id"], busy["phase"]["phase"]) == (lease.sweep_id, "warm-up")
    (reading,) = fleet["readings"].items()
    assert reading[0] == agent.device_id
    assert (reading[1]["fresh"], reading[1]["power_w"], reading[1]["provenance"]) == (True, 6.5, "measured")


def test_readings_need_an_agents_token_and_no_other_sweep(client: TestClient, agent: Any, stranger: Any, lease: Any):
    assert client.post("/api/v1/agents/me/readings", json=upload()).status_code == 401
    phase = {"sweep_id": lease.sweep_id, "phase": "timed", "left_s": 5.0}
    assert agent.send("POST", "/agents/me/readings", {"phase": phase}).status_code == 200
    assert stranger.send("POST", "/agents/me/readings", {"phase": phase}).status_code == 403
    assert client.get(f"/api/v1/devices/{agent.device_id}/readings").json()["phase"]["phase"] == "timed"


@pytest.mark.parametrize(
    "wrong",
    [
        {"readings": 7},
        {"readings": [{"age_s": -5, "seen": SEEN}]},
        {"readings": [{"age_s": 0}]},
        upload(mode="x" * 1000),
        upload(total={"power_w": 1e30, "provenance": "measured", "scope": ""}),
        upload(total={"power_w": 1, "provenance": "guessed", "scope": ""}),
        {"phase": {"sweep_id": "x", "phase": "asleep"}},
        {"readings": [{"age_s": 0, "seen": SEEN}] * 200},
    ],
)
def test_what_is_malformed_is_a_problem(agent: Any, wrong: Any) -> None:
    reply = agent.send("POST", "/agents/me/readings", wrong)
    assert reply.status_code == 422, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["detail"]


def test_agents_tokens_follow_no_stream(agent: Any) -> None:
    assert agent.send("GET", f"/devices/{agent.device_id}/readings/stream", None).status_code == 403


def test_a_stream_tells_the_last_minutes_and_then_what_is_new_to_every_viewer(
    store: Store, client: TestClient, agent: Any
) -> None:
    agent.send("POST", "/agents/me/readings", upload())
    app = create_app(store, Settings(max_event_stream_s=20.0))
    with served(app) as url:
        path = f"{url}/api/v1/devices/{agent.device_id}/readings/stream"
        with _stream(path) as first, _stream(path) as second:
            assert [len(_next(one)["readings"]) for one in (first, second)] == [1, 1]
            reply = agent.send("POST", "/agents/me/readings", upload(mode="MAXN"))
            assert reply.json() == {"period_s": 1.0}, "somebody watches"
            for one in (first, second):
                assert [reading["seen"]["mode"] for reading in _next(one)["readings"]] == ["MAXN"]


def test_streams_are_counted(store: Store, agent: Any) -> None:
    with TestClient(create_app(store, Settings(max_event_streams=0))) as client:
        reply = client.get(f"/api/v1/devices/{agent.device_id}/readings/stream")
    assert reply.status_code == 503
    assert reply.headers["retry-after"] == "30"


def _stream(url: str) -> Any:
    from urllib.request import urlopen

    return urlopen(url, timeout=120)


def _next(stream: Any) -> Any:
    """Return the next event's data."""
    while True:
        line = stream.readline().decode()
        assert line, "the stream ended"
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
