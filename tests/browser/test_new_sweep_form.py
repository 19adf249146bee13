"""The form for a new sweep in a browser, with scripts and without."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Site

pytestmark = pytest.mark.campaign


@pytest.mark.parametrize("scripts", [True, False], ids=["with scripts", "without"])
def test_a_sweep_is_filled_in_mended_and_started(site: Site, browser: Browser, scripts: bool) -> None:
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    page.goto(site.url)
    page.get_by_role("link", name="New sweep").click()
    page.get_by_role("checkbox", name="xavier-sim").check()
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("checkbox", name="alexnet").check()
    page.get_by_role("checkbox", name="resnet50").uncheck()
    page.get_by_role("checkbox", name="MODE_10W").check()
    page.get_by_label("Threads").fill("1,4")
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("2 cores online")).to_be_visible()
    page.get_by_label("Threads").fill("1,2")
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("12 runs, 4 points")).to_be_visible()
    page.get_by_role("checkbox", name="gpu", exact=True).check()
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("18 runs, 6 points")).to_be_visible()
    page.get_by_role("button", name="Start").click()
    expect(page.locator("h1")).to_contain_text("alexnet")
    expect(page.locator("#progress")).to_contain_text("queued")
    page.get_by_role("group", name="Sweep actions").locator("summary").click()  # the device is the other tests' too
    page.get_by_role("group", name="Sweep actions").get_by_role("button", name="Cancel the sweep", exact=True).click()
    # A context that is closed while a page loads may never be closed.
    expect(page.locator("#progress")).to_contain_text("cancelled by local user")
    context.close()
