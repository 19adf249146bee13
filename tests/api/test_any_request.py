"""Whatever is sent to the API, the answer is one that its description promises, and never a crash."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onnx_bytes import onnx_like, sha256
from postgres_cluster import new_database, postgres_cluster
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunksUpload, ChunkUpload, LeaseReply, RunUpload
from powerlab.store import open_store
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from schema_bodies import NONSENSE, values
from server_examples import PLAN, Clock, capabilities, device, make_trace, runs_of

pytestmark = pytest.mark.campaign

OPENAPI = json.loads((Path(__file__).parents[2] / "api" / "openapi.json").read_text(encoding="utf-8"))
COMPONENTS = OPENAPI["components"]["schemas"]
OPERATIONS = [(method, path) for path, methods in OPENAPI["paths"].items() for method in methods]


@dataclass
class World:
    """A server with a device, a leased sweep and a run."""

    client: TestClient
    token: str
    known: list[str]
    good_bodies: list[Any]


def body(message: object) -> Any:
    return json.loads(msgspec.json.encode(message))


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    with postgres_cluster() as address:
        yield address


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if request.param == "sqlite":
        address = str(tmp_path_factory.mktemp("api") / "powerlab.db")
    else:
        address = new_database(request.getfixturevalue("cluster"))
    store = open_store(address, Clock())
    chosen = Settings(max_lease_wait_s=0.0, max_event_stream_s=0.0)
    with TestClient(create_app(store, chosen), raise_server_exceptions=False) as client:
        yield _populated(client)
    gc.collect()  # streams that were left in the middle give their connections back
    store.close()


def _populated(client: TestClient) -> World:
    code = client.post("/api/v1/enrolment-codes", json={}).json()["code"]
    enrolment = {"code": code, "device": body(device()), "capabilities": body(capabilities())}
    me = client.post("/api/v1/agents", json=enrolment).json()
    headers = {"Authorization": f"Bearer {me['token']}"}
    request = {"device_id": me["device_id"], "plan": body(PLAN)}
    sweep_id = client.post("/api/v1/sweeps", json=request).json()["id"]
    reply = client.post("/api/v1/jobs/lease", json={}, headers=headers)
    held = msgspec.json.decode(reply.content, type=LeaseReply).lease
    run, other, *_ = runs_of(sweep_id)
    upload = body(RunUpload(fencing_token=held.fencing_token, run=run))
    assert client.put(f"/api/v1/runs/{run.id}", json=upload, headers=headers).status_code == 201
    chunk = ChunkUpload(fencing_token=held.fencing_token, chunk=next(split(make_trace(count=10))))
    other_upload = body(RunUpload(fencing_token=held.fencing_token, run=other))
    model, waiting = onnx_like(60), sha256(b"not sent yet")
    for key, size in ((sha256(model), len(model)), (waiting, 12)):
        announced = client.put(f"/api/v1/models/{key}", json={"name": "net", "byte_count": size})
        assert announced.status_code == 201
    sent = client.patch(f"/api/v1/models/{sha256(model)}", content=model, headers={"Upload-Offset": "0"})
    assert sent.json()["complete"]
    known = [me["device_id"], sweep_id, held.job_id, run.id, other.id, sha256(model), waiting]
    chunks = ChunksUpload(fencing_token=held.fencing_token, chunks=(chunk.chunk,))
    good = [enrolment, request, upload, other_upload, body(chunk), body(chunks)]
    return World(client, me["token"], known, good)


def spoilt(draw: st.DrawFn, value: Any) -> Any:
    """Return a good body with nonsense in one place."""
    if isinstance(value, dict) and value and draw(st.integers(0, 5)):
        name = draw(st.sampled_from(sorted(value)))
        return {**value, name: spoilt(draw, value[name])}
    if isinstance(value, list) and value and draw(st.integers(0, 5)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], spoilt(draw, value[place]), *value[place + 1 :]]
    return draw(NONSENSE)


@st.composite
def requests(draw: st.DrawFn, world: World) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a request, and the answers that the description promises for it."""
    method, path = draw(st.sampled_from(OPERATIONS))
    said = OPENAPI["paths"][path][method]
    query, headers = {}, {"Content-Type": "application/json"}
    for parameter in said.get("parameters", []):
        if parameter["in"] == "path":
            chosen = draw(st.sampled_from(world.known) | st.text(min_size=1, max_size=6) | st.just("\x00"))
            path = path.replace(f"{{{parameter['name']}}}", quote(chosen, safe=""))
        elif parameter["in"] == "query" and draw(st.booleans()):
            chosen = draw(values(parameter["schema"], COMPONENTS, 0.2) | st.sampled_from(world.known))
            query[parameter["name"]] = str(chosen)
        elif parameter["in"] == "header" and draw(st.booleans()):
            headers[parameter["name"]] = draw(st.sampled_from(["0", "1", "-1", "bytes=0-1", '"x"', "9" * 30]))
    content = None
    if "requestBody" in said:
        ((kind, wanted),) = said["requestBody"]["content"].items()
        if kind == "application/json":
            good = draw(st.sampled_from(world.good_bodies))
            document = draw(values(wanted["schema"], COMPONENTS)) if draw(st.booleans()) else spoilt(draw, good)
            content = json.dumps(document).encode()
        else:
            headers["Content-Type"], content = kind, draw(st.binary(max_size=20))
    token = draw(st.sampled_from([world.token, world.token, world.token, "guess"]))
    request = {
        "method": method.upper(),
        "url": path,
        "params": query,
        "content": content,
        "headers": {**headers, "Authorization": f"Bearer {token}"},
    }
    return request, said["responses"]


def check_answer(promised: dict[str, Any], reply: Any) -> None:
    assert reply.status_code < 500, reply.text
    if reply.status_code < 400:
        # A path with nothing in the place of an identifier is another one: it leads there (307), or is its list (200).
        assert str(reply.status_code) in promised or reply.status_code in (200, 307)
        return
    assert "default" in promised
    assert reply.headers["content-type"] == "application/problem+json"
    if reply.request.method == "HEAD":  # whose answers have no body
        return
    problem = reply.json()
    assert {"type", "title", "status", "detail"} <= set(problem)
    assert problem["status"] == reply.status_code
    assert problem["detail"].strip()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_request_crashes_the_server_or_leaves_the_description(world: World, data: st.DataObject) -> None:
    wanted, promised = data.draw(requests(world))
    check_answer(promised, world.client.request(**wanted))
    # Whatever was let in, everybody can still read everything.
    for path in ("/devices", "/sweeps", "/runs", "/models", "/exports/runs"):
        assert world.client.get(f"/api/v1{path}").status_code == 200, wanted
