"""Summaries and answers of figures at the edge of what a number can be; a store takes them as a device sends them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.best import GOALS, best_points, pareto_front
from powerlab.analysis.summary import combine, summarise
from powerlab.cli.output.sweep_report import answer
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.statistics import mean_half_width

EDGES = st.sampled_from([0.0, 5e-324, 1e-200, 1e-9, 1.0, 1e9, 1e200])


def figures(values: list[float], half: float | None) -> list[Metric]:
    return [
        Metric(
            name="power_w",
            value=value,
            low=None if half is None else value - half,
            high=None if half is None else value + half,
            provenance=Provenance.MEASURED,
        )
        for value in values
    ]


@given(st.lists(EDGES, min_size=2, max_size=5))
def test_the_scatter_of_any_figures_is_a_number(values):
    half_width = mean_half_width(values)
    assert half_width is not None
    assert math.isfinite(half_width)
    assert half_width >= 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8), st.floats(1e-3, 1e3), st.floats(-1e3, 1e3))
def test_the_scatter_follows_the_unit_and_not_the_zero_point(values, scale, shift):
    here = mean_half_width(values)
    there = mean_half_width([scale * value + shift for value in values])
    assert there == pytest.approx(scale * here, rel=1e-6, abs=1e-6 * scale)


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9), st.none() | st.floats(0, 1e6))
def test_the_combined_figure_lies_among_the_repeats_and_its_interval_around_it(values, half):
    made = combine(figures(values, half))
    assert min(values) <= made.value <= max(values)
    if len(values) == 1:
        assert made.low is made.high is None
    else:
        assert 0 <= made.low <= made.value <= made.high


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=9), st.floats(0, 1e3), st.randoms())
def test_the_combined_figure_does_not_depend_on_the_order_of_the_repeats(values, half, random):
    shuffled = random.sample(values, len(values))
    one, other = combine(figures(values, half)), combine(figures(shuffled, half))
    assert one.value == other.value
    assert one.high == pytest.approx(other.high, rel=1e-9)


@given(st.lists(st.floats(1, 1e6), min_size=3, max_size=6), st.floats(0, 1e3), st.floats(1.01, 10))
def test_a_less_certain_repeat_never_narrows_the_interval(values, half, factor):
    narrow, wide = combine(figures(values, half)), combine(figures(values, half * factor))
    assert wide.high >= narrow.high
    assert wide.low <= narrow.low


def test_repeats_that_agree_still_own_what_each_cannot_know():
    made = combine(figures([10.0, 10.0, 10.0], 0.5))
    assert (made.low, made.high) == (9.5, 10.5)


def test_only_differences_and_temperatures_may_lie_below_zero():
    for name in METRICS:
        made = combine(
            [Metric(name=name, value=value, low=-9.0, high=9.0, provenance=Provenance.MEASURED) for value in (0.1, 0.2)]
        )
        assert (made.low < 0) == (name == "energy_above_idle_per_image_j" or name.endswith("_c"))


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e200])
def test_equal_figures_at_the_edge_are_ranked_and_said(make_run, value):
    runs = [make_run(threads=threads, power_w=5.0) for threads in (1, 1, 1, 2, 2, 2)]
    runs = [
        _with(run, throughput_img_per_s=value, latency_p50_ms=value, efficiency_img_per_s_per_w=value) for run in runs
    ]
    best = best_points(summarise(runs), runs)
    assert {one.goal for one in best} == set(GOALS)
    said = "tied with 2 threads" if value else "not enough data: no ratio to"
    assert all(said in one.statement for one in best)


@given(st.lists(st.tuples(EDGES, EDGES), min_size=1, max_size=6))
def test_any_figures_have_an_answer_in_sentences(make_run, pairs):
    runs = [
        _with(make_run(threads=index), throughput_img_per_s=speed, power_w=power, latency_p50_ms=speed)
        for index, (speed, power) in enumerate(pairs, start=1)
    ]
    sentences = answer(runs)
    assert sentences
    assert all(sentence.startswith("Best ") and sentence.endswith(".") for sentence in sentences)
    assert all("nan" not in sentence and "inf" not in sentence for sentence in sentences)
    assert len(pareto_front(summarise(runs))) <= len(pairs)


@given(st.lists(st.sampled_from([10.0, 20.0, 30.0]), min_size=1, max_size=6), st.randoms())
def test_the_best_point_is_the_same_in_whatever_order_the_runs_came(make_run, latencies, random):
    runs = [make_run(threads=index, latency_ms=latency) for index, latency in enumerate(latencies, start=1)]
    shuffled = random.sample(runs, len(runs))
    there = best_points(summarise(shuffled), shuffled)
    for one, other in zip(best_points(summarise(runs), runs), there, strict=True):
        assert one.metric.value == other.metric.value
        assert (one.goal, one.separated, one.statement) == (other.goal, other.separated, other.statement)


def _with(run, **values):
    metrics = tuple(
        replace(metric, value=values[metric.name], low=None, high=None) if metric.name in values else metric
        for metric in run.metrics
    )
    return replace(run, metrics=metrics)
