"""Sweeps on any of several devices and on each of them, over HTTP."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient

from powerlab.protocol.wire import to_document
from server_examples import PLAN

WISH = {"plan": to_document(PLAN), "priority": 2}


def test_a_sweep_goes_to_the_first_of_several_that_asks(client: TestClient, agent: Any, stranger: Any) -> None:
    client.put(f"/api/v1/devices/{stranger.device_id}/labels/fan", json={})
    seen = client.post("/api/v1/sweeps/preview", json=WISH | {"any_of": {"labels": ["fan"]}}).json()
    assert [one["device_name"] for one in seen["candidates"]] == ["board-2"]
    made = client.post("/api/v1/sweeps", json=WISH | {"any_of": {}})
    assert made.status_code == 201, made.text
    assert made.json()["candidates"] == ["board-1", "board-2"]
    assert stranger.lease().sweep_id == made.json()["id"]
    assert agent.lease() is None
    found = client.get(f"/api/v1/sweeps/{made.json()['id']}").json()
    assert (found["device_name"], found["candidates"]) == ("board-2", [])


def test_a_campaign_is_asked_for_seen_and_filtered_by(client: TestClient, agent: Any, stranger: Any) -> None:
    request = WISH | {"each": "device", "of": {"board": "generic"}}
    seen = client.post("/api/v1/campaigns/preview", json=request)
    assert [one["device_name"] for one in seen.json()] == ["board-1", "board-2"], seen.text
    key = {"Idempotency-Key": "night"}
    made = client.post("/api/v1/campaigns", json=request, headers=key)
    assert made.status_code == 201, made.text
    assert client.post("/api/v1/campaigns", json=request, headers=key).status_code == 200
    assert client.get(made.headers["location"]).json() == made.json()
    page = client.get("/api/v1/sweeps", params={"campaign_id": made.json()["id"]}).json()
    assert {one["id"] for one in page["items"]} == {one["id"] for one in made.json()["sweeps"]}


def test_what_cannot_be_done_is_a_problem(client: TestClient, agent: Any) -> None:
    for path, request, status in (
        ("/sweeps", WISH, 422),
        ("/sweeps", WISH | {"any_of": {}, "device_id": agent.device_id}, 422),
        ("/sweeps", WISH | {"any_of": {"board": "jetson-tx2"}}, 422),
        ("/campaigns", WISH | {"each": "device", "of": {"group": "none"}}, 404),
        ("/campaigns", WISH | {"each": "rack", "of": {}}, 422),
    ):
        reply = client.post(f"/api/v1{path}", json=request)
        assert (reply.status_code, reply.headers["content-type"]) == (status, "application/problem+json"), reply.text
    assert client.get("/api/v1/campaigns/none").status_code == 404
