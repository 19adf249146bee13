"""A run's page in a browser: zooming fetches what is looked at, keys lead to the runs beside it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, Request, expect

from tests.browser.conftest import OpenPage, Site

pytestmark = pytest.mark.campaign

CHART = "#power-trace .plot"
SLOW = """() => addEventListener(
  "mousedown", () => { for (const start = Date.now(); Date.now() - start < 500; ); }, true)"""
"""Half a second for each press, longer than Plotly allows between the two of a double click."""


def range_of(page: Page) -> list[float]:
    found: list[float] = page.locator(CHART).evaluate("plot => plot.layout.xaxis.range.map(Number)")
    return found


def asked(requests: list[Request]) -> list[str]:
    return [request.url for request in requests if "power-trace" in request.url]


@pytest.fixture
def zoomed(site: Site, open_page: OpenPage) -> tuple[Page, list[Request]]:
    page = open_page(site.addresses["recorded run"])
    expect(page.get_by_role("group", name="Time shown")).to_be_visible()
    requests: list[Request] = []
    page.on("request", lambda request: requests.append(request))  # noqa: PLW0108 - playwright marks what it is given
    return page, requests


def test_dragging_across_the_chart_fetches_that_part_and_a_double_click_the_whole(
    zoomed: tuple[Page, list[Request]],
) -> None:
    page, requests = zoomed
    whole = range_of(page)
    page.locator(CHART).scroll_into_view_if_needed()
    box = page.locator(f"{CHART} .nsewdrag").first.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.5 * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], y, steps=5)
    page.mouse.up()
    page.wait_for_selector(f"{CHART}[data-span]")
    first, last = range_of(page)
    assert whole[0] < first < last < whole[1]
    assert last - first == pytest.approx(0.1 * (whole[1] - whole[0]), rel=0.1)
    assert any("from_s=" in url for url in asked(requests))
    page.evaluate(SLOW)
    page.mouse.dblclick(box["x"] + box["width"] / 2, y)
    page.wait_for_selector(f"{CHART}[data-span=all]")
    assert range_of(page) == whole


def test_buttons_zoom_with_the_keyboard_alone(zoomed: tuple[Page, list[Request]], site: Site) -> None:
    page, _ = zoomed
    whole = range_of(page)
    for name, expected in (("Zoom in", 0.5), ("Zoom in", 0.25), ("Zoom out", 0.5)):
        before = page.locator(CHART).get_attribute("data-span")
        page.get_by_role("button", name=name, exact=True).focus()
        page.keyboard.press("Enter")
        changed = "([chart, before]) => document.querySelector(chart).getAttribute('data-span') !== before"
        page.wait_for_function(changed, arg=[CHART, before])
        first, last = range_of(page)
        assert last - first == pytest.approx(expected * (whole[1] - whole[0]), rel=0.01)
    page.get_by_role("button", name="Timed part").click()
    start_ns, end_ns = site.recorded.window_ns
    page.wait_for_selector(f"{CHART}[data-span^='0.00000 ']")
    assert range_of(page) == pytest.approx([0, (end_ns - start_ns) / 1e9])
    page.get_by_role("button", name="Whole run").click()
    page.wait_for_selector(f"{CHART}[data-span=all]")
    assert range_of(page) == whole


def test_keys_lead_to_the_runs_beside_it(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["run"])
    here = page.url
    page.keyboard.press("n")
    page.wait_for_url(lambda url: url != here)
    page.locator("h1").wait_for()
    page.keyboard.press("p")
    page.wait_for_url(here)


def test_on_a_phone_nothing_is_wider_than_the_screen(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["recorded run"], width=390, scheme="dark")
    assert page.locator("html").evaluate("html => html.scrollWidth - html.clientWidth") == 0
