"""Every page against axe-core's rules in both languages, light and dark, wide and narrow; where requests go."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Request

from powerlab_dashboards.language import LANGUAGES
from tests.browser.conftest import Site
from tests.browser.test_pages_in_a_browser import PAGES

READERS = {
    "en": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "light"},
    "zh-CN": {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"},
}
"""One reader a language: colours and widths are the same rules for both, and words are named alike in all of them."""


def test_every_language_has_a_reader() -> None:
    assert set(READERS) == set(LANGUAGES)


@pytest.fixture(scope="module", params=READERS)
def reader(browser: Browser, request: pytest.FixtureRequest) -> Iterator[tuple[str, BrowserContext]]:
    """Return a reader's language and browser."""
    context = browser.new_context(locale=request.param, **READERS[request.param])
    yield request.param, context
    context.close()


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_and_nothing_leaves_the_origin(
    name: str, reader: tuple[str, BrowserContext], site: Site
) -> None:
    tag, context = reader
    page = context.new_page()
    troubles: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith((site.url, "data:", "blob:")):
            troubles.append(f"asks {request.url}")

    page.on("request", asked)
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(site.addresses[name])
    page.locator(".plot:not([data-drawn]):not(.said)").first.wait_for(state="detached")
    assert page.locator("html").get_attribute("lang") == tag
    found = Axe().run(page).response["violations"]
    said = [f"{one['id']}: {one['help']}: {node['html']}" for one in found for node in one["nodes"]]
    page.close()
    assert said == []
    assert troubles == []
