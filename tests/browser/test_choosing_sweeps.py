"""Sweeps ticked on the home page are compared; the devices' table fits a small screen with all it can say."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from powerlab.domain.quantity import Provenance
from powerlab.protocol.readings import ClockNow, DeviceReading, ReadingsUpload, Snapshot, TemperatureNow, TotalPower
from powerlab.store.writes.readings import store_readings
from tests.browser.conftest import OpenPage, Site
from tests.dashboards.conftest import START

pytestmark = pytest.mark.campaign

SEEN = Snapshot(
    mode="MODE_30W_6CORE",
    total=TotalPower(power_w=12.5, provenance=Provenance.SIMULATED, scope="the module"),
    clocks=(ClockNow(name="CPU 0-3", clock_mhz=1190.0),),
    temperatures=(TemperatureNow(name="CPU-therm", celsius=51.5),),
)


def test_sweeps_that_are_ticked_on_the_home_page_are_compared(site: Site, browser_page: Page) -> None:
    page = browser_page  # a page that is left may have asked for itself anew
    page.goto(f"{site.url}/?q=resnet50")
    sweeps = page.locator("#sweeps tbody tr", has_text="72 / 72"), page.locator("#sweeps tbody tr", has_text="18 / 18")
    for row in sweeps:
        row.first.get_by_role("checkbox").check()
    page.get_by_role("button", name="Compare chosen").click()
    expect(page.locator("h1")).to_contain_text("compared")
    assert page.url.count("=") == 2


def test_ticks_stay_when_the_list_is_fetched_anew(site: Site, open_page: OpenPage) -> None:
    page = open_page(site.addresses["home"])
    box = page.locator("#sweeps tbody tr", has_text="18 / 18").first.get_by_role("checkbox")
    box.check()
    page.locator("#sweeps").evaluate("part => part.append(document.createElement('hr'))")
    page.evaluate("async () => (await import('/static/live.js')).refresh()")
    expect(box).to_be_checked()


def test_the_devices_and_all_they_read_fit_a_small_screen(site: Site, open_page: OpenPage) -> None:
    with site.shelf.store.write() as session:
        store_readings(session, site.device_id, ReadingsUpload(readings=(DeviceReading(age_s=0.0, seen=SEEN),)), START)
    page = open_page(site.addresses["devices"], width=1280)
    expect(page.locator(f"#device-{site.device_id}")).to_contain_text("MODE_30W_6CORE")
    assert page.locator(".scroll").evaluate("part => part.scrollWidth - part.clientWidth") == 0
