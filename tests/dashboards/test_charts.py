"""What the figures hold: values, intervals, units, and the words that say where power comes from."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.power import Part, Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run
from powerlab.domain.workload import Processor
from powerlab.measure.percentiles.latency import is_latency
from powerlab_dashboards.charts.axes import axes_of, numeric_axis
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, legend_above, plain
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.registry import RUN_CHARTS, SWEEP_CHARTS
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.theme import DARK, LIGHT, SYMBOLS, View
from recorded_run import Recorded, recorded_run
from tests.dashboards import plausible

VIEWS = [View(theme=theme, narrow=narrow) for theme in (LIGHT, DARK) for narrow in (False, True)]


def figure(chart: Chart[Sequence[PointSummary]], summaries: Sequence[PointSummary], view: View | None = None) -> Figure:
    made = chart.build(summaries, view or View())
    assert not isinstance(made, NoChart), made
    go.Figure(made)  # refuses every property that Plotly does not know
    json.dumps(made, allow_nan=False)
    return made


def xavier_summaries(**changes: object) -> tuple[PointSummary, ...]:
    return summarise(plausible.runs(plausible.xavier(), plausible.plan(**changes), "s"))


def texts(made: Figure) -> str:
    return json.dumps(made, ensure_ascii=False)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view.theme.name}-{view.narrow}")
@pytest.mark.parametrize("name", list(SWEEP_CHARTS))
def test_every_sweep_chart_is_a_valid_figure_in_every_view(name: str, view: View) -> None:
    made = figure(SWEEP_CHARTS[name], xavier_summaries(models=("resnet50", "alexnet")), view)
    assert made["layout"]["paper_bgcolor"] == "rgba(0,0,0,0)"
    assert made["layout"]["font"]["color"] == view.theme.ink


@pytest.mark.parametrize("name", list(SWEEP_CHARTS))
def test_a_chart_is_the_same_for_the_same_runs(name: str) -> None:
    assert texts(figure(SWEEP_CHARTS[name], xavier_summaries())) == texts(
        figure(SWEEP_CHARTS[name], xavier_summaries())
    )


@pytest.mark.parametrize("name", ["heatmap", "pareto-front"])
def test_without_power_a_chart_says_so_instead_of_drawing_zeros(name: str) -> None:
    runs = plausible.runs(plausible.bare(), plausible.plan(modes=("current",)), "s")
    made = SWEEP_CHARTS[name].build(summarise(runs), View(choice=Choice(metric="power_w")))
    assert isinstance(made, NoChart)
    assert "Power was not measured" in made.reason


@pytest.mark.parametrize("name", list(SWEEP_CHARTS))
def test_before_the_first_run_a_chart_says_so(name: str) -> None:
    assert SWEEP_CHARTS[name].build((), View()) == NoChart("No runs have finished yet.")


@pytest.mark.parametrize("name", list(SWEEP_CHARTS))
def test_names_cannot_bring_markup_into_a_chart(name: str) -> None:
    summaries = xavier_summaries(models=("<b onload=x>.onnx",), modes=("<a href='javascript:x'>",))
    text = texts(figure(SWEEP_CHARTS[name], summaries))
    assert "<a href" not in text
    assert "<b onload" not in text
    assert "&lt;a href" in text


class TestHeatmap:
    chart = SWEEP_CHARTS["heatmap"]

    def test_one_panel_for_each_model_and_batch(self) -> None:
        made = figure(self.chart, xavier_summaries(models=("resnet50", "alexnet")))
        assert [trace["type"] for trace in made["data"]] == ["heatmap"] * 4
        titles = [note["text"] for note in made["layout"]["annotations"] if note["text"].startswith("<b>")]
        assert titles == [f"<b>{model}, batch {batch}</b>" for model in ("resnet50", "alexnet") for batch in (1, 4)]

    def test_cells_hold_the_efficiency_by_mode_and_threads(self) -> None:
        summaries = xavier_summaries(threads=(1, 2, 4))
        made = figure(self.chart, summaries)
        for summary in summaries:
            metric = summary.metric("efficiency_img_per_s_per_w")
            assert metric is not None
            panel = made["data"][(1, 4).index(summary.point.workload.batch_size)]
            row = made["layout"]["yaxis"]["ticktext"].index(summary.point.mode)
            column = made["layout"]["xaxis"]["ticktext"].index(str(summary.point.threads))
            assert panel["z"][row][column] == metric.value
            assert "±" in panel["text"][row][column]
            assert "95 % interval" in panel["customdata"][row][column][0]

    def test_a_card_s_one_thread_is_no_number_to_compare(self) -> None:
        both = xavier_summaries(threads=(8,), processors=(Processor.CPU, Processor.GPU))
        points = [summary.point for summary in both]
        assert [one.title for one in axes_of(points)] == ["batch", "mode"]
        assert numeric_axis(points).title == "batch"
        assert numeric_axis(points, "threads").title == "threads"
        several = xavier_summaries(threads=(1, 8), processors=(Processor.CPU, Processor.GPU))
        assert axes_of([summary.point for summary in several])[0].title == "threads"

    def test_the_unit_and_the_provenance_are_in_words(self) -> None:
        made = figure(self.chart, xavier_summaries())
        assert any("img/s/W, simulated" in note["text"] for note in made["layout"]["annotations"])

    def test_each_model_has_a_scale_over_the_range_that_it_has(self) -> None:
        made = figure(self.chart, xavier_summaries(models=("resnet50", "mobilenetv2")))
        slow, fast = made["layout"]["coloraxis"], made["layout"]["coloraxis2"]
        assert slow["cmin"] == min(min(row) for panel in made["data"][:2] for row in panel["z"])
        assert slow["cmax"] == max(max(row) for panel in made["data"][:2] for row in panel["z"])
        assert fast["cmax"] > 3 * slow["cmax"]
        assert len(made["layout"]["shapes"]) == 2

    def test_a_failed_point_is_an_empty_cell_with_a_reason(self) -> None:
        plan = plausible.plan(threads=(1, 2), modes=("MAXN",), batch_sizes=(1,))
        runs = plausible.runs(plausible.xavier(), plan, "s")
        spoiled = [plausible.failed(run.point, "s", run.repeat) if run.point.threads == 2 else run for run in runs]
        made = figure(self.chart, summarise(spoiled))
        assert made["data"][0]["z"][0][1] is None
        assert any(note["text"] == "no usable<br>runs" and note["x"] == 1 for note in made["layout"]["annotations"])

    def test_a_point_not_run_yet_is_an_empty_cell(self) -> None:
        made = figure(self.chart, xavier_summaries(batch_sizes=(1,))[:5])
        assert sum(note["text"] == "not run" for note in made["layout"]["annotations"]) == 1

    def test_narrow_pages_stack_the_panels(self) -> None:
        summaries = xavier_summaries()
        wide, narrow = figure(self.chart, summaries), figure(self.chart, summaries, View(narrow=True))
        assert wide["layout"]["xaxis2"]["domain"][0] > 0
        assert narrow["layout"]["xaxis2"]["domain"][0] == 0
        assert narrow["layout"]["height"] > wide["layout"]["height"]


class TestScatter:
    chart = SWEEP_CHARTS["pareto-front"]

    def points(self, made: Figure) -> list[dict[str, Any]]:
        return [trace for trace in made["data"] if "error_x" in trace]

    def test_every_point_has_its_power_throughput_and_intervals(self) -> None:
        summaries = xavier_summaries()
        made = figure(self.chart, summaries)
        drawn = {
            (round(x, 9), round(y, 9), round(bar, 9))
            for trace in made["data"]
            if "error_x" in trace
            for x, y, bar in zip(trace["x"], trace["y"], trace["error_x"]["array"], strict=True)
        }
        expected = set()
        for summary in summaries:
            power, throughput = summary.metric("power_w"), summary.metric("throughput_img_per_s")
            assert power is not None
            assert power.high is not None
            assert throughput is not None
            expected.add((round(power.value, 9), round(throughput.value, 9), round(power.high - power.value, 9)))
        assert drawn == expected

    def test_axes_name_quantity_unit_and_provenance(self) -> None:
        layout = figure(self.chart, xavier_summaries())["layout"]
        assert layout["xaxis"]["title"]["text"] == "Power while running, W (simulated)"
        assert layout["yaxis"]["title"]["text"] == "Throughput, img/s"

    def test_figures_that_were_not_measured_are_hollow(self) -> None:
        simulated = figure(self.chart, xavier_summaries())
        measured = figure(
            self.chart, summarise(plausible.runs(plausible.laptop(), plausible.plan(modes=("current",)), "s"))
        )
        assert all(symbol.endswith("-open") for trace in self.points(simulated) for symbol in trace["marker"]["symbol"])
        assert not any("-open" in symbol for trace in self.points(measured) for symbol in trace["marker"]["symbol"])

    def test_the_pareto_line_rises_and_nothing_lies_above_it(self) -> None:
        made = figure(self.chart, xavier_summaries(threads=(1, 2, 4, 8)))
        line = next(trace for trace in made["data"] if trace.get("name") == "Pareto front, simulated")
        assert np.all(np.diff(line["x"]) >= 0)
        assert np.all(np.diff(line["y"]) > 0)
        for trace in self.points(made):
            for x, y in zip(trace["x"], trace["y"], strict=True):
                best = max((py for px, py in zip(line["x"], line["y"], strict=True) if px <= x), default=None)
                assert best is not None
                assert best >= y

    def test_figures_of_different_provenance_are_never_joined(self) -> None:
        summaries = list(xavier_summaries(batch_sizes=(1,)))
        changed = tuple(dataclasses.replace(metric, provenance=Provenance.ESTIMATED) for metric in summaries[0].metrics)
        summaries[0] = dataclasses.replace(summaries[0], metrics=changed)
        made = figure(self.chart, summaries)
        names = {trace["name"] for trace in made["data"] if str(trace.get("name")).startswith("Pareto front,")}
        assert names == {"Pareto front, estimated", "Pareto front, simulated"}
        assert made["layout"]["xaxis"]["title"]["text"] == "Power while running, W (estimated and simulated)"

    def test_lines_of_equal_efficiency_say_their_value(self) -> None:
        made = figure(self.chart, xavier_summaries(batch_sizes=(1,)))
        guides = [note["text"] for note in made["layout"]["annotations"] if note["text"].endswith("img/s/W")]
        lines = [trace for trace in made["data"] if trace["mode"] == "lines" and trace["x"][0] == 0]
        slopes = [trace["y"][1] / trace["x"][1] for trace in lines]
        assert [f"{slope:.3g} img/s/W" for slope in slopes] == guides
        assert len(guides) == 3

    @pytest.mark.parametrize(
        ("changes", "expected"),
        [
            ({"batch_sizes": (1,)}, ["MAXN", "MODE_15W", "MODE_10W"]),
            ({}, ["MAXN", "MODE_15W", "MODE_10W", "batch 1", "batch 4"]),
            ({"modes": ("MAXN",)}, ["batch 1", "batch 4"]),
            ({"modes": ("MAXN",), "batch_sizes": (1,)}, ["MAXN"]),
        ],
    )
    def test_the_legend_names_what_colours_and_markers_mean(
        self, changes: dict[str, object], expected: list[str]
    ) -> None:
        made = figure(self.chart, xavier_summaries(**changes))
        keys = [trace for trace in made["data"] if trace["x"] == [None]]
        assert [key["name"] for key in keys] == [*expected, "Pareto front"]
        drawn = {(trace["marker"]["color"], symbol.removesuffix("-open"))
                 for trace in self.points(made) for symbol in trace["marker"]["symbol"]}  # fmt: skip
        if "batch 1" not in expected or "MAXN" not in expected:
            assert {(key["marker"]["color"], key["marker"]["symbol"]) for key in keys[:-1]} == drawn

    def test_colour_is_never_the_only_difference(self) -> None:
        made = figure(self.chart, xavier_summaries(batch_sizes=(1,)))
        symbols = [trace["marker"]["symbol"][0] for trace in self.points(made)]
        assert len(set(symbols)) == len(symbols) == 3


class TestThroughputByThreads:
    chart = SWEEP_CHARTS["throughput"]

    def test_one_line_for_each_mode_and_batch_in_the_order_of_the_threads(self) -> None:
        summaries = xavier_summaries(threads=(4, 1, 2))
        made = figure(self.chart, summaries)
        lines = {trace["name"]: trace for trace in made["data"] if "error_y" in trace}
        assert len(lines) == 6
        assert all(line["x"] == [1, 2, 4] for line in lines.values())
        for summary in summaries:
            metric, point = summary.metric("throughput_img_per_s"), summary.point
            assert metric is not None
            assert metric.high is not None
            line = lines[f"{point.mode}, batch {point.workload.batch_size}"]
            index = line["x"].index(point.threads)
            assert line["y"][index] == metric.value
            assert line["error_y"]["array"][index] == pytest.approx(metric.high - metric.value)

    def test_it_needs_no_power(self) -> None:
        runs = plausible.runs(plausible.bare(), plausible.plan(modes=("current",)), "s")
        made = figure(self.chart, summarise(runs))
        assert made["layout"]["yaxis"]["title"]["text"] == "Throughput, img/s (measured)"

    def test_a_sweep_of_failed_runs_says_so(self) -> None:
        failed = [plausible.failed(point, "s") for point in plausible.plan().points()]
        made = self.chart.build(summarise(failed), View())
        assert made == NoChart("No run of this sweep is usable; the list of runs shows why.")


class TestPowerTrace:
    chart = RUN_CHARTS["power-trace"]

    def run_of(self, bench: plausible.Bench) -> Run:
        plan = plausible.plan(modes=("MAXN" if bench.device.simulated else "current",))
        return plausible.runs(bench, plan, "s")[0]

    def build(self, bench: plausible.Bench, view: View | None = None) -> Figure:
        run = self.run_of(bench)
        data = RunTraces(run=run, traces=tuple(plausible.traces(bench, run)))
        made = self.chart.build(data, view or View())
        assert not isinstance(made, NoChart)
        go.Figure(made)
        json.dumps(made, allow_nan=False)
        return made

    def power(self, bench: plausible.Bench) -> list[dict[str, Any]]:
        return [line for line in self.build(bench)["data"] if line["yaxis"] == "y"]

    def recorded(self, **changes: Any) -> Figure:
        run, traces = (found := recorded_run(warm_up_ns=(5_000_000_000, 9_000_000_000))).run, found.traces
        made = self.chart.build(RunTraces(run=run, traces=traces, **changes), View())
        assert not isinstance(made, NoChart)
        go.Figure(made)
        return made

    def test_phases_are_shaded_and_named(self) -> None:
        layout = self.recorded()["layout"]
        assert [(one["x0"], one["x1"]) for one in layout["shapes"]] == [
            (-9.0, -7.0),
            (-6.0, -2.0),
            (0.0, pytest.approx(5.0, rel=0.05)),
            (pytest.approx(7.0, rel=0.05), pytest.approx(9.0, rel=0.05)),
        ]
        assert [one["text"].split()[0] for one in layout["annotations"]] == ["idle", "warm-up", "timed", "idle"]

    def test_idle_baselines_and_the_timed_part_are_one_line_with_gaps(self) -> None:
        rail, *_ = self.recorded()["data"]
        assert rail["x"].count(None) == rail["y"].count(None) == 2
        stamps = [x for x in rail["x"] if x is not None]
        assert stamps == sorted(stamps)
        assert stamps[0] < -9
        assert stamps[-1] > 9

    def test_every_query_has_a_dot_at_its_start(self) -> None:
        found = recorded_run()
        dots = next(line for line in self.recorded()["data"] if line["mode"] == "markers")
        assert len(dots["x"]) == found.run.inference_count
        median = found.run.metric("latency_p50_ms")
        assert median is not None
        assert np.median(dots["y"]) == pytest.approx(median.value, rel=0.01)

    def test_temperatures_have_an_axis_of_their_own(self) -> None:
        found = recorded_run()
        zone = Rail(
            source="thermal", name="CPU-therm", quantity=RailQuantity.TEMPERATURE, resolution=0.0, relative_error=0.0,
            update_period_s=0.0, provenance=Provenance.MEASURED,
        )  # fmt: skip
        warm = Trace(rail=zone, time_ns=np.array([11, 12, 13]) * 10**9, value=np.array([40.0, 41.0, 42.5]))
        made = self.chart.build(RunTraces(run=found.run, traces=(*found.traces, warm)), View())
        assert not isinstance(made, NoChart)
        line = next(one for one in made["data"] if one["name"] == "CPU-therm")
        assert line["y"] == [40.0, 41.0, 42.5]
        assert made["layout"]["yaxis2"]["title"]["text"] == "temperature, °C<br>(measured)"

    def test_clocks_and_a_cool_down_have_a_panel_and_a_band(self) -> None:
        found = recorded_run()
        gpu = Rail(
            source="clocks", name="GPU", quantity=RailQuantity.CLOCK, resolution=0.0, relative_error=0.0,
            update_period_s=0.0, provenance=Provenance.SIMULATED,
        )  # fmt: skip
        begin_ns = found.run.window_ns[0] - 14 * 10**9
        clock = Trace(
            rail=gpu, time_ns=begin_ns + np.array([0, 1, 4]) * 10**9, value=np.array([114.75, 318.75, 114.75]),
            part=Part.COOL_DOWN,
        )  # fmt: skip
        made = self.chart.build(RunTraces(run=found.run, traces=(*found.traces, clock)), View())
        assert not isinstance(made, NoChart)
        assert next(one for one in made["data"] if one["name"] == "GPU")["y"] == [114.75, 318.75, 114.75]
        assert made["layout"]["yaxis2"]["title"]["text"] == "clock, MHz<br>(simulated)"
        band = made["layout"]["shapes"][0]
        assert (band["x0"], band["x1"]) == (-14.0, -10.0)
        assert made["layout"]["annotations"][0]["text"] == "cool-down 4 s"

    def with_parts(self, *, slices: int = 1, **changes: Any) -> Figure:
        """A run of 250 steps of about 20 ms, of which 30 % go forward, 60 % backward, and the rest updates weights."""
        found = recorded_run()
        latency = next(filter(is_latency, found.traces))
        at_s = 0.0 * latency.value
        parts = []
        for name, share in (("forward", 0.3), ("backward", 0.6), ("update", 0.1)):
            rail = dataclasses.replace(latency.rail, name=name)
            time_ns = latency.time_ns + np.round(at_s * 1e9).astype(np.int64)
            parts.append(Trace(rail=rail, time_ns=time_ns, value=share * latency.value))
            at_s = at_s + share * latency.value
        workload = dataclasses.replace(found.run.point.workload, slices=slices)
        run = dataclasses.replace(found.run, point=dataclasses.replace(found.run.point, workload=workload))
        made = self.chart.build(RunTraces(run=run, traces=(*found.traces, *parts), **changes), View())
        assert not isinstance(made, NoChart)
        go.Figure(made)
        json.dumps(made, allow_nan=False)
        return made

    def test_parts_of_steps_are_bars_that_follow_each_other(self) -> None:
        made = self.with_parts()
        forward, backward, update = made["data"][-3:]
        assert [line["name"] for line in (forward, backward, update)] == made["layout"]["yaxis3"]["ticktext"]
        assert made["layout"]["yaxis3"]["ticktext"] == ["forward pass", "backward pass", "update of the weights"]
        assert forward["x"][1::3] == pytest.approx(backward["x"][::3], abs=2e-6)
        assert backward["x"][1::3] == pytest.approx(update["x"][::3], abs=2e-6)
        assert forward["x"][2::3] == [None] * (len(forward["x"]) // 3)
        dots = [line for line in made["data"] if line["mode"] == "markers"]
        assert [line["name"] for line in dots] == ["latency"]

    def test_parts_are_shaded_where_few_steps_are_in_view(self) -> None:
        whole, near = (self.with_parts(**span)["layout"]["shapes"] for span in ({}, {"span_s": (1.0, 1.4)}))
        assert len(whole) == 3
        assert len(near) > 3 + 3 * 15
        late = self.with_parts(span_s=(1.015, 1.2))["layout"]["yaxis3"]["ticktext"]
        assert late == ["forward pass", "backward pass", "update of the weights"]
        assert {shape["fillcolor"] for shape in near[3:]} == {LIGHT.colour(place) for place in range(3)}

    def test_parts_of_slices_which_take_turns_are_not_drawn(self) -> None:
        assert "yaxis3" not in self.with_parts(slices=2)["layout"]

    def test_a_part_of_the_time_is_shown_as_asked(self) -> None:
        assert self.recorded(span_s=(1.0, 2.0))["layout"]["xaxis"]["range"] == [1.0, 2.0]

    def test_rails_and_their_total_with_provenance(self) -> None:
        names = [trace["name"] for trace in self.power(plausible.xavier())]
        assert names == [f"ina3221:{rail} (simulated)" for rail in ("CPU", "GPU", "SOC")] + ["total (simulated)"]

    def test_the_total_is_the_sum_of_the_rails(self) -> None:
        *rails, total = self.power(plausible.xavier())
        assert np.mean(total["y"]) == pytest.approx(sum(np.mean(rail["y"]) for rail in rails), rel=0.01)

    def test_a_counter_is_said_to_be_differenced(self) -> None:
        (line,) = self.power(plausible.laptop())
        assert line["name"] == "rapl:package-0 (measured, slope of its energy counter; this rail is the total)"
        assert line["line"]["shape"] == "vh"

    def test_a_long_name_is_folded_on_a_phone(self) -> None:
        lines = self.build(plausible.laptop(), View(narrow=True))["data"][0]["name"].split("<br>")
        assert len(lines) == 2
        assert max(map(len, lines)) <= 42

    def test_the_timed_window_is_shaded(self) -> None:
        layout = self.build(plausible.xavier())["layout"]
        assert (layout["shapes"][0]["x0"], layout["shapes"][0]["x1"]) == (0, 3.0)
        assert layout["annotations"][0]["text"] == "timed 3 s"

    def test_axes_name_quantity_unit_and_provenance(self) -> None:
        layout = self.build(plausible.laptop(), View(theme=DARK))["layout"]
        assert layout["yaxis"]["title"]["text"] == "power, W<br>(measured)"
        assert layout["xaxis"]["title"]["text"] == "time since the start of the timed part, s"

    def test_rails_of_different_provenance_are_not_added_up(self) -> None:
        bench = plausible.xavier()
        run = self.run_of(bench)
        first, *rest = plausible.traces(bench, run)
        rail = dataclasses.replace(first.rail, provenance=Provenance.ESTIMATED)
        made = self.chart.build(RunTraces(run=run, traces=(dataclasses.replace(first, rail=rail), *rest)), View())
        assert not isinstance(made, NoChart)
        assert not any(trace["name"].startswith("total") for trace in made["data"])

    def test_without_traces_it_says_so(self) -> None:
        made = self.chart.build(RunTraces(run=self.run_of(plausible.bare()), traces=()), View())
        assert isinstance(made, NoChart)
        assert "No power was sampled" in made.reason

    def test_a_long_trace_is_thinned(self) -> None:
        bench = plausible.laptop()
        run = self.run_of(bench)
        data = RunTraces(run=run, traces=tuple(plausible.traces(bench, run, period_s=0.0005)))
        made = self.chart.build(data, View())
        assert not isinstance(made, NoChart)
        assert len(made["data"][0]["x"]) <= 2000


class TestLatencyDistribution:
    chart = RUN_CHARTS["latency-distribution"]

    def build(self, found: Recorded) -> Figure | NoChart:
        return self.chart.build(RunTraces(run=found.run, traces=found.traces), View())

    def test_every_query_is_counted_and_the_percentiles_are_marked(self) -> None:
        found = recorded_run()
        made = self.build(found)
        assert not isinstance(made, NoChart)
        go.Figure(made)
        (bars,) = made["data"]
        assert sum(bars["y"]) == found.run.inference_count
        words = [one["text"].split()[0] for one in made["layout"]["annotations"]]
        assert words == ["p50", "p90", "p99", "p99.9", "slowest"]
        p99 = found.run.metric("latency_p99_ms")
        assert p99 is not None
        assert made["layout"]["shapes"][2]["x0"] == p99.value

    def test_queries_alike_are_one_bar(self) -> None:
        found = recorded_run()
        traces = tuple(
            dataclasses.replace(one, value=np.full(len(one.value), 0.02))
            if one.rail.quantity is RailQuantity.LATENCY
            else one
            for one in found.traces
        )
        made = self.build(dataclasses.replace(found, traces=traces))
        assert not isinstance(made, NoChart)
        assert made["data"][0]["y"] == [found.run.inference_count]

    def test_latencies_that_are_not_all_there_are_no_distribution(self) -> None:
        found = recorded_run()
        made = self.build(found.but(inference_count=found.run.inference_count + 1))
        assert isinstance(made, NoChart)
        assert "Only some" in made.reason

    def test_without_latencies_it_says_so(self) -> None:
        found = recorded_run()
        assert isinstance(self.build(dataclasses.replace(found, traces=())), NoChart)


def test_a_legend_leaves_chinese_its_width() -> None:
    latin, chinese = (legend_above([name], narrow=False)[0]["entrywidth"] for name in ("power", "功率功率功"))
    assert chinese > 1.5 * latin


def test_plain_text_is_shown_as_it_is() -> None:
    assert plain('<b>"x"</b> & y') == '&lt;b&gt;"x"&lt;/b&gt; &amp; y'


def test_series_colours_stand_out_from_their_page() -> None:
    for theme, page in ((LIGHT, "#ffffff"), (DARK, "#14171c")):
        for colour in (*theme.series, theme.muted):
            assert contrast(colour, page) >= 3, (theme.name, colour)
        for colour in theme.sequential:
            assert contrast(theme.ink, colour) >= 4.5, (theme.name, colour)
    assert len(set(SYMBOLS)) == len(LIGHT.series) == len(DARK.series)


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2.2."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
