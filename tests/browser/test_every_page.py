"""Every page for readers of both languages, light and dark, wide and narrow: drawn, fitting, axe finds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from powerlab_dashboards.language import LANGUAGES
from tests.browser.conftest import Site, trouble

DEVICE_PAGES = ("device", "device history", "device modes", "device sensors", "device bookings")
RUN_PAGES = ("sweep runs", "run", "counter run", "recorded run", "audit")
RESULT_PAGES = ("simulated", "bare", "laptop", "studies", "study", "layers", "layer profile", *RUN_PAGES)
COMPARE_PAGES = ("compare", "campaign", "comparison", "trends", "jobs", "admin", "admin log")
PAGES = ("home", "devices", "new sweep", "models", "model", "model table", *DEVICE_PAGES, *RESULT_PAGES, *COMPARE_PAGES)
CHARTS = {
    "simulated": 4,
    "bare": 3,
    "laptop": 4,
    "run": 3,
    "recorded run": 2,
    "counter run": 1,
    "layer profile": 2,
    "campaign": 2,
    "comparison": 2,
    "trends": 1,
    "study": 1,
}

DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
READERS = {
    "en-light-desk": ("en", "light", DESK),
    "zh-CN-dark-phone": ("zh-CN", "dark", PHONE),
    # In the other colours and width, which have little to do with the language.
    "en-dark-phone": ("en", "dark", PHONE),
    "zh-CN-light-desk": ("zh-CN", "light", DESK),
}
LIKE_ANOTHER = {*DEVICE_PAGES[1:], "model table", "bare", "laptop", "sweep runs", "counter run", "recorded run"}
LIKE_ANOTHER |= {"studies", "layers", "campaign", "admin log"}
"""Pages that are made of what another page shows, too: the fast tests leave them to continuous integration, for every
visit takes the browser three seconds of a core."""
FAST = {"home", "device", "simulated", "comparison"}
"""Pages that the second reader visits in the fast tests."""


def visit(reader: str, name: str) -> Any:
    """Return a visit with its marks: the first reader's are fast or short campaigns, the others' longer ones."""
    usual, second, *_ = READERS
    if reader == usual:
        return pytest.param(reader, name, marks=[pytest.mark.campaign][: name in LIKE_ANOTHER])
    if reader == second and name in FAST:
        return pytest.param(reader, name)
    if reader == second:
        return pytest.param(reader, name, marks=pytest.mark.campaign(minutes=1))
    return pytest.param(reader, name, marks=[pytest.mark.campaign, pytest.mark.release])


VISITS = [visit(reader, name) for reader in READERS for name in PAGES]


def test_every_language_has_a_reader() -> None:
    assert {language for language, *_ in READERS.values()} == set(LANGUAGES)


@pytest.fixture(scope="module")
def reader(browser: Browser, request: pytest.FixtureRequest) -> Iterator[tuple[str, str, BrowserContext]]:
    """Return a reader's language, colours and browser, which keeps a cache from page to page."""
    language, scheme, viewport = READERS[request.param]
    context = browser.new_context(locale=language, color_scheme=scheme, viewport=viewport)
    yield language, scheme, context
    context.close()


def chart_troubles(page: Page, scheme: str) -> list[str]:
    """Return what is wrong with a page's charts: in other colours than the page, too small, or out of their place."""
    found = []
    for plot in page.locator(".plot:not(.said)").all():
        box, frame = plot.locator("svg.main-svg").first.bounding_box(), plot.bounding_box()
        assert box is not None
        assert frame is not None
        if plot.get_attribute("data-drawn") != scheme:
            found.append(f"drawn {plot.get_attribute('data-drawn')}")
        if box["width"] <= 300 or box["height"] <= 100 or box["width"] > frame["width"] + 1:
            found.append(f"a chart of {box} in {frame}")
    return found


@pytest.mark.parametrize(("reader", "name"), VISITS, indirect=["reader"])
def test_a_page_fits_its_charts_are_drawn_axe_finds_nothing_and_nothing_leaves_the_origin(
    name: str, reader: tuple[str, str, BrowserContext], site: Site
) -> None:
    language, scheme, context = reader
    page = context.new_page()
    troubles: list[str] = []

    def asked(request: Request) -> None:
        if not request.url.startswith((site.url, "data:", "blob:")):
            troubles.append(f"asks {request.url}")

    page.on("request", asked)
    page.on("requestfailed", lambda request: troubles.extend(trouble(request)))
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(site.addresses[name])
    page.locator(".plot:not([data-drawn]):not(.said)").first.wait_for(state="detached")
    assert page.locator("html").get_attribute("lang") == language
    assert page.locator("html").evaluate("html => html.scrollWidth - html.clientWidth") == 0
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator(".plot[data-drawn]")).to_have_count(CHARTS.get(name, 0))
    troubles += chart_troubles(page, scheme)
    marks = page.locator(".plot .trace path, .plot .heatmaplayer image, .plot .hm image")
    assert (marks.count() > 0) == (name in CHARTS)
    found = Axe().run(page).response["violations"]
    said = [f"{one['id']}: {one['help']}: {node['html']}" for one in found for node in one["nodes"]]
    page.close()
    assert said == []
    assert troubles == []
