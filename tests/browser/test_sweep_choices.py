"""What a reader chooses on a sweep's page, with scripts and without: it changes at once, and stands in the address."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage, Site

pytestmark = pytest.mark.campaign


def choose(page: Page, name: str, value: str) -> None:
    page.locator(f"select[name={name}]").select_option(value)
    expect(page).to_have_url(re.compile(rf"[?&]{name}={value}"))


def test_bounds_grey_out_points_at_once_and_the_address_can_be_shared(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["simulated"])
    page.get_by_label("Power while running: at most").fill("7W")
    expect(page.locator("#points tr.barred").first).to_be_visible()
    expect(page.locator("#picked .pick")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"power=7W"))
    other = open_page(page.url, width=400, scheme="dark")
    expect(other.locator("#picked .pick")).to_have_count(2)
    expect(other.get_by_label("Power while running: at most")).to_have_value("7W")


def test_without_scripts_it_is_a_form(site: Site, browser: Browser) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.addresses["laptop"])
    page.get_by_label("99th percentile latency: at most").fill("1h")
    page.get_by_role("button", name="Choose").click()
    expect(page.get_by_role("alert")).to_contain_text("is none of its units")
    page.get_by_label("99th percentile latency: at most").fill("150ms")
    page.get_by_role("button", name="Choose").click()
    expect(page.locator("#picked code")).to_contain_text("powerlab apply")
    assert page.locator("#points tr.barred").count() > 0
    context.close()


def test_the_heatmap_shows_what_is_chosen(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["simulated"])
    choose(page, "metric", "power_w")
    expect(page.locator("#heatmap .annotation-text").first).to_contain_text("Power while running, W, simulated")
    choose(page, "x", "batch")
    expect(page.locator("#heatmap .xtitle").first).to_have_text("batch")


def test_a_click_on_the_front_opens_the_runs_of_the_point(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["laptop"])
    page.locator("#pareto-front .points path").last.hover(force=True)
    page.locator("#pareto-front .points path").last.click(force=True)
    expect(page).to_have_url(re.compile(r"/runs\?point=[0-9a-f]{16}$"))
    expect(page.locator("tbody tr")).to_have_count(3)


def test_the_front_is_a_list_of_links_for_the_keyboard(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["laptop"])
    page.locator("#front-points summary").focus()
    page.keyboard.press("Enter")
    page.locator("#front-points a").first.press("Enter")
    expect(page).to_have_url(re.compile(r"/runs\?point="))


def test_columns_words_and_copies(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["simulated"])
    page.get_by_label("Find points").fill("alexnet maxn")
    expect(page.locator("#points tbody tr")).to_have_count(4)
    page.locator("details.columns summary").click()
    page.get_by_role("checkbox", name="Idle power in the same mode").check()
    expect(page.locator("#points th", has_text="Idle power")).to_be_visible()
    expect(page.get_by_label("Find points")).to_have_value("alexnet maxn")
    page.keyboard.press("Escape")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator("#points tbody button").first
    button.scroll_into_view_if_needed()
    button.dispatch_event("click")
    expect(button).to_have_text("Copied")
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert copied.startswith("powerlab profile alexnet --threads 1 --modes MAXN")


def test_points_and_charts_are_saved(site: Site, open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(f"{site.addresses['laptop']}?words=10+threads")
    with page.expect_download() as download:
        page.get_by_role("link", name="CSV").click()
    download.value.save_as(tmp_path / "points.csv")
    with (tmp_path / "points.csv").open() as file:
        assert [row["threads"] for row in csv.DictReader(file)] == ["10", "10"]
    with page.expect_download() as download:
        page.get_by_role("button", name="Save the chart Pareto front as PNG").click()
    download.value.save_as(tmp_path / "front.png")
    assert (tmp_path / "front.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("width", [1440, 390])
def test_the_head_and_the_first_column_stay(site: Site, open_page: OpenPage, width: int) -> None:
    page = open_page(site.addresses["simulated"], width=width)
    box = page.locator("#points .scroll")
    box.scroll_into_view_if_needed()
    box.evaluate("box => box.scrollTo(120, 200)")
    frame, head = box.bounding_box(), page.locator("#points thead th").first.bounding_box()
    assert frame is not None
    assert head is not None
    assert abs(head["y"] - frame["y"]) < 3
    assert abs(head["x"] - frame["x"]) < 3
