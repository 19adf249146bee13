"""Pages that follow what happens: readings, phases, silence of a device, and a server that goes away."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, expect

from free_port import free_port
from fresh_store import fresh_store
from powerlab.cli.commands.serve.server import compose
from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.protocol.readings import DeviceReading, PhaseReport, ReadingsUpload, Snapshot, TotalPower
from powerlab.store.reads.fleet_status import OFFLINE_AFTER_S
from powerlab.store.writes.readings import store_readings
from powerlab_api.settings import Settings
from tests.browser.conftest import PATIENCE_MS
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf

pytestmark = pytest.mark.campaign


class LiveSite:
    """A server that can be stopped and started at the same address, and a clock that only the test moves."""

    def __init__(self, path: Path) -> None:
        self.now = START
        self.shelf = Shelf(fresh_store(path, clock=lambda: self.now))
        self.sweep = self.shelf.add_sweep(plausible.xavier("busy-1"), plausible.plan(models=("alexnet",)), stored=2)
        self.now = START + timedelta(seconds=65)  # while its agent holds the job
        self.port = free_port()
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        app = compose(self.shelf.store, Settings())
        self._server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="error", timeout_graceful_shutdown=1)
        )
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            self._thread.join(0.02)
            assert self._thread.is_alive(), "the server did not start"

    def stop(self) -> None:
        assert self._server is not None
        assert self._thread is not None
        self._server.should_exit = True
        self._thread.join()

    def say(self, phase: RunPhase, power_w: float | None = None) -> None:
        """Do as the agent does a second later: tell the phase, and a reading if there is one."""
        self.now += timedelta(seconds=1)
        seen = power_w and Snapshot(
            mode="MODE_15W", total=TotalPower(power_w=power_w, provenance=Provenance.SIMULATED, scope="the module")
        )
        point = plausible.plan(models=("alexnet",)).points()[0]
        report = PhaseReport(sweep_id=self.sweep.id, phase=phase, point=point, run_index=3, run_count=36, left_s=40.0)
        upload = ReadingsUpload(readings=(DeviceReading(age_s=0.0, seen=seen),) if seen else (), phase=report)
        with self.shelf.store.write() as session:
            store_readings(session, self.sweep.device_id, upload, self.now)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[LiveSite]:
    site = LiveSite(tmp_path / "powerlab.db")
    site.start()
    yield site
    site.stop()
    site.shelf.store.close()


@pytest.fixture
def page(browser: Browser, live: LiveSite) -> Iterator[Page]:
    context = browser.new_context(base_url=f"http://127.0.0.1:{live.port}")
    context.set_default_timeout(PATIENCE_MS)
    yield context.new_page()
    context.close()


def test_a_device_shows_its_watts_as_they_come_and_why_none_come_while_a_run_is_timed(
    live: LiveSite, page: Page
) -> None:
    live.say(RunPhase.WARM_UP, 12.5)
    page.goto(f"/devices/{live.sweep.device_id}")
    total = page.locator("#live [data-reading=total]")
    expect(total).to_have_text("12.50")
    live.say(RunPhase.WARM_UP, 14.25)
    expect(total).to_have_text("14.25")
    live.say(RunPhase.TIMED)
    expect(page.locator("#job")).to_contain_text("the agent reads and sends nothing until that is over")
    expect(total).to_have_text("14.25")


def test_a_running_sweep_shows_point_phase_and_time_left(live: LiveSite, page: Page) -> None:
    live.say(RunPhase.WARM_UP, 12.5)
    page.goto(f"/sweeps/{live.sweep.id}")
    now = page.locator("#now")
    expect(now.locator(".phase")).to_have_text("warming up")
    expect(now).to_contain_text("3 of 36")
    expect(now).to_contain_text("alexnet")
    expect(now).to_contain_text(re.compile(r"about \d+ s left"))
    live.say(RunPhase.TIMED)
    expect(now.locator(".phase")).to_have_text("timed")
    live.say(RunPhase.COOLING, 9.75)
    expect(now.locator(".phase")).to_have_text("cooling down")
    expect(now.locator("[data-reading=total]")).to_have_text("9.75")


def test_a_page_says_since_when_its_server_is_silent_and_goes_on_when_it_is_back(live: LiveSite, page: Page) -> None:
    live.say(RunPhase.WARM_UP, 12.5)
    page.goto(f"/sweeps/{live.sweep.id}")
    expect(page.locator("#now .phase")).to_have_text("warming up")
    live.stop()
    expect(page.locator("#offline")).to_contain_text(re.compile(r"does not answer. .* at \d+:\d\d:\d\d"))
    live.say(RunPhase.COOLING, 11.0)
    live.start()
    expect(page.locator("#offline")).to_have_count(0)
    expect(page.locator("#now .phase")).to_have_text("cooling down")


def test_a_page_notices_a_server_that_takes_requests_and_never_answers(live: LiveSite, page: Page) -> None:
    live.say(RunPhase.WARM_UP, 12.5)
    page.add_init_script("const real = AbortSignal.timeout; AbortSignal.timeout = () => real.call(AbortSignal, 300);")
    page.goto(f"/sweeps/{live.sweep.id}")
    expect(page.locator("#now .phase")).to_have_text("warming up")
    page.route(f"**/sweeps/{live.sweep.id}", lambda route: None)
    live.say(RunPhase.TIMED)
    expect(page.locator("#offline")).to_contain_text("does not answer")
    page.unroute_all(behavior="ignoreErrors")


def test_a_chart_that_never_comes_does_not_keep_a_page_from_following(live: LiveSite, page: Page) -> None:
    live.say(RunPhase.WARM_UP, 12.5)
    page.add_init_script("const real = AbortSignal.timeout; AbortSignal.timeout = () => real.call(AbortSignal, 1000);")
    page.route("**/charts/**", lambda route: None)
    page.goto(f"/sweeps/{live.sweep.id}")
    expect(page.locator("#now .phase")).to_have_text("warming up")
    expect(page.locator(".plot .state", has_text="does not answer").first).to_be_visible()
    live.say(RunPhase.TIMED)
    expect(page.locator("#now .phase")).to_have_text("timed")
    live.stop()
    expect(page.locator("#offline")).to_contain_text("does not answer")
    page.unroute_all(behavior="ignoreErrors")


def test_home_marks_a_device_that_has_fallen_silent(live: LiveSite, page: Page) -> None:
    page.goto("/")
    offline = page.locator(".tiles li", has_text="Offline")
    expect(offline).not_to_have_class(re.compile("alarming"))
    live.now += timedelta(seconds=10 * OFFLINE_AFTER_S)
    live.stop()
    live.start()  # a page that was interrupted asks at once, and not after half a minute
    expect(offline).to_have_class(re.compile("alarming"))
    expect(offline).to_contain_text("busy-1")
