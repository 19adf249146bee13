"""The pages as a reader has them: drawn, sorted, dark, narrow, and following a sweep by themselves."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import OpenPage, Site
from tests.browser.test_every_page import CHARTS
from tests.dashboards import plausible
from tests.dashboards.conftest import START

pytestmark = pytest.mark.campaign


def column(page: Page, section: str, index: int) -> list[str]:
    return page.locator(f"#{section} tbody tr > :nth-child({index + 1})").all_inner_texts()


def background(page: Page) -> str:
    colour: str = page.locator("body").evaluate("body => getComputedStyle(body).backgroundColor")
    return colour


def test_times_are_relative_and_say_the_moment_where_the_viewer_is(site: Site, browser: Browser) -> None:
    context = browser.new_context(timezone_id="Asia/Kolkata")
    page = context.new_page()
    page.clock.install(time=START + timedelta(minutes=7))
    page.goto(site.addresses["devices"])
    seen = page.locator(f"#device-{site.device_id} time").last
    expect(seen).to_have_text("6 min. ago")
    expect(seen).to_have_attribute("title", re.compile(r"21 Nov 2026, 15:01:00"))
    page.clock.run_for(120_000)
    expect(seen).to_have_text("8 min. ago")
    context.close()


def test_the_heatmap_shows_its_figures(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["laptop"])
    cells = page.locator("#heatmap .heatmap-label").all_text_contents()
    assert len(cells) == 6
    assert all("±" in cell for cell in cells)


def test_the_page_is_dark_where_the_reader_wants_it_dark(site: Site, open_page: OpenPage) -> None:
    light, dark = (background(open_page(site.addresses["home"], scheme=scheme)) for scheme in ("light", "dark"))
    assert light == "rgb(255, 255, 255)"
    assert sum(map(int, re.findall(r"\d+", dark))) < 100


def test_charts_follow_when_the_reader_turns_the_light_off(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["laptop"], scheme="light")
    page.emulate_media(color_scheme="dark")
    expect(page.locator('.plot[data-drawn="dark"]')).to_have_count(CHARTS["laptop"])


def figures(page: Page, section: str, name: str) -> list[str]:
    """Return a column of the table of points by its heading."""
    titles = page.locator(f"#{section} thead th").all_inner_texts()
    return column(page, section, next(index for index, title in enumerate(titles) if title.startswith(name)))


def test_a_table_sorts_by_number_up_and_down(site: Site, open_page: OpenPage) -> None:
    page = open_page(f"{site.addresses['laptop']}?column=threads")
    heading = page.locator("#points th", has_text="threads").first
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "ascending")
    assert [int(text) for text in figures(page, "points", "threads")] == [1, 1, 2, 2, 10, 10]
    heading.get_by_role("link").click()
    expect(heading).to_have_attribute("aria-sort", "descending")
    assert [int(text) for text in figures(page, "points", "threads")] == [10, 10, 2, 2, 1, 1]


def test_a_table_sorts_from_the_keyboard(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["laptop"])
    heading = page.locator("#points th", has_text="Efficiency")
    heading.get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(heading).to_have_attribute("aria-sort", "ascending")
    found = [float(text.split()[0]) for text in figures(page, "points", "Efficiency")]
    assert found == sorted(found)


def test_a_missing_figure_sorts_last_in_both_directions(site: Site, open_page: OpenPage) -> None:
    plan = plausible.plan(modes=("MAXN",), batch_sizes=(1,))
    runs = [
        plausible.failed(run.point, "to be set", run.repeat) if run.point.threads == 1 else run
        for run in plausible.runs(plausible.xavier(), plan, "to be set", seed=11)
    ]
    sweep = site.shelf.add_sweep(plausible.xavier(), plan, made=runs)
    page = open_page(f"{site.url}/sweeps/{sweep.id}")
    heading = page.locator("#points th", has_text="Efficiency")
    for direction in ("ascending", "descending"):
        heading.get_by_role("link").click()
        expect(heading).to_have_attribute("aria-sort", direction)
        assert figures(page, "points", "Efficiency")[-1] == "no usable runs"


def test_the_skip_link_is_the_first_stop_of_the_keyboard(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["simulated"])
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to main content")


def test_a_sweep_in_progress_fills_up_without_being_reloaded(site: Site, open_page: OpenPage) -> None:
    plan = plausible.plan(modes=("current",), batch_sizes=(1,))
    sweep = site.shelf.add_sweep(plausible.laptop(), plan, stored=3, seed=21)
    page = open_page(f"{site.url}/sweeps/{sweep.id}")
    expect(page.locator("#progress")).to_contain_text("3 of 6 runs done")
    expect(page.locator("#points tbody tr")).to_have_count(1)
    page.goto(f"{site.url}/sweeps/{sweep.id}?sort=-threads")

    site.shelf.finish(sweep)

    expect(page.locator("#progress")).to_contain_text("6 of 6 runs done")
    expect(page.locator("#points tbody tr")).to_have_count(2)
    assert column(page, "points", 0) == ["2 threads", "1 thread"]
    expect(page.locator("main")).not_to_have_attribute("data-unfinished", "")
    expect(page.locator("#heatmap .heatmap-label")).to_have_count(2)


def test_events_alone_bring_a_page_up_to_date(site: Site, browser_page: Page) -> None:
    plan = plausible.plan(modes=("current",), batch_sizes=(1,))
    sweep = site.shelf.add_sweep(plausible.laptop(), plan, stored=3, seed=22)
    browser_page.add_init_script(
        "const wait = setTimeout; window.setTimeout = (what, ms) => (ms < 3000 ? wait(what, ms) : 0);"
    )  # nothing is asked by the clock
    browser_page.goto(f"{site.url}/sweeps/{sweep.id}")
    site.shelf.finish(sweep)
    expect(browser_page.locator("#progress")).to_contain_text("6 of 6 runs done")
    expect(browser_page.locator("main")).not_to_have_attribute("data-unfinished", "")


def test_a_server_that_streams_to_nobody_more_is_asked_every_few_seconds(site: Site, browser_page: Page) -> None:
    plan = plausible.plan(modes=("current",), batch_sizes=(1,))
    sweep = site.shelf.add_sweep(plausible.laptop(), plan, stored=3, seed=23)
    browser_page.route("**/api/v1/events*", lambda route: route.fulfill(status=503, body=""))
    browser_page.goto(f"{site.url}/sweeps/{sweep.id}")
    site.shelf.finish(sweep)
    expect(browser_page.locator("#progress")).to_contain_text("6 of 6 runs done")


def test_the_browser_refuses_a_script_from_elsewhere(site: Site, browser_page: Page) -> None:
    refused: list[str] = []
    browser_page.on("console", lambda message: refused.append(message.text))
    browser_page.goto(site.addresses["home"])
    browser_page.locator("body").evaluate(
        """body => {
            const script = document.createElement("script");
            script.textContent = "window.reached = true";
            body.append(script);
        }"""
    )
    assert browser_page.locator("body").evaluate("() => window.reached") is None
    assert any("Content Security Policy" in text for text in refused)
