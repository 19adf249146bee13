"""Which models an agent may fetch: those that a sweep of its device names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from access_world import World, access_world, body
from onnx_bytes import onnx_like
from powerlab.domain.model_name import StoredModelName
from server_examples import PLAN

MODEL = onnx_like(60)
DIGEST = sha256(MODEL).hexdigest()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with access_world(tmp_path) as made:
        announced = made.ask("operator", "PUT", f"/models/{DIGEST}", json={"name": "net", "byte_count": len(MODEL)})
        assert announced.status_code == 201, announced.text
        offset = {"Upload-Offset": "0"}
        assert made.ask("operator", "PATCH", f"/models/{DIGEST}", content=MODEL, headers=offset).json()["complete"]
        yield made


def statuses(world: World, who: str) -> list[int]:
    return [world.ask(who, "GET", f"/models/{DIGEST}{rest}").status_code for rest in ("", "/content")]


def test_an_agent_fetches_what_its_device_is_asked_to_measure(world: World) -> None:
    assert statuses(world, "viewer") == [200, 200]
    assert statuses(world, "agent") == statuses(world, "stranger") == [403, 403]
    plan = replace(PLAN, models=(str(StoredModelName(name="net", sha256=DIGEST)),))
    request = {"device_id": world.ids["device_id"], "plan": body(plan)}
    assert world.ask("operator", "POST", "/sweeps", json=request).status_code == 201
    assert statuses(world, "agent") == [200, 200]
    assert world.ask("agent", "GET", f"/models/{DIGEST}/content").content == MODEL
    assert statuses(world, "stranger") == [403, 403]
    for method, path in (("GET", "/models"), ("PUT", f"/models/{DIGEST}"), ("HEAD", f"/models/{DIGEST}")):
        assert world.ask("agent", method, path).status_code == 403


def test_an_upload_says_by_whom(world: World) -> None:
    (event,) = world.ask("admin", "GET", "/audit-events", params={"subject": DIGEST}).json()["items"]
    assert (event["actor"], event["action"]) == ("operator", "upload model")
