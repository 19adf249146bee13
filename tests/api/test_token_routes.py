"""Tokens and the log of who did what, over the API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from access_world import World, access_world, bearer
from powerlab.protocol.access import AuditEvent, AuditEventPage, NewToken, TokenPage, TokenRecord
from powerlab.store.writes.tokens import USE_NOTED_EVERY_S


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with access_world(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world for requests that are all refused."""
    with access_world(tmp_path_factory.mktemp("unchanged")) as made:
        yield made


def create(world: World, **body: Any) -> NewToken:
    reply = world.ask("admin", "POST", "/tokens", json=body)
    assert reply.status_code == 201, reply.text
    return msgspec.json.decode(reply.content, type=NewToken)


def tokens(world: World, **body: Any) -> TokenPage:
    return msgspec.json.decode(world.ask("admin", "GET", "/tokens", params=body).content, type=TokenPage)


def token_named(world: World, name: str) -> TokenRecord:
    return next(one for one in tokens(world).items if one.name == name)


def events(world: World, **body: Any) -> list[AuditEvent]:
    reply = world.ask("admin", "GET", "/audit-events", params=body)
    assert reply.status_code == 200, reply.text
    return list(msgspec.json.decode(reply.content, type=AuditEventPage).items)


def status(world: World, token: str, path: str = "/devices") -> int:
    found: int = world.client.get(f"/api/v1{path}", headers=bearer(token)).status_code
    return found


def test_a_token_holds_from_its_creation_to_its_revocation(world: World) -> None:
    made = create(world, name="alice", role="operator")
    assert status(world, made.token) == 200
    assert status(world, made.token, "/tokens") == 403
    for _ in range(2):
        assert world.ask("admin", "DELETE", f"/tokens/{made.record.id}").status_code == 204
    refused = world.client.get("/api/v1/devices", headers=bearer(made.token))
    assert refused.status_code == 401
    assert "was revoked; ask an admin" in refused.json()["detail"]


def test_a_token_expires(world: World) -> None:
    made = create(world, name="alice", valid_s=60)
    world.clock.forward(59)
    assert status(world, made.token) == 200
    world.clock.forward(1)
    refused = world.client.get("/api/v1/devices", headers=bearer(made.token))
    assert (refused.status_code, "has expired" in refused.json()["detail"]) == (401, True)


def test_a_list_tells_no_secret_and_comes_in_pages(world: World) -> None:
    made = create(world, name="alice", role="operator", valid_s=3600)
    assert "token" not in world.ask("admin", "GET", "/tokens").json()["items"][0]
    seen: list[TokenRecord] = []
    page = tokens(world, limit=3)
    while True:
        seen.extend(page.items)
        if page.next_cursor is None:
            break
        page = tokens(world, limit=3, cursor=page.next_cursor)
    assert seen == list(tokens(world).items)
    assert seen[0] == made.record
    assert {one.role for one in seen} == {"viewer", "operator", "admin", "agent"}
    assert world.ask("admin", "GET", "/tokens", params={"cursor": "x"}).status_code == 422


@pytest.mark.parametrize(
    ("body", "status_code", "words"),
    [
        ({"name": "viewer"}, 409, "already"),
        ({"name": "device 7"}, 422, "cannot be the name"),
        ({"name": ""}, 422, "cannot be the name"),
        ({"name": "a" * 101}, 422, "cannot be the name"),
        ({"name": "alice\n"}, 422, "cannot be the name"),
        ({"name": "alice", "role": "agent"}, 422, "enrolment"),
        ({"name": "alice", "role": "king"}, 422, "role"),
        ({"name": "alice", "valid_s": 0}, 422, "valid for"),
        ({"name": "alice", "valid_s": 10**12}, 422, "valid for"),
        ({}, 422, "name"),
    ],
)
def test_what_is_no_token(unchanged: World, body: dict[str, Any], status_code: int, words: str) -> None:
    reply = unchanged.ask("admin", "POST", "/tokens", json=body)
    assert reply.status_code == status_code
    assert words in reply.json()["detail"]


@pytest.mark.parametrize(("wanted", "status_code"), [("4711", 404), ("x", 422), (str(10**30), 422), ("-1", 404)])
def test_there_is_no_such_token(unchanged: World, wanted: str, status_code: int) -> None:
    assert unchanged.ask("admin", "DELETE", f"/tokens/{wanted}").status_code == status_code


def test_a_name_is_free_again_once_its_token_is_revoked(world: World) -> None:
    first = create(world, name="alice")
    world.ask("admin", "DELETE", f"/tokens/{first.record.id}")
    assert create(world, name="alice").record.id != first.record.id


def test_use_is_noted_to_the_minute_and_not_with_every_request(world: World) -> None:
    made = create(world, name="alice")
    assert token_named(world, "alice").last_used_at is None
    first = world.clock()
    assert status(world, made.token) == 200
    world.clock.forward(USE_NOTED_EVERY_S - 1)
    assert status(world, made.token) == 200
    assert token_named(world, "alice").last_used_at == first
    world.clock.forward(1)
    assert status(world, made.token) == 200
    assert token_named(world, "alice").last_used_at == world.clock()


def test_an_agent_at_work_is_heard_of(world: World) -> None:
    world.clock.forward(600)
    assert world.ask("agent", "POST", "/jobs/lease", json={}).status_code == 200
    seen_at = world.ask("viewer", "GET", f"/devices/{world.ids['device_id']}").json()["seen_at"]
    assert seen_at.startswith(world.clock().strftime("%Y-%m-%dT%H:%M:%S"))


def test_everything_done_says_by_whom(world: World) -> None:
    made = create(world, name="alice", role="operator")
    world.client.post("/api/v1/enrolment-codes", json={}, headers=bearer(made.token))
    world.ask("configured", "POST", "/enrolment-codes", json={})
    world.ask("admin", "DELETE", f"/tokens/{made.record.id}")
    done = [(one.actor, one.action, one.subject) for one in events(world)[:4]]
    assert done == [
        ("admin", "revoke token", "alice"),
        ("configured token", "make enrolment code", "new device"),
        ("alice", "make enrolment code", "new device"),
        ("admin", "create token", "alice"),
    ]
    agent = f"device {world.ids['device_id']}"
    assert [one.action for one in events(world, actor=agent)] == ["lease", "enrol"]
    (sweep,) = events(world, action="create sweep")
    assert (sweep.actor, sweep.subject, sweep.detail) == ("operator", world.ids["sweep_id"], {"device": "board-1"})


def test_events_of_a_time_and_in_pages(world: World) -> None:
    begin = world.clock()
    for number in range(5):
        world.clock.forward(10)
        create(world, name=f"token-{number}")
    made = [one.subject for one in events(world, since=begin.isoformat(), action="create token")]
    assert made[:5] == [f"token-{number}" for number in reversed(range(5))]
    later = (begin.replace(microsecond=0)).isoformat().replace("+00:00", "Z")
    assert [one.subject for one in events(world, subject="token-3", since=later)] == ["token-3"]
    assert events(world, subject="token-3", before=later) == []
    seen: list[AuditEvent] = []
    body: dict[str, Any] = {"limit": 2}
    while True:
        reply = world.ask("admin", "GET", "/audit-events", params=body)
        page = msgspec.json.decode(reply.content, type=AuditEventPage)
        seen.extend(page.items)
        if page.next_cursor is None:
            break
        body["cursor"] = page.next_cursor
    assert seen == events(world, limit=500)
    assert [one.id for one in seen] == sorted((one.id for one in seen), reverse=True)


@pytest.mark.parametrize(
    "body",
    [{"since": "yesterday"}, {"since": "2026-01-02T03:04:05"}, {"limit": 0}, {"cursor": "WyIyMDI2Il0="}],
)
def test_what_is_no_question(unchanged: World, body: dict[str, Any]) -> None:
    assert unchanged.ask("admin", "GET", "/audit-events", params=body).status_code == 422


def test_a_cursor_of_another_list_is_refused(unchanged: World) -> None:
    from powerlab_api.cursor import to_cursor

    cursor = to_cursor(unchanged.clock(), unchanged.ids["sweep_id"])
    reply = unchanged.ask("admin", "GET", "/audit-events", params={"cursor": cursor})
    assert (reply.status_code, "not one of this list" in reply.json()["detail"]) == (422, True)
