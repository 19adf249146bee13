"""Whatever runs a store holds, every chart is a valid figure or a sentence, and no figure loses where it comes from."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.analysis.dimensions import varied
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.power import POWER_QUANTITIES, Rail, RailQuantity, TotalFormula, Trace
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab_dashboards.charts.base import Figure, NoChart
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.registry import RUN_CHARTS, SWEEP_CHARTS
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.theme import THEMES, View
from tests.dashboards import plausible

NAMES = st.sampled_from(
    ["resnet50", "/models/a b.onnx", "<b>bold</b>", "</script>", "%{x}", "&amp;", "$x$", "⚡é", "x" * 300]
)
VALUES = st.one_of(st.sampled_from([0.0, 5e-324, 1e-9, 1e9, 1e200]), st.floats(0.0, 1e6))
PROVENANCES = st.sampled_from(list(Provenance))
VIEWS = st.builds(View, theme=st.sampled_from(list(THEMES.values())), narrow=st.booleans())
WORDS = {provenance.value for provenance in Provenance}


@st.composite
def metrics(draw: st.DrawFn) -> tuple[Metric, ...]:
    names = draw(st.lists(st.sampled_from(list(METRICS)), unique=True, min_size=1))
    power, time = draw(PROVENANCES), draw(PROVENANCES)
    found = []
    for name in names:
        value, spread = draw(VALUES), draw(st.none() | st.floats(0.0, 2.0))
        of_time = name.startswith(("latency", "throughput"))
        found.append(
            Metric(
                name=name,
                value=value,
                low=None if spread is None else value - spread * value,
                high=None if spread is None else value + spread * value,
                provenance=time if of_time else power,
            )
        )
    return tuple(found)


@st.composite
def runs(draw: st.DrawFn) -> list[Run]:
    models, modes = (draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)) for _ in range(2))
    found = []
    for index in range(draw(st.integers(0, 9))):
        verdict = draw(st.sampled_from(list(Verdict)))
        failed = verdict is Verdict.FAILED
        workload = Workload(model=draw(st.sampled_from(models)), batch_size=draw(st.sampled_from([1, 4, 4096])))
        found.append(
            Run(
                id=f"run-{index}",
                sweep_id="sweep",
                point=Point(
                    workload=workload, threads=draw(st.sampled_from([1, 2, 512])), mode=draw(st.sampled_from(modes))
                ),
                repeat=index,
                started_at="2026-11-21T09:30:00+00:00",
                window_ns=(0, 0) if failed else (10, 20),
                inference_count=0 if failed else 10,
                verdict=verdict,
                findings=() if verdict is Verdict.VALID else (Finding(rule="r", verdict=verdict, detail="d"),),
                metrics=() if failed else draw(metrics()),
                total=None,
            )
        )
    return found


def check(made: Figure | NoChart) -> Figure | None:
    """Refuse what Plotly or JSON would refuse; None for a sentence."""
    if isinstance(made, NoChart):
        assert made.reason.endswith(".")
        return None
    go.Figure(made)  # refuses every property and value that Plotly does not know
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    return made


def strings(value: Any) -> Iterator[str]:
    """Yield every text in a figure."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def provenances(summaries: Sequence[PointSummary], name: str) -> set[str]:
    return {metric.provenance.value for summary in summaries if (metric := summary.metric(name)) is not None}


@settings(max_examples=60, deadline=None)
@given(made=runs(), view=VIEWS)
@pytest.mark.parametrize("name", list(SWEEP_CHARTS))
def test_any_runs_give_a_valid_figure_or_a_sentence(name: str, made: list[Run], view: View) -> None:
    figure = check(SWEEP_CHARTS[name].build(summarise(made), view))
    if figure is None:
        return
    assert all(
        0 <= end <= 1 for key, axis in figure["layout"].items() if "axis" in key for end in axis.get("domain", ())
    )
    for text in strings(figure):
        assert "</script>" not in text
        assert "<b>bold" not in text.replace("<b>&lt;b&gt;bold", "")


@settings(max_examples=60, deadline=None)
@given(made=runs())
def test_every_efficiency_drawn_says_where_it_comes_from(made: list[Run]) -> None:
    summaries = summarise(made)
    choice = Choice(metric="efficiency_img_per_s_per_w")
    figure = check(SWEEP_CHARTS["heatmap"].build(summaries, View(choice=choice)))
    if figure is None:
        return
    legend = figure["layout"]["annotations"][0]["text"]
    found = provenances(summaries, "efficiency_img_per_s_per_w")
    assert all(word in legend for word in found)
    assert not any(word in legend for word in WORDS - found)
    for panel in figure["data"]:
        for values, hovers in zip(panel["z"], panel["customdata"], strict=True):
            for value, hover in zip(values, hovers, strict=True):
                assert (value is None) == (hover[0] == "")
                assert value is None or any(f"</b> {word}<br>" in hover[0] for word in found)


@settings(max_examples=60, deadline=None)
@given(made=runs())
def test_every_cell_of_the_heatmap_has_a_figure_or_a_reason(made: list[Run]) -> None:
    figure = check(SWEEP_CHARTS["heatmap"].build(summarise(made), View()))
    if figure is None:
        return
    reasons = {
        (note["xref"], note["x"], note["y"]): note["text"]
        for note in figure["layout"]["annotations"]
        if note["xref"] != "paper"
    }
    for panel in figure["data"]:
        for row, values in enumerate(panel["z"]):
            for column, value in enumerate(values):
                reason = reasons.get((panel["xaxis"], column, row))
                assert (value is None) == (reason in {"not run", "no usable<br>runs", "no power", "no figure"})


@settings(max_examples=60, deadline=None)
@given(made=runs())
def test_every_point_of_the_scatter_is_there_once_and_hollow_unless_measured(made: list[Run]) -> None:
    summaries = summarise(made)
    figure = check(SWEEP_CHARTS["pareto-front"].build(summaries, View()))
    both = [
        (power, throughput)
        for summary in summaries
        if (power := summary.metric("power_w")) and (throughput := summary.metric("throughput_img_per_s"))
    ]
    if figure is None:
        assert not both
        return
    points = [trace for trace in figure["data"] if "error_x" in trace]
    drawn = [pair for trace in points for pair in zip(trace["x"], trace["y"], strict=True)]
    assert sorted(drawn) == sorted((power.value, throughput.value) for power, throughput in both)
    for trace in points:
        for symbol, hover in zip(trace["marker"]["symbol"], trace["customdata"], strict=True):
            (word,) = {line.split()[-1] for line in hover[0].split("<br>")[2:3]}
            assert symbol.endswith("-open") == (word != "measured")
            assert word in WORDS


@settings(max_examples=60, deadline=None)
@given(made=runs())
def test_a_line_has_each_number_once_in_order(made: list[Run]) -> None:
    summaries = summarise(made)
    figure = check(SWEEP_CHARTS["throughput"].build(summaries, View()))
    if figure is None:
        drawn = [summary.point for summary in summaries if summary.metric("throughput_img_per_s")]
        assert not any(dimension.numeric for dimension in varied(drawn))
        return
    lines = [trace for trace in figure["data"] if "error_y" in trace]
    assert all(line["x"] == sorted(set(line["x"])) for line in lines)
    assert sum(len(line["x"]) for line in lines) == sum(s.metric("throughput_img_per_s") is not None for s in summaries)
    for axis in (axis for key, axis in figure["layout"].items() if key.startswith("yaxis")):
        assert all(word in axis["title"]["text"] for word in provenances(summaries, "throughput_img_per_s"))


RUN = Run(
    id="run", sweep_id="sweep", point=Point(workload=Workload(model="m", batch_size=1), threads=1, mode="current"),
    repeat=0, started_at="2026-11-21T09:30:00+00:00", window_ns=(0, 0), inference_count=0, verdict=Verdict.FAILED,
    findings=(), metrics=(), total=None,
)  # fmt: skip
RAILS = st.lists(
    st.builds(
        Rail,
        source=st.sampled_from(["rapl", "</script>"]),
        name=st.sampled_from(["CPU", "<b>bold</b>"]),
        quantity=st.sampled_from(POWER_QUANTITIES),
        resolution=st.just(0.001),
        relative_error=st.just(0.01),
        update_period_s=st.just(0.0),
        provenance=PROVENANCES,
    ),
    max_size=3,
    unique_by=lambda rail: rail.key,
)


@st.composite
def run_traces(draw: st.DrawFn) -> RunTraces:
    traces = []
    shared, counts = draw(st.none() | PROVENANCES), draw(st.sampled_from([(50,), (2, 50), (0, 1, 2, 50)]))
    for rail in draw(RAILS):
        if shared is not None:
            rail = dataclasses.replace(rail, provenance=shared)  # noqa: PLW2901
        count = draw(st.sampled_from(counts))
        rng = np.random.default_rng(draw(st.integers(0, 99)))
        scale = draw(st.sampled_from([0.0, 1e-9, 1.0, 1e15]))
        value = scale * rng.choice([0.0, 1.0, 3.5], count)
        traces.append(
            Trace(
                rail=rail,
                time_ns=np.cumsum(rng.integers(1, 10**8, count)),
                value=np.cumsum(value) if rail.quantity is RailQuantity.ENERGY else value,
            )
        )
    keys = draw(
        st.lists(st.sampled_from([*(trace.rail.key for trace in traces), "rapl:gone"]), max_size=4, unique=True)
    )
    (run,) = [
        Run(
            id="run",
            sweep_id="sweep",
            point=Point(workload=Workload(model="m", batch_size=1), threads=1, mode="current"),
            repeat=0,
            started_at="2026-11-21T09:30:00+00:00",
            window_ns=draw(st.sampled_from([(0, 0), (5, 10**9), (10**12, 2 * 10**12)])),
            inference_count=1,
            verdict=Verdict.VALID,
            findings=(),
            metrics=(),
            total=TotalFormula(rails=tuple(keys), scope="s") if keys else None,
        )
    ]
    return RunTraces(run=run, traces=tuple(traces))


@settings(max_examples=80, deadline=None)
@given(data=run_traces(), view=VIEWS)
def test_any_traces_give_a_valid_figure_whose_lines_say_where_they_come_from(data: RunTraces, view: View) -> None:
    figure = check(RUN_CHARTS["power-trace"].build(data, view))
    if figure is None:
        assert all(
            len(t.time_ns) < 2 or np.ptp(t.value) == 0 or t.rail.quantity is RailQuantity.ENERGY for t in data.traces
        )
        return
    words = sorted(line["name"].rpartition("(")[2].split(",")[0].split(";")[0].rstrip(")") for line in figure["data"])
    assert set(words) <= WORDS
    totals = [line for line in figure["data"] if line["name"].startswith("total")]
    assert len(totals) <= 1
    if totals:
        assert data.run.total is not None
        mixed = {trace.rail.provenance for trace in data.traces if trace.rail.key in data.run.total.rails}
        assert len(mixed) == 1
    for line in figure["data"]:
        assert len(line["x"]) == len(line["y"]) >= 1
        assert all(math.isfinite(value) for value in (*line["x"], *line["y"]))
        assert "<b>" not in line["name"]


@given(count=st.integers(1, 40), narrow=st.booleans(), row_px=st.integers(20, 400), gap_px=st.integers(0, 120))
def test_panels_lie_inside_the_figure_and_do_not_overlap(count: int, narrow: bool, row_px: int, gap_px: int) -> None:
    grid = Grid.of(count, narrow=narrow, row_px=row_px, gap_px=gap_px)
    panels = [grid.domains(index) for index in range(count)]
    for x, y in panels:
        assert -1e-9 <= x[0] < x[1] <= 1 + 1e-9
        assert -1e-9 <= y[0] < y[1] <= 1 + 1e-9
    for index, (x, y) in enumerate(panels):
        for other_x, other_y in panels[:index]:
            apart_x = x[0] >= other_x[1] - 1e-9 or other_x[0] >= x[1] - 1e-9
            apart_y = y[0] >= other_y[1] - 1e-9 or other_y[0] >= y[1] - 1e-9
            assert apart_x or apart_y
    assert not narrow or grid.columns == 1


@settings(max_examples=20, deadline=None)
@given(made=runs())
@pytest.mark.parametrize("name", list(SWEEP_CHARTS))
def test_themes_change_colours_and_nothing_else(name: str, made: list[Run]) -> None:
    """A figure's numbers and words do not depend on who looks at it."""
    light, dark = (
        SWEEP_CHARTS[name].build(summarise(made), View(theme=theme)) for theme in (THEMES["light"], THEMES["dark"])
    )
    assert (isinstance(light, NoChart), isinstance(dark, NoChart)) in {(True, True), (False, False)}
    if isinstance(light, NoChart) or isinstance(dark, NoChart):
        assert light == dark
        return
    for one, other in zip(light["data"], dark["data"], strict=True):
        for key in ("x", "y", "z", "text", "customdata", "name"):
            assert one.get(key) == other.get(key)


def test_a_failed_runs_empty_traces_are_a_sentence() -> None:
    rail = Rail(
        source="s", name="n", quantity=RailQuantity.POWER, resolution=0, relative_error=0, update_period_s=0,
        provenance=Provenance.MEASURED,
    )  # fmt: skip
    empty = Trace(rail=rail, time_ns=np.array([], dtype=np.int64), value=np.array([], dtype=np.float64))
    made = RUN_CHARTS["power-trace"].build(RunTraces(run=RUN, traces=(empty,)), View())
    assert made == NoChart("All traces of this run are too short to plot.")


@pytest.mark.parametrize("name", list(SWEEP_CHARTS))
def test_one_thread_is_one_thread(name: str) -> None:
    runs = plausible.runs(plausible.laptop(), plausible.plan(modes=("current",), threads=(1, 12)), "s")
    figure = check(SWEEP_CHARTS[name].build(summarise(runs), View()))
    assert figure is not None
    texts = " ".join(strings(figure))
    assert "1 thread" in texts.replace("12 threads", "")
    assert "1 threads" not in texts
