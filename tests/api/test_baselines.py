"""Baselines and trends over HTTP, by hand and through the client."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from powerlab.cli.stored.local_database import begin
from powerlab.client import Client, StatusError
from powerlab.client.baselines import Baselines
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.baselines import BaselineRequest
from powerlab.protocol.messages import Finish
from powerlab.store import Store
from powerlab.store.writes.jobs import finish
from quick_server import quick_server
from server_examples import capabilities, device
from tests.analysis.gate_sweeps import series

PLAN = SweepPlan(models=("resnet50",), threads=(1,))


def measured(store: Store, count: int, **words: object) -> list[str]:
    """Return sweeps of board-1 that are stored and over."""
    found = []
    for runs in series(count, **words):  # type: ignore[arg-type]
        held = begin(store, device(), capabilities(), PLAN)
        for run in runs:
            held.add(replace(run, id=str(uuid.uuid4()), sweep_id=held.sweep_id), ())
        assert held.broken is None
        with store.write() as session:
            message = Finish(fencing_token=held.fencing_token, state="done")
            finish(session, held.device_id, held.job_id, message, store.clock())
        found.append(held.sweep_id)
    return found


def test_baselines_are_put_listed_read_and_removed(client: TestClient, store: Store) -> None:
    ids = measured(store, 3)
    for name in ("a", "b", "c"):
        made = client.put(f"/api/v1/baselines/{name}", json={"sweep_ids": ids[:2]})
        assert made.status_code == 200, made.text
    assert {one["sweep_id"] for one in made.json()["sweeps"]} == set(ids[:2])
    assert made.json()["sweeps"][0]["device_name"] == "board-1"
    kept = client.put("/api/v1/baselines/c", json={"sweep_ids": ids[2:], "keep": True}).json()
    assert {one["sweep_id"] for one in kept["sweeps"]} == set(ids)
    assert client.get("/api/v1/baselines/c").json() == kept
    first = client.get("/api/v1/baselines", params={"limit": 2}).json()
    rest = client.get("/api/v1/baselines", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [one["name"] for one in first["items"] + rest["items"]] == ["a", "b", "c"]
    assert client.delete("/api/v1/baselines/c").status_code == 204
    for reply in (client.delete("/api/v1/baselines/c"), client.get("/api/v1/baselines/c")):
        assert (reply.status_code, reply.json()["type"]) == (404, "tag:powerlab,2026:problem/not-found")


def test_what_cannot_be_a_baseline_is_told(client: TestClient, store: Store) -> None:
    (sweep_id,) = measured(store, 1)
    for name, body in (("a b", {"sweep_ids": [sweep_id]}), ("a", {"sweep_ids": []})):
        reply = client.put(f"/api/v1/baselines/{name}", json=body)
        assert (reply.status_code, reply.json()["type"]) == (422, "tag:powerlab,2026:problem/cannot-be-done")
    reply = client.put("/api/v1/baselines/a", json={"sweep_ids": ["nothing"]})
    assert (reply.status_code, reply.json()["detail"][:28]) == (404, "there is no sweep 'nothing';")
    assert client.get("/api/v1/baselines").json()["items"] == []


def test_trends_are_series_with_their_changes(client: TestClient, store: Store) -> None:
    ids = [*measured(store, 8), *measured(store, 8, loss=0.1, seed=1)]
    asked = {"model": "resnet50", "metric": ["throughput_img_per_s"], "limit": 100}
    (trend,) = client.get("/api/v1/trends", params=asked).json()
    assert sorted(one["sweep_id"] for one in trend["values"]) == sorted(ids)
    assert len(client.get("/api/v1/trends", params={"model": "resnet50"}).json()) == 3
    assert client.get("/api/v1/trends", params={"model": "vgg16"}).json() == []


def test_trends_that_make_no_sense_are_told(client: TestClient) -> None:
    unknown = client.get("/api/v1/trends", params={"model": "a", "metric": "speed"})
    assert (unknown.status_code, unknown.json()["type"]) == (422, "tag:powerlab,2026:problem/cannot-be-done")
    assert client.get("/api/v1/trends", params={"model": "a", "device": "nothing"}).status_code == 404
    assert client.get("/api/v1/trends").status_code == 422


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    with quick_server(tmp_path_factory.mktemp("baselines") / "powerlab.db") as found:
        yield found


def test_the_client_has_a_method_for_each(
    served: tuple[str, Store], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from powerlab.cli import main
    from powerlab.client import baselines as module

    monkeypatch.setattr(module, "PAGE", 1)
    server, store = served
    api = Baselines(Client(server).transport)
    ids = measured(store, 4)
    made = api.put("main", BaselineRequest(sweep_ids=tuple(ids[:3])))
    assert api.baseline("main") == made
    api.put("other", BaselineRequest(sweep_ids=tuple(ids[:1])))
    assert [one.name for one in api.baselines()] == ["main", "other"]
    (trend,) = api.trends("resnet50", metrics=["throughput_img_per_s"], device_id=made.sweeps[0].device_id)
    assert sorted(value.sweep_id for value in trend.values) == sorted(ids)
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    assert main(["gate", ids[3], "--from", server, "--json"]) in {0, 3}
    assert '"baseline_sweeps"' in capsys.readouterr().out
    api.remove("main")
    with pytest.raises(StatusError, match="no baseline 'main'"):
        api.baseline("main")
