"""Reservations and maintenance over HTTP."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from access_world import access_world
from powerlab.protocol.wire import to_document
from powerlab_dashboards.router import create_router
from server_examples import PLAN, Clock


def request(device_id: str, clock: Clock, hours: int, **more: Any) -> dict[str, Any]:
    start, end = clock() + timedelta(hours=hours), clock() + timedelta(hours=hours + 1)
    times = {"starts_at": start.isoformat(), "ends_at": end.isoformat()}
    return {"device_id": device_id, "kind": "reservation", **times, **more}


def test_bookings_are_made_listed_shown_and_removed(client: TestClient, clock: Clock, agent: Any, store: Any) -> None:
    made = [client.post("/api/v1/bookings", json=request(agent.device_id, clock, hours)) for hours in (4, 0, 2)]
    assert [one.status_code for one in made] == [201, 201, 201]
    assert made[1].json()["holder"] == "local user"
    again = client.post("/api/v1/bookings", json=request(agent.device_id, clock, 2))
    assert (again.status_code, again.json()["type"]) == (409, "tag:powerlab,2026:problem/conflict")
    first = client.get("/api/v1/bookings", params={"limit": 2}).json()
    rest = client.get("/api/v1/bookings", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    ids = [one.json()["id"] for one in made]
    assert [one["id"] for one in first["items"] + rest["items"]] == [ids[1], ids[2], ids[0]]
    late = {"ends_after": (clock() + timedelta(hours=3)).isoformat(), "device_id": agent.device_id}
    assert [one["id"] for one in client.get("/api/v1/bookings", params=late).json()["items"]] == [ids[0]]
    client.app.include_router(create_router(store))
    assert client.get(f"/devices/{agent.device_id}/bookings").text.count("local user") == 3
    assert client.delete(f"/api/v1/bookings/{ids[0]}").status_code == 204
    assert client.delete(f"/api/v1/bookings/{ids[0]}").status_code == 404


def test_an_agent_that_runs_into_maintenance_lets_go_and_waits(client: TestClient, clock: Clock, agent: Any) -> None:
    client.post("/api/v1/sweeps", json={"device_id": agent.device_id, "plan": to_document(PLAN)})
    held = agent.lease()
    maintenance = request(agent.device_id, clock, 0, kind="maintenance", reason="new fan")
    assert client.post("/api/v1/bookings", json=maintenance).json()["holder"] is None
    fence = {"fencing_token": held.fencing_token}
    assert agent.send("POST", f"/jobs/{held.job_id}/heartbeat", fence).json() == {"state": "queued"}
    assert agent.send("POST", f"/jobs/{held.job_id}/release", fence).json() == {"state": "queued"}
    assert agent.lease() is None
    clock.forward(3600)
    assert agent.lease().job_id == held.job_id


def test_an_operator_removes_none_but_their_own_reservations(tmp_path: Path) -> None:
    with access_world(tmp_path) as world:
        device_id = world.ids["device_id"]
        made = world.ask("admin", "POST", "/bookings", json=request(device_id, world.clock, 0)).json()
        kept = world.ask("operator", "DELETE", f"/bookings/{made['id']}")
        assert (kept.status_code, "this reservation belongs to admin" in kept.text) == (403, True)
        own = world.ask("operator", "POST", "/bookings", json=request(device_id, world.clock, 2)).json()
        assert world.ask("operator", "DELETE", f"/bookings/{own['id']}").status_code == 204
        assert world.ask("admin", "DELETE", f"/bookings/{made['id']}").status_code == 204
