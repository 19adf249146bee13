"""How precisely a point is known, what no repeat takes away, and what is said of it in the end."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.precision import percent_text, precision, reach_percent, until_notes
from powerlab.analysis.summary import summarise
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.domain.sweep import SweepPlan

PLAN = SweepPlan(models=("resnet50",), threads=(1, 2), until_percent=5.0)


def figure(value: float, low: float | None, high: float | None) -> Metric:
    return Metric(name="efficiency_img_per_s_per_w", value=value, low=low, high=high, provenance=Provenance.MEASURED)


def repeats(make_run, *efficiencies: float, spread: float = 0.01, threads: int = 1) -> list[Run]:
    """Return runs with these img/s/W, each known to ±spread by itself."""
    return [make_run(threads=threads, latency_ms=10.0, power_w=100 / value, spread=spread) for value in efficiencies]


@given(value=st.floats(0.01, 1e6), below=st.floats(0, 0.9), above=st.floats(0, 5))
def test_the_wider_side_counts(value, below, above):
    found = reach_percent(figure(value, value * (1 - below), value * (1 + above)))
    assert found == pytest.approx(100 * max(below, above), abs=1e-6)


def test_without_an_interval_nothing_is_known():
    assert reach_percent(figure(5.0, None, None)) == math.inf


def test_repeats_that_agree_leave_what_the_sensor_does_not_know(make_run):
    found = precision(repeats(make_run, 10.0, 10.0, 10.0, spread=0.03))
    assert found.percent == pytest.approx(3.0)
    assert found.least_percent == pytest.approx(3.0)


def test_it_is_the_same_interval_that_the_table_shows(make_run):
    runs = repeats(make_run, 9.7, 10.0, 10.4)
    (summary,) = summarise(runs)
    found = precision(runs)
    assert found.percent == pytest.approx(reach_percent(summary.metric("efficiency_img_per_s_per_w")))
    assert found.least_percent == pytest.approx(1.0)
    assert found.percent > found.least_percent


def test_more_repeats_of_the_same_scatter_come_closer_to_what_is_left(make_run):
    widths = [precision(repeats(make_run, *[9.8, 10.0, 10.2] * count)).percent for count in (1, 2, 4, 8)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(1.0, abs=0.3)


def test_what_has_no_usable_figure_has_no_precision(make_run):
    void = Finding(rule="missing-power", verdict=Verdict.VOID, detail="no power")
    assert precision([]) is None
    assert precision([make_run(power_w=None, findings=(void,)) for _ in range(3)]) is None
    mixed = [make_run(), make_run(provenance=Provenance.SIMULATED)]
    assert precision(mixed) is None


def test_a_single_run_has_no_interval_yet(make_run):
    assert precision(repeats(make_run, 10.0)).percent == math.inf


def test_nothing_is_said_where_nothing_was_asked(make_run):
    assert until_notes(repeats(make_run, 9.0, 10.0), replace(PLAN, until_percent=0.0)) == []


def test_the_end_says_what_was_reached_and_why_the_rest_was_not(make_run):
    runs = (
        repeats(make_run, 10.0, 10.01, 9.99)
        + repeats(make_run, 10.0, 10.0, 10.0, spread=0.2, threads=2)
        + repeats(make_run, 8.0, 10.0, 12.0, threads=3)
        + [make_run(power_w=None, threads=4) for _ in range(3)]
    )
    assert until_notes(runs, PLAN) == [
        "The img/s/W of 1 of 4 points is known to ±5 %.",
        "resnet50, batch 1, 2 threads, mode current: known to ±20 % after 3 repeats; what its sensors leave unknown is "
        "±20 %, which no repeat takes away.",
        "resnet50, batch 1, 3 threads, mode current: known to ±50 % after 3 repeats.",
        "resnet50, batch 1, 4 threads, mode current: no usable run of 3 has the figure.",
    ]


def test_a_point_that_used_up_its_repeats_says_so(make_run):
    runs = repeats(make_run, *[8.0, 10.0, 12.0] * 10)
    assert until_notes(runs, replace(PLAN, until_percent=2.0))[1].endswith(
        "after 30 repeats, and a point has at most 30."
    )


def test_many_points_are_counted_rather_than_listed(make_run):
    runs = [run for threads in range(1, 9) for run in repeats(make_run, 8.0, 10.0, 12.0, threads=threads)]
    lines = until_notes(runs, PLAN)
    assert len(lines) == 5
    assert lines[-1] == "5 more points are not known to ±5 % either."


@given(st.floats(0.001, 1e6))
def test_percentages_are_written_as_people_write_them(percent):
    text = percent_text(percent)
    assert "e+" not in text
    assert float(text) == pytest.approx(percent, rel=0.06)
