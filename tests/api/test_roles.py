"""Every address of the API, asked by everybody there is: only whoever its description names gets an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient
from hypothesis import example, given, settings
from hypothesis import strategies as st

from access_world import World, access_world, bearer
from powerlab.protocol.access import Role
from powerlab.store import open_store
from powerlab_api.app import create_app
from powerlab_api.roles import Requires, check_roles
from powerlab_api.settings import Settings

OPENAPI = json.loads((Path(__file__).parents[2] / "api" / "openapi.json").read_text(encoding="utf-8"))
OPERATIONS = [(method.upper(), path) for path, methods in OPENAPI["paths"].items() for method in methods]
OPEN = {("GET", "/api/v1/health"), ("GET", "/api/v1/time"), ("POST", "/api/v1/agents")}
MAY = {
    "nobody": set(),
    "garbage": set(),
    "expired": set(),
    "revoked": set(),
    "viewer": {"viewer"},
    "operator": {"viewer", "operator"},
    "admin": {"viewer", "operator", "admin"},
    "configured": {"viewer", "operator", "admin"},
    "agent": {"agent"},
    "stranger": {"agent"},
}
UNKNOWN = ("nobody", "garbage", "expired", "revoked")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with access_world(tmp_path_factory.mktemp("roles")) as made:
        yield made


def roles_of(method: str, path: str) -> set[str]:
    """Return the roles of which the description wants one; none where it wants no token."""
    security = OPENAPI["paths"][path][method.lower()].get("security", [])
    return {role for requirement in security for roles in requirement.values() for role in roles}


def schema_of(method: str, path: str) -> str | None:
    """Return the name of the schema of an operation's body; None where it has no body of JSON."""
    content = OPENAPI["paths"][path][method.lower()].get("requestBody", {}).get("content", {})
    if "application/json" not in content:
        return None
    return str(content["application/json"]["schema"].get("$ref", "")).rpartition("/")[2]


def ask(world: World, who: str, method: str, path: str, **more: Any) -> Any:
    """Ask with the first device's identifiers, and a good message where one is known."""
    filled = re.sub(r"{(\w+)}", lambda name: world.ids.get(name[1], "unknown"), path.removeprefix("/api/v1"))
    schema = schema_of(method, path)
    if schema is not None:
        more["json"] = world.bodies.get(schema, {})
    return world.ask(who, method, filled, **more)


def check_problem(reply: Any, statuses: set[int]) -> None:
    assert reply.status_code in statuses, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.request.method == "HEAD" or reply.json()["detail"].strip()
    assert ("www-authenticate" in reply.headers) == (reply.status_code == 401)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_every_address_says_which_role_it_needs(method: str, path: str) -> None:
    known = {role.value for role in Role}
    assert ((method, path) in OPEN) == (roles_of(method, path) == set())
    assert roles_of(method, path) <= known
    for requirement in OPENAPI["paths"][path][method.lower()].get("security", []):
        assert set(requirement) <= set(OPENAPI["components"]["securitySchemes"])


@pytest.mark.parametrize("who", MAY)
def test_everybody_may_do_what_the_description_says_and_no_more(world: World, who: str) -> None:
    for method, path in OPERATIONS:
        wanted = roles_of(method, path)
        reply = ask(world, who, method, path)
        assert reply.status_code < 500, (method, path, reply.text)
        if not wanted:
            assert reply.status_code != 403, (method, path)
        elif not wanted & MAY[who]:
            check_problem(reply, {401} if who in UNKNOWN else {403})
        elif who != "stranger":
            assert reply.status_code not in {401, 403}, (method, path, reply.text)


def test_what_needs_a_token_is_asked_for_before_the_body_is_looked_at(world: World) -> None:
    for method, path in OPERATIONS:
        if roles_of(method, path) and schema_of(method, path) is not None:
            filled = re.sub(r"{(\w+)}", "x", path.removeprefix("/api/v1"))
            for content in ({}, [], {"fencing_token": "x"}, None):
                check_problem(world.ask("nobody", method, filled, json=content), {401})


def test_an_agent_touches_nothing_of_another_device(world: World) -> None:
    """With good messages under good identifiers: they are the other device's."""
    before = world.ask("viewer", "GET", f"/sweeps/{world.ids['sweep_id']}").json()
    asked = 0
    for method, path in OPERATIONS:
        if "agent" in roles_of(method, path) and "{" in path:
            known = schema_of(method, path) in {None, *world.bodies}
            check_problem(ask(world, "stranger", method, path), {403, 404} if known else {403, 404, 422})
            asked += 1
    assert asked >= 5
    assert world.ask("viewer", "GET", f"/sweeps/{world.ids['sweep_id']}").json() == before
    assert world.ask("stranger", "POST", "/jobs/lease", json={}).json() == {"lease": None}


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_no_identifier_lets_an_agent_at_another_device(world: World, data: st.DataObject) -> None:
    mine = [(method, path) for method, path in OPERATIONS if "agent" in roles_of(method, path) and "{" in path]
    method, path = data.draw(st.sampled_from(mine))
    names = st.sampled_from([*world.ids.values(), "unknown", "%00", "..", "%2e%2e"]) | st.uuids().map(str)
    filled = re.sub(r"{\w+}", lambda _: data.draw(names), path.removeprefix("/api/v1"))
    reply = world.ask("stranger", method, filled, json=world.bodies.get(schema_of(method, path) or "", {}))
    assert reply.status_code in {403, 404, 405, 422}, reply.text


@settings(max_examples=40, deadline=None)
@given(token=st.text(st.characters(codec="latin-1", exclude_characters="\r\n\x00"), max_size=80))
@example("")
@example("null")
@example("configured token")
@example("' OR 1=1 --")
@example("powerlab_" + "A" * 43)
@example("x" * 10_000)
def test_nobody_guesses_a_token(world: World, token: str) -> None:
    for scheme in ("Bearer", "bearer", "Basic", "", "Bearer Bearer"):
        headers = {"Authorization": f"{scheme} {token}".encode("latin-1")}
        check_problem(world.client.get("/api/v1/tokens", headers=headers), {401})


@settings(max_examples=40, deadline=None)
@given(place=st.integers(0, 51), character=st.characters(codec="ascii", exclude_characters="\r\n\x00"))
def test_a_token_with_another_character_is_none(world: World, place: int, character: str) -> None:
    token = world.tokens["admin"]
    changed = token[:place] + character + token[place + 1 :]
    if changed.strip() != token:
        check_problem(world.client.get("/api/v1/tokens", headers=bearer(changed)), {401})


def test_a_token_does_not_work_by_its_hash_or_its_id(world: World) -> None:
    from powerlab.store.secrets import sha256

    for wrong in (sha256(world.tokens["admin"]), "1", "admin", "admin:" + world.tokens["admin"]):
        check_problem(world.client.get("/api/v1/tokens", headers=bearer(wrong)), {401})


def test_on_loopback_everybody_is_an_admin_but_nobody_an_agent(tmp_path: Path) -> None:
    store = open_store(tmp_path / "powerlab.db")
    with TestClient(create_app(store, Settings(max_event_stream_s=0.0))) as client:
        for method, path in OPERATIONS:
            filled = re.sub(r"{(\w+)}", "7", path)
            body = {} if schema_of(method, path) is None else {"json": {}}
            reply = client.request(method, filled, **body)
            allowed = not roles_of(method, path) or roles_of(method, path) - {"agent"}
            assert (reply.status_code not in {401, 403}) == bool(allowed) or path == "/api/v1/agents", (method, path)
            assert reply.status_code < 500
    store.close()


@pytest.mark.parametrize(
    ("said", "refused"), [([], True), ([Requires.viewer], False), ([Requires.viewer, Requires.nobody], True)]
)
def test_a_route_that_does_not_say_what_it_needs_is_not_served(said: list[Any], refused: bool) -> None:
    router = APIRouter()

    @router.get("/secret", dependencies=said)
    def secret() -> None:
        """Tell."""

    if refused:
        with pytest.raises(RuntimeError, match="/secret must have one of Requires"):
            check_roles(router)
    else:
        check_roles(router)
