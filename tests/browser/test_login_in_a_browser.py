"""A reader logs in, looks around, and logs out; the browser itself keeps the cookie and says where forms come from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from playwright.sync_api import Browser, Page, expect

from access_world import new_token
from powerlab.access.session_cookie import COOKIE
from powerlab.cli.commands.serve.listen_policy import ListenPolicy
from powerlab.cli.commands.serve.server import compose, settings_of
from powerlab.protocol.access import Role
from powerlab.store import Store, open_store
from served import served


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with closing(open_store(tmp_path_factory.mktemp("login") / "powerlab.db")) as store:
        yield store


@pytest.fixture(scope="module")
def url(store: Store) -> Iterator[str]:
    with served(compose(store, settings_of(ListenPolicy(host="0.0.0.0")))) as url:
        yield url


@pytest.fixture(scope="module")
def token(store: Store) -> str:
    return new_token(store, "alice", Role.OPERATOR)


@pytest.fixture(params=[("light", 1600), ("dark", 400)], ids=["light", "dark"])
def reader(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    scheme, width = request.param
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    yield context.new_page()
    context.close()


def test_from_the_login_to_the_logout(reader: Page, url: str, token: str) -> None:
    reader.goto(f"{url}/devices")
    expect(reader).to_have_url(f"{url}/login?next=%2Fdevices")
    expect(reader.get_by_label("Token")).to_be_focused()
    assert reader.locator("html").evaluate("html => html.scrollWidth - html.clientWidth") == 0
    reader.get_by_label("Token").fill("a guess")
    reader.keyboard.press("Enter")
    expect(reader.get_by_role("alert")).to_contain_text("no token of this server")
    reader.get_by_label("Token").fill(token)
    reader.get_by_role("button", name="Log in").click()
    expect(reader).to_have_url(f"{url}/devices")
    expect(reader.get_by_role("banner")).to_contain_text("alice, operator")
    assert reader.locator("html").evaluate("html => html.scrollWidth - html.clientWidth") == 0
    assert COOKIE not in reader.evaluate("() => document.cookie")
    written = reader.evaluate(
        """() => fetch("/api/v1/enrolment-codes", {method: "POST", body: "{}",
                 headers: {"content-type": "application/json"}}).then(answer => answer.status)"""
    )
    assert written == 201
    reader.get_by_role("button", name="Log out").click()
    expect(reader).to_have_url(f"{url}/login")
    reader.goto(url)
    expect(reader).to_have_url(f"{url}/login")


def test_the_page_of_another_site_writes_nothing(reader: Page, url: str, token: str) -> None:
    reader.goto(f"{url}/login")
    reader.get_by_label("Token").fill(token)
    reader.keyboard.press("Enter")
    expect(reader.get_by_role("banner")).to_contain_text("alice")
    reader.goto(f"data:text/html,<form method=post action={url}/logout><button>Win a prize</button></form>")
    reader.get_by_role("button").click()
    expect(reader.locator("body")).to_contain_text("did not come from a page of this server")
    reader.goto(url)
    expect(reader.get_by_role("banner")).to_contain_text("alice")
