"""What home, the devices and a device say: who is there, what is measured, what came out of it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update
from starlette.testclient import TestClient

from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Verdict
from powerlab.protocol.bookings import BookingKind, BookingRequest
from powerlab.protocol.messages import Finish
from powerlab.protocol.readings import (
    ClockNow,
    DeviceReading,
    PhaseReport,
    RailPower,
    ReadingsUpload,
    Snapshot,
    TemperatureNow,
    TotalPower,
)
from powerlab.store.maintenance.summary_worker import sum_up
from powerlab.store.reads.fleet_status import OFFLINE_AFTER_S
from powerlab.store.tables import DeviceRow, JobRow
from powerlab.store.writes import bookings, jobs
from powerlab.store.writes.readings import store_readings
from powerlab_dashboards.pages.device import TABS
from powerlab_dashboards.times import span, when
from tests.dashboards import plausible
from tests.dashboards.conftest import START, Shelf, Shelved, client_of, open_shelf
from tests.dashboards.page_tree import Element, parse
from tests.dashboards.test_pages import words

THROTTLED = Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="cpu-thermal reached 71 °C")

SEEN = Snapshot(
    mode="MODE_15W",
    total=TotalPower(power_w=12.5, provenance=Provenance.SIMULATED, scope="the module"),
    rails=(
        RailPower(rail="ina3221:VDD", power_w=12.5, provenance=Provenance.SIMULATED),
        RailPower(rail="rapl:package-0", provenance=Provenance.MEASURED, problem="denied: use sudo"),
    ),
    clocks=(ClockNow(name="CPU 0-3", clock_mhz=1190.0),),
    temperatures=(TemperatureNow(name="CPU-therm", celsius=51.5, limit_c=86.0),),
)
MEASURED = Snapshot(mode="MAXN", total=TotalPower(power_w=7.25, provenance=Provenance.MEASURED, scope="the wall"))


class World:
    """A fleet: a board that is done, one in the middle of a sweep, a host that fell silent, one without sensors."""

    def __init__(self, shelf: Shelf, client: TestClient) -> None:
        self.shelf, self.client = shelf, client
        one_mode = plausible.plan(modes=("current",), models=("alexnet",))
        self.done = shelf.add_sweep(plausible.xavier("done-1"), plausible.plan())
        made = plausible.runs(plausible.laptop("silent-1"), one_mode, "to be set")
        made[0] = plausible.failed(made[0].point, "to be set")
        made[1] = dataclasses.replace(made[1], verdict=Verdict.FLAGGED, findings=(THROTTLED,))
        self.silent = shelf.add_sweep(plausible.laptop("silent-1"), one_mode, made=made)
        self.bare = shelf.add_sweep(plausible.bare("bare-1"), plausible.plan(modes=("current",)))
        self.running = shelf.add_sweep(plausible.xavier("busy-1"), plausible.plan(models=("mobilenetv2",)), stored=9)
        long_ago = START - timedelta(seconds=OFFLINE_AFTER_S + 1)
        with shelf.store.write() as session:
            session.execute(update(DeviceRow).where(DeviceRow.id == self.silent.device_id).values(seen_at=long_ago))
            job = update(JobRow).where(JobRow.sweep_id == self.running.id)
            session.execute(job.values(detail="cools down: CPU-therm is at 61.5 °C", expected_s=1200.0))
            point = plausible.plan(models=("mobilenetv2",)).points()[0]
            timed = PhaseReport(
                sweep_id=self.running.id, phase=RunPhase.TIMED, point=point, run_index=10, run_count=36, left_s=12.0
            )
            said = {
                self.done: ReadingsUpload(readings=(DeviceReading(age_s=1.0, seen=SEEN),)),
                self.bare: ReadingsUpload(readings=(DeviceReading(age_s=1.0, seen=Snapshot(mode="current")),)),
                self.running: ReadingsUpload(readings=(DeviceReading(age_s=5.0, seen=MEASURED),), phase=timed),
            }
            for one, upload in said.items():
                store_readings(session, one.device_id, upload, START)
        sum_up(shelf.store)

    def text(self, address: str) -> str:
        """Return a page's words."""
        answer = self.client.get(address)
        assert answer.status_code == 200
        return words(answer.text)

    def tree(self, address: str) -> Element:
        """Return a page as a tree."""
        return parse(self.client.get(address).text)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Fill one store for all the tests that only read."""
    shelf = open_shelf(tmp_path_factory.mktemp("fleet") / "powerlab.db")
    with client_of(shelf) as client:
        yield World(shelf, client)
    shelf.store.close()


class TestHome:
    def test_the_fleet_is_counted_and_what_needs_a_look_is_marked(self, world: World) -> None:
        (tiles,) = [one for one in world.tree("/").all("ul") if one.attributes.get("class") == "tiles"]
        said = {tuple(tile.text.split()[:2]): tile for tile in tiles.all("li")}
        assert [re.sub(r"\s+", " ", tile.text).strip() for tile in list(said.values())[:5]] == [
            "Online 3 of 4 devices",
            "Busy 1 measuring now",
            "Offline 1 silent-1",
            "Throttled, 24 h 1 runs on silent-1",
            "Failures, 24 h 1 1 run, 0 sweeps",
        ]
        assert [tile.attributes.get("class") for tile in list(said.values())[:5]] == [None, None, *["alarming"] * 3]

    def test_a_sweep_in_progress_says_what_it_does_and_how_long_it_takes(self, world: World) -> None:
        text = world.text("/")
        assert "busy-1 mobilenetv2 9 / 36 15 min cools down: CPU-therm is at 61.5 °C" in text

    def test_power_now_is_told_by_provenance_and_never_mixed(self, world: World) -> None:
        text = world.text("/")
        assert "Power now, simulated 12.5 W of 1 device" in text
        assert "Power now, measured 7.25 W of 1 device" in text

    def test_finished_sweeps_say_their_answer_with_its_verdict(self, world: World) -> None:
        text = world.text("/")
        assert re.search(
            r"resnet50 [\d.]+ ±[\d.]+ J/img simulated \d threads, batch \d, mode MODE_\w+ winner done-1 finished", text
        )
        assert re.search(r"resnet50 [\d.]+ ±[\d.]+ img/s measured [^±]+ bare-1 finished", text)
        assert re.search(r"alexnet [^±]+±[\d.]+ J/img measured [^±]+ not enough data silent-1 finished", text)

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("q=MOBILE", {"running"}),
            ("q=silent", {"silent"}),
            ("q=resnet", {"done", "bare"}),
            ("state=running", {"running"}),
            ("q=resnet&state=running", set()),
            ("state=nonsense", {"done", "silent", "bare", "running"}),
            ("q=%25", set()),
        ],
    )
    def test_the_search_stands_in_the_address(self, world: World, query: str, found: set[str]) -> None:
        html = world.client.get(f"/?{query}").text
        table = html[html.index('id="sweeps-heading"') :]
        assert {name for name in ("done", "silent", "bare", "running") if sweep_of(world, name).id in table} == found
        assert found or "No sweep matches." in words(html)

    def test_what_is_searched_for_stays_in_the_form(self, world: World) -> None:
        tree = world.tree("/?q=alexnet&state=done")
        fields = {field.attributes.get("name"): field for field in tree.all("input")}
        assert fields["q"].attributes["value"] == "alexnet"
        assert [one.text for one in tree.all("option") if "selected" in one.attributes] == ["finished"]


def sweep_of(world: World, name: str) -> Shelved:
    """Return a sweep of the world by its name."""
    found: Shelved = getattr(world, name)
    return found


class TestDevices:
    def test_every_device_is_a_line(self, world: World) -> None:
        text = world.text("/devices")
        assert re.search(r"busy-1 busy mobilenetv2 , cools down: CPU-therm is at 61.5 °C", text)
        assert "done-1 idle none jetson-agx-xavier simulated 12.5 simulated 52 1190 MODE_15W 0 0" in text
        assert "bare-1 idle none generic no power unknown unknown current 0 0" in text
        assert "busy-1 busy" in text
        assert "jetson-agx-xavier simulated 7.25 measured" in text
        assert re.search(r"silent-1 offline none generic offline 1 1", text), "an old reading says nothing of now"

    def test_a_provenance_that_all_powers_share_is_said_once(self, world: World) -> None:
        (table,) = world.tree("/devices?name=-1&show=idle").all("table")
        marks = [one.text for one in table.all("span") if "prov" in one.attributes.get("class", "").split()]
        assert marks == ["simulated", "simulated"]  # the column of powers, and the board

    @pytest.mark.parametrize(
        ("query", "names"),
        [
            ("show=offline", ["silent-1"]),
            ("show=busy", ["busy-1"]),
            ("show=idle", ["bare-1", "done-1"]),
            ("show=throttled", ["silent-1"]),
            ("show=failing", ["silent-1"]),
            ("show=nonsense", ["bare-1", "busy-1", "done-1", "silent-1"]),
            ("name=ON", ["done-1"]),
            ("after=busy-1", ["done-1", "silent-1"]),
            ("name=nobody", []),
        ],
    )
    def test_some_can_be_asked_for(self, world: World, query: str, names: list[str]) -> None:
        html = world.client.get(f"/devices?{query}").text
        assert re.findall(r'<th scope="row"><a href="/devices/[^"]+">([^<]+)</a>', html) == names
        assert names or "No device matches." in words(html)


class TestDevice:
    def test_an_offline_device_says_since_when_and_what_to_check(self, world: World) -> None:
        text = world.text(f"/devices/{world.silent.device_id}")
        assert "offline , last contact 2026-11-21 09:26 UTC" in text
        assert "check that the device has power and network" in text
        assert "In the last 24 h: 1 throttled run, 1 failed run, 0 failed sweeps." in text

    def test_one_at_work_says_at_what(self, world: World) -> None:
        text = world.text(f"/devices/{world.running.device_id}")
        assert "mobilenetv2 9 / 36 cools down: CPU-therm is at 61.5 °C" in text
        assert "Phase timed , about 12 s left Run 10 of 36 Point mobilenetv2, " in text
        assert "Sweep 15 min left Power 7.25 W measured" in text
        assert "the agent reads and sends nothing until that is over" in text

    def test_its_readings_say_what_is_missing(self, world: World) -> None:
        text = world.text(f"/devices/{world.done.device_id}")
        assert "Total 12.50 simulated ina3221:VDD 12.50 simulated rapl:package-0 denied: use sudo measured" in text
        assert "CPU-therm 51.5 °C 86 °C" in text
        assert "CPU 0-3 1190 MHz not told" in text
        assert "No temperature can be read here." in world.text(f"/devices/{world.bare.device_id}")
        assert "Nothing was read in the last five minutes." in world.text(f"/devices/{world.silent.device_id}")

    def test_a_running_sweep_says_what_it_does(self, world: World) -> None:
        assert "Phase timed , about 12 s left Run 10 of 36" in world.text(f"/sweeps/{world.running.id}")
        assert "Phase" not in world.text(f"/sweeps/{world.done.id}")

    def test_its_history_has_its_sweeps_alone(self, world: World) -> None:
        html = world.client.get(f"/devices/{world.done.device_id}/history").text
        assert world.done.id in html
        assert not [one.id for one in (world.silent, world.bare, world.running) if one.id in html]
        assert "winner" in html

    def test_its_modes_are_listed(self, world: World) -> None:
        text = world.text(f"/devices/{world.done.device_id}/modes")
        assert "MODE_15W the vendor 4 four cores, capped clocks" in text

    def test_its_sensors_say_what_was_found_and_what_to_do(self, world: World) -> None:
        text = world.text(f"/devices/{world.bare.device_id}/sensors")
        assert "rapl denied energy_uj may be read by root only run: sudo chmod a+r" in text
        assert "No power rail can be read" in world.text(f"/devices/{world.bare.device_id}")
        assert "package-0 J measured" in world.text(f"/devices/{world.silent.device_id}/sensors")

    def test_sensors_that_are_not_there_are_folded(self, world: World) -> None:
        (folded,) = world.tree(f"/devices/{world.done.device_id}/sensors").one("main").all("details")
        assert "1 source is not on this device" in folded.text
        assert "rapl absent no powercap folder none needed" in re.sub(r"\s+", " ", folded.text)
        assert "ina3221" not in folded.text

    def test_bookings_are_listed(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,), threads=(1,)))
        address = f"/devices/{sweep.device_id}/bookings"
        assert "Not booked." in words(client.get(address).text)
        window = BookingRequest(
            device_id=sweep.device_id,
            kind=BookingKind.MAINTENANCE,
            starts_at=START,
            ends_at=START + timedelta(hours=2),
            reason="new fan",
        )
        with shelf.store.write() as session:
            bookings.book(session, window, by="ann", now=START)
        text = words(client.get(address).text)
        assert "maintenance (now) nobody 2026-11-21 09:30 UTC 2026-11-21 11:30 UTC new fan" in text
        assert "idle maintenance" in words(client.get("/devices").text)

    @pytest.mark.parametrize("part", TABS)
    def test_in_chinese_its_pages_have_no_english_titles(
        self, world: World, monkeypatch: pytest.MonkeyPatch, part: str
    ) -> None:
        monkeypatch.setitem(world.client.headers, "accept-language", "zh-CN")
        for one in (world.done, world.silent, world.bare, world.running):
            main = world.tree(f"/devices/{one.device_id}/{part}".rstrip("/")).one("main")
            titles = [found.text for found in main.all("h2", "dt", "button", "nav")]
            titles += [found.text for found in main.all("th") if found.attributes.get("scope") == "col"]
            assert titles
            assert [title for title in titles if re.search("[a-z]{2}", title)] == []

    @pytest.mark.parametrize("address", ["/devices/none", "/devices/none/modes", "/devices/{device}/charts"])
    def test_what_is_not_there_is_a_page_that_says_so(self, world: World, address: str) -> None:
        answer = world.client.get(address.format(device=world.done.device_id))
        assert answer.status_code == 404
        assert "Page not found" in answer.text


def test_a_fleet_without_devices_says_what_to_do(client: TestClient) -> None:
    assert "No devices yet. Run powerlab demo" in words(client.get("/").text)


def test_home_leads_to_what_was_throttled_and_what_failed(shelf: Shelf, client: TestClient) -> None:
    plan = plausible.plan(modes=("current",), models=("alexnet",), batch_sizes=(1,), threads=(1,))
    for name, slowed in (("fine-1", False), ("hot-1", True)):
        made = plausible.runs(plausible.laptop(name), plan, "to be set")
        made[0] = dataclasses.replace(made[0], verdict=Verdict.FLAGGED, findings=(THROTTLED,)) if slowed else made[0]
        shelf.add_sweep(plausible.laptop(name), plan, made=made)
    broken = shelf.add_sweep(plausible.laptop("broken-1"), plan, stored=1)
    end = Finish(fencing_token=broken.lease.fencing_token, state="failed", detail="the model cannot be loaded")
    with shelf.store.write() as session:
        jobs.finish(session, broken.device_id, broken.lease.job_id, end, START)
    home = parse(client.get("/").text)
    (tiles,) = [one for one in home.all("ul") if one.attributes.get("class") == "tiles"]
    alarming = {
        re.sub(r"\s+", " ", tile.text).strip(): next(iter(tile.all("a"))).attributes["href"]
        for tile in tiles.all("li")
        if tile.attributes.get("class") == "alarming"
    }
    assert alarming == {
        "Throttled, 24 h 1 runs on hot-1": "/devices?show=throttled",
        "Failures, 24 h 1 0 runs, 1 sweep": "/devices?show=failing",
    }
    for address, name in zip(alarming.values(), ("hot-1", "broken-1"), strict=True):
        listed = client.get(address).text
        assert re.findall(r'<th scope="row"><a href="/devices/[^"]+">([^<]+)</a>', listed) == [name]
    assert "the model cannot be loaded" in words(client.get("/?state=failed").text)


def test_a_time_is_marked_up_for_the_script_and_readable_without_it() -> None:
    text = "2026-11-21 09:30 UTC"
    expected = f'<time datetime="2026-11-21T09:30:00+00:00" title="{text}" data-relative>{text}</time>'
    assert when(START) == when(START.replace(tzinfo=None)) == expected
    assert when(None) == ""


@given(st.floats(0, 1e7))
def test_a_span_is_off_by_half_its_smallest_unit_at_most(duration_s: float) -> None:
    units = {"min": 60, "h": 3600, "d": 86400}
    parts = [(int(number), units[unit]) for number, unit in re.findall(r"(\d+) (min|h|d)", span(duration_s))]
    if not parts:
        assert span(duration_s) == "less than a minute"
        assert duration_s < 60
    else:
        smallest = 60 if duration_s < 86400 else 3600
        assert abs(sum(number * unit for number, unit in parts) - duration_s) <= smallest / 2 + 1e-6
