"""What the pages say, over a real store."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from powerlab.analysis.summary import summarise
from powerlab.domain.device import SelfCheck
from powerlab.domain.device_state import ClockOffset, DeviceState, Fan
from powerlab.domain.mode import PowerMode, Setting
from powerlab.domain.run import Conditions, Finding, Verdict
from powerlab.domain.temperature import NO_LIMITS, TemperatureLimits
from powerlab.protocol.messages import Backlog, Description
from powerlab.store.reads import queries
from powerlab.store.writes import backlogs
from powerlab.store.writes.devices import describe
from powerlab_api.app import create_app
from powerlab_dashboards.charts.registry import RUN_CHARTS, SWEEP_CHARTS
from powerlab_dashboards.format import shown
from powerlab_dashboards.pages import home, sweep_runs
from powerlab_dashboards.pages import sweep as sweep_page
from powerlab_dashboards.router import create_router
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, add_recorded_run, client_of, open_shelf
from tests.dashboards.page_tree import parse

EVIL = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"


class Structure(HTMLParser):
    """Collects what must not be in a page, and whether every tag that was opened is closed."""

    VOID = frozenset({"meta", "link", "img", "br", "input", "hr"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.inline: list[str] = []
        self.sources: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "script" and "src" not in names:
            self.inline.append("script")
        self.inline += [name for name in names if name.startswith("on") or name == "style"]
        self.sources += [value for name in ("src", "href") if (value := names.get(name))]
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, tag
        assert self.open.pop() == tag


def structure(html: str) -> Structure:
    parser = Structure()
    parser.feed(html)
    return parser


def words(html: str) -> str:
    """Return a page's text without its tags, in one line."""
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", html)))


class Filled:
    """A store with pages of every kind, for tests that only read; ``filled["home"]`` is that page's address."""

    def __init__(self, shelf: Shelf, client: TestClient) -> None:
        self.client = client
        simulated = shelf.add_sweep(plausible.xavier(), plausible.plan())
        bare = shelf.add_sweep(plausible.bare(), plausible.plan(modes=("current",)))
        running = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)), stored=4)
        self._addresses = {
            "home": "/",
            "devices": "/devices",
            "device": f"/devices/{simulated.device_id}",
            "device history": f"/devices/{simulated.device_id}/history",
            "device modes": f"/devices/{simulated.device_id}/modes",
            "bare device": f"/devices/{bare.device_id}",
            "bare sensors": f"/devices/{bare.device_id}/sensors",
            "bare bookings": f"/devices/{bare.device_id}/bookings",
            "simulated": f"/sweeps/{simulated.id}",
            "bare": f"/sweeps/{bare.id}",
            "running": f"/sweeps/{running.id}",
            "run": f"/runs/{simulated.runs[0].id}",
            "bare run": f"/runs/{bare.runs[0].id}",
            "nowhere": "/nowhere",
        }

    def __getitem__(self, name: str) -> str:
        return self._addresses[name]


@pytest.fixture(scope="module")
def filled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """Fill one store for all the tests that only read."""
    shelf = open_shelf(tmp_path_factory.mktemp("filled") / "powerlab.db")
    with client_of(shelf) as client:
        yield Filled(shelf, client)
    shelf.store.close()


@pytest.fixture
def filled(filled_once: Filled) -> Filled:
    """The same to a visitor without cookies: whoever follows all links of a page has chosen another language."""
    filled_once.client.cookies.clear()
    return filled_once


DEVICE_PAGES = ("device", "device history", "device modes", "bare device", "bare sensors", "bare bookings")
PAGES = ("home", "devices", *DEVICE_PAGES, "simulated", "bare", "running", "run", "bare run", "nowhere")


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_whole_and_holds_nothing_inline_or_foreign(name: str, filled: Filled) -> None:
    answer = filled.client.get(filled[name])
    assert answer.status_code == (404 if name == "nowhere" else 200)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    found = structure(answer.text)
    assert found.open == []
    assert found.inline == []
    assert all(source.startswith(("/", "#")) and not source.startswith("//") for source in found.sources)
    assert len(set(found.ids)) == len(found.ids)
    assert answer.text.count("<h1") == 1


@pytest.mark.parametrize("name", PAGES)
def test_every_page_forbids_scripts_that_are_not_its_own(name: str, filled: Filled) -> None:
    policy = filled.client.get(filled[name]).headers["content-security-policy"]
    directives = dict(part.split(" ", 1) for part in policy.split("; "))
    assert directives["default-src"] == "'none'"
    assert directives["script-src"] == "'self'"
    assert directives["frame-ancestors"] == "'none'"


@pytest.mark.parametrize("name", PAGES)
def test_every_link_of_a_page_leads_somewhere(name: str, filled: Filled) -> None:
    for source in set(structure(filled.client.get(filled[name]).text).sources):
        if source.startswith("/") and not source.startswith("/api/"):  # these are another router's
            assert filled.client.get(source.split("#")[0], follow_redirects=False).status_code in (200, 303), source


class TestEmpty:
    def test_an_empty_database_says_what_to_do(self, client: TestClient) -> None:
        assert "No sweeps yet. Run powerlab demo for a first one" in words(client.get("/").text)
        assert "No devices yet" in words(client.get("/devices").text)

    @pytest.mark.parametrize("address", ["/sweeps/none", "/runs/none", "/nowhere", "/static/none.js", "/sweeps"])
    def test_what_is_not_there_is_a_page_that_says_so(self, address: str, client: TestClient) -> None:
        answer = client.get(address)
        assert answer.status_code == 404
        assert "Page not found" in answer.text

    @pytest.mark.parametrize("address", ["/api", "/api/v1/nothing"])
    def test_addresses_of_the_api_are_left_to_the_api(self, address: str, client: TestClient) -> None:
        answer = client.get(address)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/json"


class TestHome:
    def test_sweeps_with_state_and_progress(self, filled: Filled) -> None:
        html = filled.client.get("/").text
        assert "36 / 36" in words(html)
        assert "4 / 12" in words(html)
        assert re.search(r'<progress max="12" value="4"', html)
        assert re.search(r'<main id="main" data-unfinished[ >]', html)


class TestSweep:
    def test_the_answer_comes_first_with_its_interval_and_provenance(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        html = client.get(f"/sweeps/{sweep.id}").text
        assert html.index("Best efficiency") < html.index("<table")
        best = max(
            (metric for summary in summarise(sweep.runs) if (metric := summary.metric("efficiency_img_per_s_per_w"))),
            key=lambda metric: metric.value,
        )
        expected = shown(best)
        assert f"{expected.value} {expected.spread} img/s/W simulated" in words(html)
        assert expected.interval in words(html)

    def test_every_point_is_in_the_table_with_its_intervals(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)))
        text = words(client.get(f"/sweeps/{sweep.id}").text)
        for summary in summarise(sweep.runs):
            for metric in summary.metrics:
                if metric.name in ("idle_power_w", "energy_per_image_j", "energy_above_idle_per_image_j"):
                    continue
                figure = shown(metric)
                assert f"{figure.value} {figure.spread}" in text, metric.name

    def test_every_power_figure_says_where_it_comes_from(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan())
        html = client.get(f"/sweeps/{sweep.id}").text
        table = html[html.index('id="points"') : html.index('id="runs-heading"')]
        head, *rows = re.findall(r"<tr>.*?</tr>", table, flags=re.DOTALL)
        assert len(rows) == 12
        for title in ("Power", "Energy", "Efficiency"):
            heading = next(one for one in re.findall(r"<th.*?</th>", head, flags=re.DOTALL) if f">{title}<" in one)
            assert '<span class="prov prov-simulated">simulated</span>' in heading
        for row in rows:
            assert row.count(', simulated">') == 7, "the tooltip of every figure says it, too"

    def test_units_stand_in_the_headings(self, filled: Filled) -> None:
        head = re.search(r"<thead>.*?</thead>", filled.client.get(filled["simulated"]).text, flags=re.DOTALL)
        assert head is not None
        text = words(head[0])
        for unit in ("ms", "img/s", "W", "img/s/W"):
            assert f" {unit} " in text

    def test_missing_power_is_said_in_words_and_never_a_zero(self, filled: Filled) -> None:
        html = filled.client.get(filled["bare"]).text
        text = words(html)
        assert text.count("no power") >= 4
        assert "no power figure" in text
        assert "Power was not measured on this device; the devices page shows why" in text
        assert "0.00 W" not in text
        assert not re.search(r'data-key="0(\.0)?"[^>]*title', html)

    def test_a_run_says_what_its_device_was_and_where_its_traces_are(self, shelf: Shelf, client: TestClient) -> None:
        plan = plausible.plan(modes=("current",), batch_sizes=(1,))
        kept = Conditions(
            sample_period_s=0.01,
            device_state=DeviceState(kernel="5.10.120-tegra", fans=(Fan(name="pwmfan 1", pwm=77),)),
            clock_offset=ClockOffset(offset_s=0.25, uncertainty_s=0.001, age_s=3.0),
            traces_shed="its traces were shed on the device.",
        )
        runs = [
            dataclasses.replace(run, conditions=kept) for run in plausible.runs(plausible.laptop(), plan, "to be set")
        ]
        sweep = shelf.add_sweep(plausible.laptop(), plan, made=runs)
        page = words(client.get(f"/runs/{sweep.runs[0].id}").text)
        assert "This run cannot be audited, as it has no traces: its traces were shed on the device." in page
        for said in (
            "Kernel 5.10.120-tegra",
            "L4T release unknown",
            "Fans pwmfan 1: PWM 77 of 255",
            "250 ms behind the server's, to within 1 ms",
        ):
            assert said in page

    def test_a_device_says_what_its_agent_found(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)))
        with shelf.store.write() as session:
            record = queries.device(session, sweep.device_id)
            checks = (
                SelfCheck(name="disk", passed=False, detail="there is little room."),
                SelfCheck(name="clock", passed=True, detail="the clocks agree."),
            )
            said = Description(device=record.device, capabilities=record.capabilities, checks=checks)
            describe(session, sweep.device_id, said, shelf.store.clock())
        page = words(client.get(f"/devices/{sweep.device_id}").text)
        assert "failed: disk: there is little room." in page
        assert "1 of 2 self-checks passed at its last start" in page
        assert " passed clock: the clocks agree." in page

    @pytest.mark.parametrize(
        ("zones", "limits", "said"),
        [
            (("CPU-therm", "GPU0"), NO_LIMITS, "Temperature monitored when a sweep sets limits: CPU-therm, GPU0"),
            (
                ("CPU-therm",),
                TemperatureLimits(max_c=85.0),
                "CPU-therm; limits in every sweep: a run begins below 75 °C and is ended above 85 °C",
            ),
            ((), NO_LIMITS, "no temperature sensor can be read, so temperature limits cannot be enforced"),
            (None, NO_LIMITS, "its agent runs an older powerlab that does not report its sensors"),
        ],
    )
    def test_a_device_says_what_the_guard_can_watch(self, shelf: Shelf, client: TestClient, zones, limits, said):
        sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)))
        with shelf.store.write() as session:
            record = queries.device(session, sweep.device_id)
            able = dataclasses.replace(record.capabilities, thermal_zones=zones, temperature_limits=limits)
            describe(
                session, sweep.device_id, Description(device=record.device, capabilities=able), shelf.store.clock()
            )
        assert said in words(client.get(f"/devices/{sweep.device_id}").text)

    def test_a_device_says_what_waits_on_its_disk(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)))

        def said(backlog: Backlog) -> str:
            with shelf.store.write() as session:
                backlogs.note(session, sweep.device_id, backlog, shelf.store.clock())
            return words(client.get(f"/devices/{sweep.device_id}").text)

        unknown = "Upload backlog unknown: the agent has not reported its disk yet."
        assert unknown in words(client.get(f"/devices/{sweep.device_id}").text)
        nothing = Backlog(runs=0, refused_runs=0, chunks=0, size_bytes=0, oldest_age_s=None, shed_runs=0)
        assert not {unknown, "wait to be uploaded", "traces on this device"} & set(re.split(r"[.:]", said(nothing)))
        much = Backlog(runs=12, refused_runs=1, chunks=34, size_bytes=5 << 20, oldest_age_s=3600.0, shed_runs=2)
        page = said(much)
        assert "12 runs waiting to be uploaded, the oldest since 2026-11-21 08:30" in page
        assert "1 run refused by the server: 34 trace chunks, 5" in page
        assert "2 runs lost their traces on this device because its disk was full." in page
        one = Backlog(runs=1, refused_runs=0, chunks=1, size_bytes=1, oldest_age_s=None, shed_runs=1)
        assert "1 run waiting to be uploaded: 1 trace chunk" in said(one)

    def test_a_sweep_says_how_hot_its_device_may_get(self, shelf: Shelf, client: TestClient) -> None:
        bench = plausible.laptop()
        able = dataclasses.replace(bench.capabilities, thermal_zones=("x86_pkg_temp",))
        bench = dataclasses.replace(bench, capabilities=able)
        sweep = shelf.add_sweep(bench, plausible.plan(modes=("current",), max_temperature_c=85.0))
        assert "a run begins below 75 °C and is ended above 85 °C" in words(client.get(f"/sweeps/{sweep.id}").text)

    def test_a_search_may_end_before_the_runs_of_its_plan_are_made(self, shelf: Shelf, client: TestClient) -> None:
        plan = plausible.plan(modes=("current",), search_percent=1.0)
        made = sorted(plausible.runs(plausible.laptop(), plan, "to be set"), key=lambda run: run.point.id)
        running = shelf.add_sweep(plausible.laptop(), plan, made=made, stored=7)
        page = words(client.get(f"/sweeps/{running.id}").text)
        assert "7 of at most 12 runs done" in page
        assert "3 of 4 points measured, 7 runs of 12. The answer compares the points with 3 runs" in page

    def test_failed_and_flagged_runs_say_why(self, shelf: Shelf, client: TestClient) -> None:
        plan = plausible.plan(modes=("current",), batch_sizes=(1,))
        runs = plausible.runs(plausible.laptop(), plan, "to be set")
        runs[0] = plausible.failed(runs[0].point, "to be set", 0, "the worker was killed by signal 9")
        drift = Finding(rule="drift", verdict=Verdict.FLAGGED, detail="throughput fell by 3.1 %")
        runs[1] = dataclasses.replace(runs[1], verdict=Verdict.FLAGGED, findings=(drift,))
        sweep = shelf.add_sweep(plausible.laptop(), plan, made=runs)
        text = words(client.get(f"/sweeps/{sweep.id}").text)
        assert "valid 4" in text
        assert "failed 1" in text
        assert "failed worker: the worker was killed by signal 9" in text
        assert "flagged drift: throughput fell by 3.1 %" in text
        failed = next(run for run in sweep.runs if run.verdict is Verdict.FAILED)
        page = words(client.get(f"/runs/{failed.id}").text)
        assert "This run has no figures; see its findings." in page

    def test_a_sweep_in_progress_follows_itself(self, filled: Filled) -> None:
        html = filled.client.get(filled["running"]).text
        assert re.search(r'<main id="main" data-unfinished[ >]', html)
        assert "Best points so far" in html
        assert "4 of 12 runs done" in html
        assert "data-unfinished" not in filled.client.get(filled["simulated"]).text

    def test_runs_that_are_too_many_for_the_page_stand_on_pages_of_their_own(
        self, shelf: Shelf, client: TestClient, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for module in (sweep_page, sweep_runs):
            monkeypatch.setattr(module, "RUNS_SHOWN", 5)
        sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)))
        address, found = f"/sweeps/{sweep.id}", []
        while address:
            html = client.get(address).text
            assert structure(html).open == []
            table = html[html.index('id="runs-heading"') :]
            found += re.findall(r'<a href="/runs/([^"]+)">', table)
            more = re.search(r'<a href="([^"]+)">next page</a>', table)
            address = more[1] if more else ""
        assert found == [run.id for run in sweep.runs]
        assert "Showing the first 5 of 12 runs" in words(client.get(f"/sweeps/{sweep.id}").text)
        assert "Runs 11 to 12 of 12" in words(html)
        assert f'<a href="/sweeps/{sweep.id}/runs?after=5">Previous page</a>' in html
        assert len(re.findall(r"<tr>", client.get(f"/sweeps/{sweep.id}").text)) == 1 + 4 + 1 + 5

    @pytest.mark.parametrize(("after", "status"), [("12", 200), ("999999999", 200), ("-1", 422), ("x", 422)])
    def test_behind_the_last_run_there_is_nothing(self, after: str, status: int, filled: Filled) -> None:
        answer = filled.client.get(f"{filled['running']}/runs", params={"after": after})
        assert answer.status_code == status
        assert status != 200 or "No more runs: the sweep has 4." in words(answer.text)

    def test_runs_of_no_sweep_are_not_found(self, client: TestClient) -> None:
        assert client.get("/sweeps/none/runs").status_code == 404

    def test_models_are_ranked_apart(self, shelf: Shelf, client: TestClient) -> None:
        plan = plausible.plan(models=("resnet50", "mobilenetv2"), modes=("MAXN",), batch_sizes=(1,))
        sweep = shelf.add_sweep(plausible.xavier(), plan)
        html = client.get(f"/sweeps/{sweep.id}").text
        assert html.count("Lowest latency") == 2

    def test_cells_sort_by_their_value(self, filled: Filled) -> None:
        keys = re.findall(r'<td class="num[^"]*" data-key="([^"]*)" title', filled.client.get(filled["simulated"]).text)
        assert len(keys) > 24
        assert all(float(key) > 0 for key in keys)


class TestFigures:
    @pytest.mark.parametrize("theme", ["light", "dark", "neon"])
    @pytest.mark.parametrize("name", list(SWEEP_CHARTS))
    def test_a_chart_is_sent_as_json(self, name: str, theme: str, filled: Filled) -> None:
        answer = filled.client.get(f"{filled['simulated']}/charts/{name}", params={"theme": theme, "narrow": "1"})
        assert answer.status_code == 200
        assert set(answer.json()) == {"data", "layout"}

    @pytest.mark.parametrize("name", list(RUN_CHARTS))
    def test_a_runs_chart_is_sent_as_json(self, name: str, shelf: Shelf, client: TestClient) -> None:
        run = add_recorded_run(shelf)
        assert set(client.get(f"/runs/{run.id}/charts/{name}").json()) == {"data", "layout"}

    def test_a_part_of_a_run_is_drawn_from_all_its_samples(self, shelf: Shelf, client: TestClient) -> None:
        run = add_recorded_run(shelf)
        whole, part = (
            client.get(f"/runs/{run.id}/charts/power-trace", params=span).json()
            for span in ({}, {"from_s": 1, "to_s": 1.5})
        )
        assert part["layout"]["xaxis"]["range"] == [1, 1.5]
        rail, latency = part["data"][0], part["data"][-1]
        assert min(rail["x"]) == pytest.approx(1 - 0.125, abs=0.02)
        assert max(rail["x"]) == pytest.approx(1.5 + 0.125, abs=0.02)
        assert set(zip(latency["x"], latency["y"], strict=True)) < set(
            zip(whole["data"][-1]["x"], whole["data"][-1]["y"], strict=True)
        )

    @pytest.mark.parametrize("span", [{"from_s": "2", "to_s": "1"}, {"from_s": "1"}])
    def test_a_part_that_is_none_is_the_whole(self, span: dict[str, str], shelf: Shelf, client: TestClient) -> None:
        address = f"/runs/{add_recorded_run(shelf).id}/charts/power-trace"
        assert client.get(address, params=span).json() == client.get(address).json()

    def test_without_power_a_reason_is_sent(self, filled: Filled) -> None:
        assert set(filled.client.get(f"{filled['bare']}/charts/pareto-front").json()) == {"reason"}
        assert set(filled.client.get(f"{filled['bare run']}/charts/power-trace").json()) == {"reason"}

    def test_unknown_charts_are_not_found(self, filled: Filled) -> None:
        for page in ("simulated", "run"):
            assert filled.client.get(f"{filled[page]}/charts/pie").status_code == 404
        assert filled.client.get("/sweeps/none/charts/heatmap").status_code == 404
        assert filled.client.get("/runs/none/charts/power-trace").status_code == 404


class TestRun:
    def test_every_metric_is_listed_with_unit_interval_and_provenance(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.xavier(), plausible.plan(modes=("MAXN",), batch_sizes=(1,)))
        run = sweep.runs[0]
        text = words(client.get(f"/runs/{run.id}").text)
        for metric in run.metrics:
            figure = shown(metric)
            interval = figure.interval.removeprefix("95 % interval ")
            assert f"{figure.value} {figure.spread} {figure.unit} {interval} simulated" in text, metric.name

    def test_the_total_and_its_scope_are_named(self, filled: Filled) -> None:
        text = words(filled.client.get(filled["run"]).text)
        assert "ina3221:CPU + ina3221:GPU + ina3221:SOC" in text
        assert "module rails, without the carrier board" in text

    def test_a_proposed_total_says_so_and_a_counter_is_said_to_be_one(self, shelf: Shelf, client: TestClient) -> None:
        sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",)))
        text = words(client.get(f"/runs/{sweep.runs[0].id}").text)
        assert "Check it against a wall meter" in text
        assert "energy counter (shown as its slope)" in text

    def test_missing_power_is_said(self, filled: Filled) -> None:
        text = words(filled.client.get(filled["bare run"]).text)
        assert "Power while running not available W no power sensor was readable during this run" in text
        assert "No power rail was readable" in text

    def test_figures_of_other_scenarios_are_not_missed(self, filled: Filled) -> None:
        text = words(filled.client.get(filled["bare run"]).text)
        assert "Queries per second within the latency bound" not in text
        assert "Hottest zone" not in text


def test_hostile_names_are_shown_as_text(shelf: Shelf, client: TestClient) -> None:
    plan = plausible.plan(models=(EVIL,), modes=(EVIL,), batch_sizes=(1,))
    bench = plausible.xavier(name=EVIL)
    hostile = PowerMode(name=EVIL, settings=(Setting(knob=EVIL, target=EVIL, value=EVIL),), description=EVIL)
    bench = dataclasses.replace(bench, capabilities=dataclasses.replace(bench.capabilities, modes=(hostile,)))
    runs = plausible.runs(bench, plan, "to be set")
    evil = Finding(rule=EVIL, verdict=Verdict.FLAGGED, detail=EVIL)
    runs[0] = dataclasses.replace(runs[0], verdict=Verdict.FLAGGED, findings=(evil,))
    sweep = shelf.add_sweep(bench, plan, made=runs)
    device = [f"/devices/{sweep.device_id}{part}" for part in ("", "/history", "/modes", "/sensors")]
    for address in (
        "/",
        "/devices",
        *device,
        f"/sweeps/{sweep.id}",
        f"/runs/{sweep.runs[0].id}",
        "/<script>x</script>",
    ):
        html = client.get(address).text
        assert "<script>" not in html
        assert "<img" not in html
        assert structure(html).inline == []
    for name in SWEEP_CHARTS:
        text = json.dumps(client.get(f"/sweeps/{sweep.id}/charts/{name}").json())
        assert "<script" not in text
        assert "<img" not in text


def test_the_home_page_stays_short_and_says_so(
    shelf: Shelf, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(home, "SWEEP_LIMIT", 2)
    plan = plausible.plan(modes=("current",), batch_sizes=(1,), threads=(1,))
    for _ in range(3):
        newest = shelf.add_sweep(plausible.laptop(), plan)
    html = client.get("/").text
    assert len(re.findall(r'href="/sweeps/[0-9a-f]{8}-', html)) == 2
    assert newest.id in html
    assert "Showing the newest 2 sweeps" in words(html)


def test_the_runs_of_a_sweep_lead_to_each_other(shelf: Shelf, client: TestClient) -> None:
    sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,), threads=(1,)))
    beside = {}
    for run in sweep.runs:
        links = [
            one.attributes for one in parse(client.get(f"/runs/{run.id}").text).all("a") if "rel" in one.attributes
        ]
        beside[f"/runs/{run.id}"] = {one["rel"]: one["href"] for one in links}
    (address,) = [address for address, links in beside.items() if "prev" not in links]
    seen = [address]
    while address := beside[address].get("next", ""):
        assert beside[address]["prev"] == seen[-1]
        seen.append(address)
    assert sorted(seen) == sorted(beside)


def test_the_dashboard_lives_beside_the_api(shelf: Shelf) -> None:
    sweep = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",), batch_sizes=(1,)))
    app = create_app(shelf.store)
    app.include_router(create_router(shelf.store))
    with TestClient(app) as client:
        assert client.get(f"/sweeps/{sweep.id}").headers["content-type"].startswith("text/html")
        assert client.get(f"/api/v1/sweeps/{sweep.id}").json()["id"] == sweep.id
        unknown = client.get("/api/v1/nothing")
        assert unknown.status_code == 404
        assert unknown.headers["content-type"] == "application/problem+json"
        assert client.get("/nothing").headers["content-type"].startswith("text/html")
