"""The buttons of a sweep in a browser, with scripts and without, and what others who look at it see of them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage, Site
from tests.dashboards import plausible

pytestmark = pytest.mark.campaign

ACTIONS = "Sweep actions"


def running(site: Site, seed: int) -> str:
    sweep = site.shelf.add_sweep(
        plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,)), stored=2, seed=seed
    )
    return f"{site.url}/sweeps/{sweep.id}"


def press(page: Page, name: str) -> None:
    page.get_by_role("group", name=ACTIONS).get_by_role("button", name=name, exact=True).click()


def cancel(page: Page) -> None:
    page.get_by_role("group", name=ACTIONS).locator("summary").click()
    press(page, "Cancel the sweep")


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_sweep_is_paused_resumed_cancelled_and_cloned(site: Site, browser: Browser, scripts: bool) -> None:
    address = running(site, 31 + scripts)
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    page.goto(address)
    for name, then in (("Pause", "paused by local user"), ("Resume", "running")):
        press(page, name)
        expect(page).to_have_url(address)
        expect(page.locator("#progress")).to_contain_text(then)
    cancel(page)
    expect(page.locator("#progress")).to_contain_text("cancelled by local user")
    expect(page.get_by_role("group", name=ACTIONS).get_by_role("button")).to_have_text(["Run again"])
    press(page, "Run again")
    expect(page.locator("#progress")).to_contain_text("queued")
    assert page.url != address
    cancel(page)  # the device is the other tests' too
    expect(page.locator("#progress")).to_contain_text("cancelled by local user")
    context.close()


def test_who_looks_on_sees_it_at_once_and_has_the_right_buttons(
    site: Site, browser_page: Page, open_page: OpenPage
) -> None:
    address = running(site, 33)
    browser_page.goto(address)
    onlooker = open_page(address, width=400, scheme="dark")
    press(browser_page, "Pause")
    expect(onlooker.locator("#progress")).to_contain_text("paused by local user")
    buttons = onlooker.get_by_role("group", name=ACTIONS).locator("form[action$=resume] button")
    expect(buttons).to_have_text(["Resume"])
    assert onlooker.locator("html").evaluate("html => html.scrollWidth - html.clientWidth") == 0
    cancel(browser_page)
    expect(onlooker.locator("#progress")).to_contain_text("cancelled by local user")
    expect(onlooker.locator("main")).not_to_have_attribute("data-unfinished", "")


def test_the_question_stays_open_while_the_page_is_brought_up_to_date(site: Site, open_page: OpenPage) -> None:
    sweep = site.shelf.add_sweep(
        plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,)), stored=2, seed=34
    )
    page = open_page(f"{site.url}/sweeps/{sweep.id}")
    page.get_by_role("group", name=ACTIONS).locator("summary").click()
    site.shelf.upload(sweep, 4)
    expect(page.locator("#progress")).to_contain_text("4 of 6 runs done")
    expect(page.get_by_role("button", name="Cancel the sweep")).to_be_visible()
    site.shelf.finish(sweep)
