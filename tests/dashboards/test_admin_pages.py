"""What admins see: the server's facts, tokens, the log; and that nobody else does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from powerlab.cli.commands.serve.server import compose
from powerlab.protocol.access import Role, TokenRequest
from powerlab.store.reads.tokens import list_tokens
from powerlab.store.writes import tokens
from powerlab.store.writes.audit import record
from powerlab_api.settings import Settings
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf
from tests.dashboards.page_tree import parse


def made(shelf: Shelf, name: str, role: Role, **more: int) -> str:
    with shelf.store.write() as session:
        request = TokenRequest(name=name, role=role, **more)
        return tokens.create_token(session, request, START, actor="command line").token


@pytest.fixture
def guarded(shelf: Shelf) -> Iterator[TestClient]:
    """Return a client of a server on which everybody needs a token."""
    with TestClient(compose(shelf.store, Settings(login_needed=True))) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", "accept": "text/html"}


def test_only_admins_see_it_and_the_way_to_it(shelf: Shelf, guarded: TestClient) -> None:
    for role in (Role.VIEWER, Role.OPERATOR):
        headers = bearer(made(shelf, role.value, role))
        for address in ("/admin", "/admin/log"):
            page = guarded.get(address, headers=headers)
            assert page.status_code == 403
            assert "needs the role admin" in page.text
        assert guarded.post("/admin/tokens/1/revoke", headers=headers).status_code == 403
        assert 'href="/admin"' not in guarded.get("/", headers=headers).text
    admin = bearer(made(shelf, "root", Role.ADMIN))
    assert guarded.get("/admin", headers=admin).status_code == 200
    assert 'href="/admin"' in guarded.get("/", headers=admin).text


def test_the_servers_facts(shelf: Shelf, client: TestClient) -> None:
    shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,)))
    text = parse(client.get("/admin").text).one("main").text
    assert "SQLite" in text
    assert "1 device, 1 sweep, 6 runs, " in text
    assert "in the database" in text


def test_tokens_are_listed_and_revoked(shelf: Shelf, client: TestClient) -> None:
    shelf.add_sweep(plausible.laptop("bench-7"), plausible.plan(modes=("current",)), stored=1)
    secret = made(shelf, "ben", Role.OPERATOR, valid_s=60)
    page = parse(client.get("/admin").text).one("main")
    rows = {row.one("th").text: row for row in page.one("tbody").all("tr")}
    assert set(rows) == {"ben", "agent of bench-7"}
    assert secret not in page.text
    assert "never" in rows["ben"].text
    (form,) = rows["ben"].all("form")
    fields = {field.attributes["name"]: field.attributes["value"] for field in form.all("input")}
    client.post(form.attributes["action"], data=fields)
    with shelf.store.session() as session:
        assert [one.name for one in list_tokens(session) if one.revoked_at] == ["ben"]
    rows = {row.one("th").text: row for row in parse(client.get("/admin").text).one("main").one("tbody").all("tr")}
    assert "revoked" in rows["ben"].text
    assert not list(rows["ben"].all("form"))
    log = parse(client.get("/admin/log?action=revoke+token").text).one("main").one("tbody").text
    assert "local user" in log
    assert "ben" in log


def test_in_chinese_tokens_and_log_have_no_english_titles(shelf: Shelf, client: TestClient) -> None:
    made(shelf, "ben", Role.OPERATOR)
    with shelf.store.write() as session:
        record(session, START, "ana", "revoke token", "ben")
    for address in ("/admin", "/admin/log"):
        main = parse(client.get(address, headers={"accept-language": "zh-CN"}).text).one("main")
        assert "ben" in main.text
        titles = [found.text for found in main.all("h1", "h2", "dt", "button", "label")]
        titles += [found.text for found in main.all("th") if found.attributes.get("scope") == "col"]
        assert titles
        english = {word for title in titles for word in re.findall("[A-Za-z]{3,}", title)}
        assert english <= {"powerlab", "ben"}, "names alone"


def test_a_form_of_another_session_revokes_nothing(shelf: Shelf) -> None:
    made(shelf, "ben", Role.OPERATOR)
    with TestClient(compose(shelf.store, Settings())) as client:
        answer = client.post("/admin/tokens/1/revoke", data={"form_token": "another"})
    assert answer.status_code == 403
    with shelf.store.session() as session:
        assert not [one for one in list_tokens(session) if one.revoked_at]


def test_the_log_is_filtered_and_paged(shelf: Shelf, client: TestClient) -> None:
    with shelf.store.write() as session:
        for number in range(130):
            actor = "ana" if number % 2 else "ben"
            record(session, START + timedelta(seconds=number), actor, "poke", f"subject-{number}", times=number)
    first = parse(client.get("/admin/log").text).one("main")
    assert len(list(first.one("tbody").all("tr"))) == 100
    (older,) = [link.attributes["href"] for link in first.all("a") if link.text == "older events"]
    assert len(list(parse(client.get(older).text).one("main").one("tbody").all("tr"))) == 30
    assert len(list(parse(client.get("/admin/log?actor=ana").text).one("main").one("tbody").all("tr"))) == 65
    one = parse(client.get("/admin/log?subject=subject-7").text).one("main").one("tbody").text
    assert "times 7" in one
    assert "No event is like that." in client.get("/admin/log?actor=nobody").text


def test_whoever_is_not_logged_in_is_led_to_the_login(guarded: TestClient) -> None:
    assert guarded.get("/admin", headers={"accept": "text/html"}, follow_redirects=False).status_code == 303
