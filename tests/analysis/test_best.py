"""The best points, how sure the choice is, and the front of img/s against watts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.best import best_points, pareto_front
from powerlab.analysis.summary import summarise
from powerlab.domain.quantity import Provenance


def three_of(make_run, **changes):
    return [make_run(**changes) for _ in range(3)]


def test_each_goal_has_its_own_best_point(make_run):
    summaries = summarise(
        [
            *three_of(make_run, threads=1, latency_ms=20.0, power_w=5.0),
            *three_of(make_run, threads=2, latency_ms=12.0, power_w=20.0),
        ]
    )
    best = {one.goal: one for one in best_points(summaries)}
    assert best["latency"].summary.point.threads == 2
    assert best["throughput"].summary.point.threads == 2
    assert best["efficiency"].summary.point.threads == 1
    assert best["efficiency"].runner_up.point.threads == 2
    assert best["efficiency"].separated is True
    assert "do not overlap" in best["efficiency"].statement
    assert "leads the next best by 58.3%" in best["efficiency"].statement


def test_overlapping_intervals_are_said_to_overlap(make_run):
    summaries = summarise(
        [*three_of(make_run, threads=1, latency_ms=10.0), *three_of(make_run, threads=2, latency_ms=10.1)]
    )
    latency = best_points(summaries)[0]
    assert latency.separated is False
    assert "either may be the better one" in latency.statement


def test_a_missing_interval_is_said_to_be_missing(make_run):
    latency = best_points(summarise([make_run(threads=1), make_run(threads=2, latency_ms=11.0)]))[0]
    assert latency.separated is None
    assert "cannot be said" in latency.statement


def test_a_lone_point_has_nothing_to_be_better_than(make_run):
    best = best_points(summarise(three_of(make_run)))
    assert [one.runner_up for one in best] == [None, None, None]
    assert "nothing to compare" in best[0].statement


def test_estimated_and_measured_efficiency_are_never_ranked_together(make_run):
    summaries = summarise(
        [
            *three_of(make_run, threads=1, power_w=1.0, provenance=Provenance.ESTIMATED),
            *three_of(make_run, threads=2, power_w=10.0),
        ]
    )
    efficiency = [one for one in best_points(summaries) if one.goal == "efficiency"]
    assert {one.metric.provenance for one in efficiency} == {Provenance.MEASURED, Provenance.ESTIMATED}
    assert all(one.runner_up is None for one in efficiency)


def test_without_power_there_is_no_best_efficiency(make_run):
    assert {one.goal for one in best_points(summarise(three_of(make_run, power_w=None)))} == {"latency", "throughput"}
    assert best_points([]) == ()
    assert pareto_front(summarise(three_of(make_run, power_w=None))) == ()


@given(points=st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=1, max_size=12))
def test_the_front_holds_every_point_that_nothing_beats_and_no_other(make_run, points):
    summaries = summarise(
        [
            make_run(threads=index, latency_ms=1000 / speed, power_w=float(power))
            for index, (speed, power) in enumerate(points, start=1)
        ]
    )
    front = pareto_front(summaries)
    found = [points[summary.point.threads - 1] for summary in front]
    unbeaten = {(s, p) for s, p in points if not any(a >= s and b <= p and (a, b) != (s, p) for a, b in points)}
    assert set(found) == unbeaten
    assert found == sorted(found, key=lambda point: point[1])
    assert len(found) == len(unbeaten)


@pytest.mark.parametrize("provenance", [Provenance.SIMULATED, Provenance.ESTIMATED])
def test_the_best_efficiency_carries_its_provenance(make_run, provenance):
    efficiency = best_points(summarise(three_of(make_run, provenance=provenance)))[-1]
    assert efficiency.metric.provenance is provenance
