"""The best points and their ratios are those of the command line, with words that claim no more than the data."""

from __future__ import annotations

import pytest

from powerlab import frames
from powerlab.analysis.best import best_points
from powerlab.analysis.matches import best_against_rest
from powerlab.analysis.summary import summarise
from powerlab.domain.errors import PowerlabError
from powerlab_dashboards.charts.registry import LAYER_CHARTS, SWEEP_CHARTS
from powerlab_dashboards.charts.theme import View
from powerlab_dashboards.notebook import figure
from tests.frames.conftest import World

EFFICIENCY = "efficiency_img_per_s_per_w"


@pytest.mark.parametrize("kind", ["store", "client", "file"])
def test_the_best_points(world: World, kind: str) -> None:
    rows = frames.best(world.source(kind), world.sweep.id).arrow.to_pylist()
    wanted = best_points(summarise(world.sweep.runs), world.sweep.runs)
    assert [(row["goal"], row["point_id"], row["decision"], row["statement"]) for row in rows] == [
        (best.goal, best.summary.point.id, best.decision.value, best.statement) for best in wanted
    ]
    for row, best in zip(rows, wanted, strict=True):
        assert (row["value"], row["low"], row["high"]) == (best.metric.value, best.metric.low, best.metric.high)
        assert (row["provenance"], row["device"]) == ("simulated", "xavier-sim")
        assert row["ratio"] == pytest.approx(best.ratio.value, rel=1e-12)


@pytest.mark.parametrize("kind", ["store", "client", "file"])
def test_ratios_to_the_best_point(world: World, kind: str) -> None:
    rows = frames.comparisons(world.source(kind), world.sweep.id, metric=EFFICIENCY).arrow.to_pylist()
    wanted = best_against_rest(world.sweep.runs, EFFICIENCY)
    assert {row["against_point_id"] for row in rows} == {match.other.point.id for match in wanted}
    by_id = {match.other.point.id: match for match in wanted}
    for row in rows:
        match = by_id[row["against_point_id"]]
        assert (row["value"], row["against_value"]) == (match.one.metric.value, match.other.metric.value)
        for column, end in (("ratio", "value"), ("ratio_low", "low"), ("ratio_high", "high")):
            assert row[column] == pytest.approx(getattr(match.ratio, end), rel=1e-9), column
        assert row["claimed"] == match.claimed
        assert row["unit"] == "img/s/W"


def test_without_power_nothing_is_said_of_efficiency(world: World) -> None:
    rows = frames.comparisons(world.client, world.without_power.id, metric=EFFICIENCY).arrow.to_pylist()
    assert rows == []
    for row in frames.best(world.client, world.without_power.id).arrow.to_pylist():
        assert row["goal"] != "efficiency"
        assert row["provenance"] == "measured"


@pytest.mark.parametrize("kind", ["store", "client", "file"])
@pytest.mark.parametrize("name", SWEEP_CHARTS)
def test_charts_of_a_sweep(world: World, kind: str, name: str) -> None:
    drawn = figure(name, world.source(kind), world.sweep.id)
    wanted = SWEEP_CHARTS[name].build(summarise(world.sweep.runs), View())
    assert [trace.type for trace in drawn.data] == [trace["type"] for trace in wanted["data"]]
    assert drawn.layout.height == wanted["layout"]["height"]
    if name == "pareto-front":
        assert [tuple(trace.x) for trace in drawn.data] == [tuple(trace["x"]) for trace in wanted["data"]]


@pytest.mark.parametrize("kind", ["store", "client"])
def test_charts_of_a_run_and_of_layers(world: World, kind: str) -> None:
    source = world.source(kind)
    drawn = figure("power-trace", source, world.sweep.runs[0].id[:13])
    assert [trace.name.partition(" ")[0] for trace in drawn.data] == [
        "ina3221:CPU",
        "ina3221:GPU",
        "ina3221:SOC",
        "total",
    ]
    profile = next(one for one in world.client.layer_profiles() if one.idle_power is not None)
    energy = figure(next(iter(LAYER_CHARTS)), source, profile.id, theme="dark")
    assert sum(len(trace.x) for trace in energy.data) == 2 * len(profile.layers)


def test_a_figure_that_cannot_be_drawn_says_why(world: World) -> None:
    for words, sentence in (
        (("pareto-front", world.client, world.without_power.id), "Power was not measured on this device"),
        (("heatmap", world.client), "the source has 2 sweeps"),
        (("heatmaps", world.client), "did you mean"),
        (("power-trace", world.client), "shows one run"),
        (("power-trace", world.file, world.sweep.runs[0].id), "hold no samples"),
        (("layer-energy", world.client), "the source has 2 layer profiles"),
    ):
        with pytest.raises(PowerlabError, match=sentence):
            figure(*words)
    with pytest.raises(PowerlabError, match="there is no theme 'blue'"):
        figure("pareto-front", world.file, theme="blue")
