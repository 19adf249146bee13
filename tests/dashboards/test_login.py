"""Pages of a server that is open to others: nothing is shown before a login, and no other site's page writes."""

from __future__ import annotations

from collections.abc import Iterator
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from access_world import CONFIGURED, PATIENT, World, access_world, bearer, new_token
from powerlab.access.session_cookie import COOKIE, VALID_S
from powerlab_api.app import create_app
from powerlab_api.settings import Settings
from powerlab_dashboards.router import PAGES, create_router
from tests.dashboards.page_tree import parse

HTML = {"accept": "text/html"}
OWN_PAGE = {"sec-fetch-site": "same-origin"}
OTHER_PAGE = {"sec-fetch-site": "cross-site", "origin": "https://evil.example"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with access_world(tmp_path_factory.mktemp("login")) as made:
        yield made


def served(world: World, **change: Any) -> FastAPI:
    """Return the API and the pages as ``powerlab serve`` puts them together."""
    app = create_app(world.store, Settings(**{"operator_token": CONFIGURED, **change}))
    app.include_router(create_router(world.store, app.state.authority))
    return app


@pytest.fixture
def browser(world: World) -> Iterator[TestClient]:
    """Return somebody with an empty jar of cookies who is not sent on by himself."""
    with TestClient(served(world), follow_redirects=False) as client:
        yield client


def log_in(browser: TestClient, token: str, **more: str) -> Any:
    return browser.post("/login", data={"token": token, **more}, headers=OWN_PAGE)


def pages(world: World) -> list[str]:
    return [
        "/",
        "/devices",
        "/layers",
        "/studies",
        "/nowhere",
        f"/sweeps/{world.ids['sweep_id']}",
        f"/runs/{world.ids['run_id']}",
        f"/runs/{world.ids['run_id']}/audit",
    ]


def test_nothing_is_shown_before_the_login(world: World, browser: TestClient) -> None:
    for address in pages(world):
        sent = browser.get(address, headers=HTML)
        assert (sent.status_code, sent.content) == (303, b"")
        assert sent.headers["location"] == ("/login" if address == "/" else f"/login?next={quote(address, safe='')}")
    for address in (*pages(world), f"/sweeps/{world.ids['sweep_id']}/charts/heatmap"):
        assert browser.get(address).status_code == 401  # a script, that could do nothing with a login page
    assert len(PAGES) >= 7


def test_the_login_page_itself_and_its_files_are_open(browser: TestClient) -> None:
    assert browser.get("/login").status_code == 200
    assert browser.get("/static/powerlab.css").status_code == 200
    assert browser.head("/login").status_code == 200


@pytest.mark.parametrize("who", ["viewer", "operator", "admin", "configured"])
def test_a_token_opens_every_page_until_the_logout(world: World, browser: TestClient, who: str) -> None:
    sent = log_in(browser, f" {world.tokens[who]}\n", next="/devices?x=1")
    assert (sent.status_code, sent.headers["location"]) == (303, "/devices?x=1")
    for address in pages(world):
        answer = browser.get(address, headers=HTML)
        assert answer.status_code == (404 if address == "/nowhere" else 200)
    name = "configured token, admin" if who == "configured" else f"{who}, {who}"
    assert name in browser.get("/").text
    out = browser.post("/logout", headers=OWN_PAGE)
    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert browser.get("/", headers=HTML).status_code == 303


def test_the_cookie_is_kept_from_scripts_and_other_sites_and_holds_no_secret(world: World, browser: TestClient) -> None:
    sent = log_in(browser, world.tokens["viewer"])
    cookie = SimpleCookie(sent.headers["set-cookie"])[COOKIE]
    assert cookie["httponly"]
    assert cookie["samesite"].lower() == "lax"
    assert cookie["max-age"] == str(VALID_S)
    assert cookie["path"] == "/"
    assert not cookie["secure"]
    assert world.tokens["viewer"] not in sent.headers["set-cookie"]
    assert "set-cookie" not in browser.get("/").headers
    with TestClient(served(world), base_url="https://testserver", follow_redirects=False) as over_tls:
        again = log_in(over_tls, world.tokens["viewer"])
        assert SimpleCookie(again.headers["set-cookie"])[COOKIE]["secure"]


@pytest.mark.parametrize(
    ("who", "status", "words"),
    [
        ("garbage", 401, "no token of this server"),
        ("expired", 401, "has expired"),
        ("revoked", 401, "was revoked"),
        ("agent", 403, "an agent"),
    ],
)
def test_what_opens_nothing(world: World, browser: TestClient, who: str, status: int, words: str) -> None:
    refused = log_in(browser, world.tokens[who], next="/devices")
    assert refused.status_code == status
    assert "set-cookie" not in refused.headers
    page = parse(refused.text)
    (told,) = (one for one in page.all("p") if one.attributes.get("id") == "refusal")
    assert words in told.text
    (kept,) = (one for one in page.all("input") if one.attributes["name"] == "next")
    assert kept.attributes["value"] == "/devices"
    assert world.tokens[who] not in refused.text
    assert browser.get("/", headers=HTML).status_code == 303


def test_a_login_ends_with_its_token_and_with_the_day(world: World, browser: TestClient) -> None:
    token = new_token(world.store, "short", valid_s=100)
    log_in(browser, token)
    assert browser.get("/").status_code == 200
    world.clock.forward(100)
    assert browser.get("/", headers=HTML).status_code == 303
    log_in(browser, world.tokens["viewer"])
    world.clock.forward(VALID_S - 1)
    assert browser.get("/").status_code == 200
    world.clock.forward(1)
    assert browser.get("/", headers=HTML).status_code == 303
    assert "your login is over" in browser.get("/api/v1/devices").json()["detail"]


def test_another_configured_token_ends_the_logins_of_the_old_one(world: World, browser: TestClient) -> None:
    log_in(browser, CONFIGURED)
    for token, status in ((CONFIGURED, 200), ("another-word", 303), (None, 303)):
        with TestClient(
            served(world, operator_token=token, login_needed=True), follow_redirects=False, cookies=browser.cookies
        ) as other:
            assert other.get("/", headers=HTML).status_code == status


def test_a_second_server_on_the_database_knows_the_login(world: World, browser: TestClient) -> None:
    log_in(browser, world.tokens["viewer"])
    with TestClient(served(world), follow_redirects=False, cookies=browser.cookies) as second:
        assert second.get("/").status_code == 200


def test_a_login_counts_for_the_api_with_its_role(world: World, browser: TestClient) -> None:
    log_in(browser, world.tokens["operator"])
    assert browser.get("/api/v1/devices").status_code == 200
    assert browser.get("/api/v1/tokens").status_code == 403
    written = browser.post("/api/v1/enrolment-codes", json={}, headers=OWN_PAGE)
    assert written.status_code == 201
    assert browser.post("/api/v1/jobs/lease", json={}, headers=OWN_PAGE).status_code == 403


@pytest.mark.parametrize("headers", [OTHER_PAGE, {"origin": "https://evil.example"}, {"origin": "null"}, {}])
def test_no_other_sites_page_writes_with_a_login(world: World, browser: TestClient, headers: dict[str, str]) -> None:
    log_in(browser, world.tokens["admin"])
    before = world.ask("admin", "GET", "/audit-events").json()
    for method, path, body in (
        ("POST", "/enrolment-codes", {}),
        ("POST", "/tokens", {"name": "mallory", "role": "admin"}),
        ("DELETE", f"/tokens/{world.ids['token_id']}", None),
    ):
        refused = browser.request(method, f"/api/v1{path}", json=body, headers=headers)
        assert refused.status_code == 403
        assert "page of this server" in refused.json()["detail"]
    assert browser.post("/logout", headers=headers).status_code == 403
    assert world.ask("admin", "GET", "/audit-events").json() == before
    assert browser.get("/", headers=headers).status_code == 200


def test_no_other_sites_page_logs_somebody_in(world: World, browser: TestClient) -> None:
    refused = browser.post("/login", data={"token": world.tokens["viewer"]}, headers=OTHER_PAGE)
    assert refused.status_code == 403
    assert "set-cookie" not in refused.headers


def test_no_other_sites_page_reaches_a_server_on_loopback(world: World) -> None:
    with TestClient(served(world, operator_token=None)) as client:
        assert client.post("/api/v1/enrolment-codes", json={}, headers=OTHER_PAGE).status_code == 403
        assert client.post("/api/v1/enrolment-codes", json={}).status_code == 201
        assert client.get("/").status_code == 200
        assert "Log out" not in client.get("/").text


def test_a_wrong_cookie_is_nobodys(world: World, browser: TestClient) -> None:
    for value in ("", "x", "a.b", "token 1", world.tokens["admin"]):
        sent = browser.get("/", headers={**HTML, "cookie": f"{COOKIE}={quote(value)}"})
        assert sent.status_code == 303


def test_logins_cannot_be_tried_out(world: World) -> None:
    with TestClient(served(world), follow_redirects=False) as browser:
        answers = [log_in(browser, f"guess-{number}").status_code for number in range(25)]
        assert answers == [401] * 20 + [429] * 5
        told = log_in(browser, CONFIGURED)
        assert (told.status_code, int(told.headers["retry-after"]) > 0) == (429, True)
        assert "Too many requests" in told.text


@pytest.mark.parametrize(
    "wanted",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "/\t/evil.example",
        "/\n/evil.example",
        "devices",
        "",
        "http:///evil.example",
        "/ü",
        "//[::1",
    ],
)
def test_a_login_leads_to_this_server_only(world: World, browser: TestClient, wanted: str) -> None:
    assert log_in(browser, world.tokens["viewer"], next=wanted).headers["location"] == "/"


@pytest.fixture(scope="module")
def patient(world: World) -> Iterator[TestClient]:
    """Return a browser of a server that lets everybody try as often as they like."""
    with TestClient(served(world, limits=PATIENT), follow_redirects=False) as client:
        yield client


@settings(max_examples=50, deadline=None)
@given(body=st.binary(max_size=200))
def test_an_odd_form_is_no_login(patient: TestClient, body: bytes) -> None:
    headers = {**OWN_PAGE, "content-type": "application/x-www-form-urlencoded"}
    assert patient.post("/login", content=body, headers=headers).status_code == 401


def test_a_login_is_written_down_with_its_name(world: World, browser: TestClient) -> None:
    log_in(browser, world.tokens["viewer"])
    newest = world.ask("admin", "GET", "/audit-events", params={"limit": 1}).json()["items"][0]
    assert (newest["actor"], newest["action"], newest["subject"]) == ("viewer", "log in", "viewer")


def test_a_program_with_a_token_needs_no_login(world: World, browser: TestClient) -> None:
    assert browser.get("/", headers=bearer(world.tokens["viewer"])).status_code == 200
    assert browser.get("/", headers=bearer(world.tokens["agent"])).status_code == 403
    assert browser.get("/", headers={**HTML, **bearer(world.tokens["garbage"])}).status_code == 303
