"""A server that asks everybody for a token, two devices with agents, and one of everybody who may knock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from fastapi.testclient import TestClient

from fresh_store import fresh_store
from powerlab.access.limits import Limit, Limits
from powerlab.protocol.access import Role, TokenRequest
from powerlab.protocol.chunks import split
from powerlab.protocol.messages import ChunkUpload, LeaseReply, RunUpload
from powerlab.store import Store
from powerlab.store.writes.tokens import create_token, revoke_token
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from server_examples import PLAN, Clock, capabilities, device, make_trace, runs_of

CONFIGURED = "s3cret-word"
PATIENT = Limits(requests=Limit(burst=1e9, per_s=1e9), guesses=Limit(burst=1e9, per_s=1e9))


def body(message: object) -> Any:
    return json.loads(msgspec.json.encode(message))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@dataclass
class World:
    """The server, and what is on it.

    Attributes:
        tokens: by who holds them: the roles, ``configured``, ``agent`` of the first device, ``stranger`` of the second,
            and those that hold no longer.
        ids: one identifier for each name in a path, all of the first device.
        bodies: good messages of the first device's agent, by the name of their schema.
    """

    client: TestClient
    store: Store
    clock: Clock
    tokens: dict[str, str]
    ids: dict[str, str]
    bodies: dict[str, Any]

    def ask(self, who: str, method: str, path: str, **more: Any) -> Any:
        """Send a request with somebody's token; ``nobody`` has none."""
        headers = {} if who == "nobody" else bearer(self.tokens[who])
        return self.client.request(method, f"/api/v1{path}", headers=headers | more.pop("headers", {}), **more)


def new_token(store: Store, name: str, role: Role = Role.VIEWER, valid_s: int | None = None) -> str:
    with store.write() as session:
        request = TokenRequest(name=name, role=role, valid_s=valid_s)
        return create_token(session, request, store.clock(), actor="test").token


@contextmanager
def access_world(folder: Path) -> Iterator[World]:
    clock = Clock()
    store = fresh_store(folder / "powerlab.db", clock)
    chosen = Settings(operator_token=CONFIGURED, limits=PATIENT, max_lease_wait_s=0.0, max_event_stream_s=0.0)
    with TestClient(create_app(store, chosen), raise_server_exceptions=False) as client:
        yield _populated(client, store, clock)
    store.close()


def _populated(client: TestClient, store: Store, clock: Clock) -> World:
    tokens = {"configured": CONFIGURED, "garbage": "powerlab_garbage"}
    tokens |= {role: new_token(store, role, role) for role in (Role.VIEWER, Role.OPERATOR, Role.ADMIN)}
    tokens["expired"] = new_token(store, "expired", Role.ADMIN, valid_s=1)
    tokens["revoked"] = new_token(store, "revoked", Role.ADMIN)
    world = World(client, store, clock, tokens, {}, {})
    clock.forward(2)
    first, second = _enrol(world, "board-1"), _enrol(world, "board-2")
    tokens["agent"], tokens["stranger"] = first["token"], second["token"]
    request = {"device_id": first["device_id"], "plan": body(PLAN)}
    sweep_id = world.ask("operator", "POST", "/sweeps", json=request).json()["id"]
    reply = world.ask("agent", "POST", "/jobs/lease", json={})
    held = msgspec.json.decode(reply.content, type=LeaseReply).lease
    run = runs_of(sweep_id)[0]
    upload = body(RunUpload(fencing_token=held.fencing_token, run=run))
    assert world.ask("agent", "PUT", f"/runs/{run.id}", json=upload).status_code == 201
    chunk = body(ChunkUpload(fencing_token=held.fencing_token, chunk=next(split(make_trace(count=10)))))
    with store.write() as session:
        gone = create_token(session, TokenRequest(name="gone"), store.clock(), actor="test")
        session.flush()
        revoke_token(session, gone.record.id, store.clock(), actor="test")
    tokens["gone"] = gone.token
    listed = world.ask("admin", "GET", "/tokens").json()["items"]
    revoked = next(one["id"] for one in listed if one["name"] == "revoked")
    assert world.ask("admin", "DELETE", f"/tokens/{revoked}").status_code == 204
    world.ids |= {
        "device_id": first["device_id"],
        "sweep_id": sweep_id,
        "job_id": held.job_id,
        "run_id": run.id,
        "token_id": str(gone.record.id),
    }
    fence = {"fencing_token": held.fencing_token}
    world.bodies |= {
        "Fence": fence,
        "Finish": {**fence, "state": "done"},
        "RunUpload": upload,
        "ChunkUpload": chunk,
        "ChunksUpload": {**fence, "chunks": [chunk["chunk"]]},
        "LeaseRequest": {},
    }
    return world


def _enrol(world: World, name: str) -> dict[str, str]:
    code = world.ask("operator", "POST", "/enrolment-codes", json={}).json()["code"]
    said = {"code": code, "device": body(device(name)), "capabilities": body(capabilities())}
    reply = world.client.post("/api/v1/agents", json=said)
    assert reply.status_code == 201, reply.text
    enrolled: dict[str, str] = reply.json()
    return enrolled
