"""Labels and groups over HTTP."""

from __future__ import annotations

from typing import Any

from fastapi.testclient import TestClient


def devices(client: TestClient, **request: Any) -> list[str]:
    reply = client.get("/api/v1/devices", params=request)
    assert reply.status_code == 200, reply.text
    return [one["device"]["name"] for one in reply.json()["items"]]


def test_labels_are_put_shown_filtered_and_removed(client: TestClient, agent: Any, stranger: Any) -> None:
    path = f"/api/v1/devices/{agent.device_id}"
    for _ in range(2):
        assert client.put(f"{path}/labels/rack", json={"value": "3"}).json()["labels"] == ["rack=3"]
    assert client.put(f"{path}/labels/fan", json={}).json()["labels"] == ["fan", "rack=3"]
    client.put(f"/api/v1/devices/{stranger.device_id}/labels/rack", json={"value": "4"})
    assert devices(client, label="rack=3") == ["board-1"]
    assert devices(client, label="rack") == ["board-1", "board-2"]
    assert devices(client, label=["rack", "fan"]) == ["board-1"]
    assert devices(client, label="rack=3", board="jetson-tx2") == []
    assert client.delete(f"{path}/labels/rack").status_code == 204
    assert client.delete(f"{path}/labels/rack").status_code == 404
    assert client.get(path).json()["labels"] == ["fan"]


def test_groups_are_put_listed_used_and_removed(client: TestClient, agent: Any, stranger: Any) -> None:
    client.put(f"/api/v1/devices/{agent.device_id}/labels/fan", json={})
    for name in ("a", "b", "c"):
        made = client.put(f"/api/v1/groups/{name}", json={"labels": ["fan"]})
        assert made.json() == {"name": name, "selector": {"board": "", "labels": ["fan"], "group": ""}}
    first = client.get("/api/v1/groups", params={"limit": 2}).json()
    rest = client.get("/api/v1/groups", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [one["name"] for one in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert rest["next_cursor"] is None
    assert client.get("/api/v1/groups/a").json()["name"] == "a"
    assert devices(client, group="a") == ["board-1"]
    assert client.delete("/api/v1/groups/a").status_code == 204
    for reply in (client.get("/api/v1/groups/a"), client.get("/api/v1/devices", params={"group": "a"})):
        assert (reply.status_code, reply.json()["type"]) == (404, "tag:powerlab,2026:problem/not-found")


def test_what_is_no_label_is_told(client: TestClient, agent: Any) -> None:
    path = f"/api/v1/devices/{agent.device_id}/labels"
    for reply in (
        client.put(f"{path}/a b", json={}),
        client.put(f"{path}/a", json={"value": "b c"}),
        client.get("/api/v1/devices", params={"label": "a="}),
        client.put("/api/v1/groups/all", json={}),
    ):
        assert (reply.status_code, reply.json()["type"]) == (422, "tag:powerlab,2026:problem/cannot-be-done")


def test_a_label_is_on_the_page_of_the_device(client: TestClient, agent: Any, store: Any) -> None:
    from powerlab_dashboards.router import create_router

    client.app.include_router(create_router(store))
    client.put(f"/api/v1/devices/{agent.device_id}/labels/rack", json={"value": "3"})
    assert "<code>rack=3</code>" in client.get(f"/devices/{agent.device_id}").text
