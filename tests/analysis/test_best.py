"""The best points, how sure the choice is, and the front of img/s against watts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.best import Decision, best_points, pareto_front, work_of
from powerlab.analysis.summary import summarise
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.workload import Scenario
from tests.analysis.paired_runs import point, sweep


def three_of(make_run, **changes):
    return [make_run(**changes) for _ in range(3)]


def test_each_goal_has_its_own_best_point(make_run):
    runs = [
        *three_of(make_run, threads=1, latency_ms=20.0, power_w=5.0),
        *three_of(make_run, threads=2, latency_ms=12.0, power_w=20.0),
    ]
    best = {one.goal: one for one in best_points(summarise(runs), runs)}
    assert best["latency"].summary.point.threads == 2
    assert best["throughput"].summary.point.threads == 2
    assert best["efficiency"].summary.point.threads == 1
    assert best["efficiency"].runner_up.point.threads == 2
    assert best["efficiency"].separated is True
    assert best["efficiency"].decision is Decision.WINNER
    assert best["efficiency"].statement == "winner: beats 2 threads by 140.0 % ± 3.4 %"


def test_a_lower_latency_is_so_much_less():
    truth = {point(1): (100.0, 10.0), point(2): (50.0, 10.0)}
    runs = sweep(truth, scatter=0.01)
    latency = best_points(summarise(runs), runs)[0]
    assert latency.ratio.value == pytest.approx(0.5, rel=0.05)
    assert re.fullmatch(r"winner: beats [12] threads? by (49|5\d)\.\d % ± \d\.\d %", latency.statement)
    assert latency.separated is True


def test_what_one_sensor_does_to_both_points_is_no_reason_to_doubt_their_order():
    """Both intervals hold the sensor's 15 % and overlap widely; the order is sure all the same."""
    runs = sweep({point(1): (100.0, 10.0), point(2): (110.0, 10.0)}, gain_bound=0.15, scatter=0.001)
    efficiency = best_points(summarise(runs), runs)[-1]
    assert efficiency.metric.low < efficiency.runner_up.metric("efficiency_img_per_s_per_w").high
    assert efficiency.separated is True


def test_points_that_cannot_be_told_apart_are_said_to_be_so(make_run):
    runs = sweep({point(1): (100.0, 10.0), point(2): (100.5, 10.0)}, scatter=0.02)
    latency = best_points(summarise(runs), runs)[0]
    assert latency.separated is False
    assert latency.decision is Decision.TIED
    assert re.fullmatch(
        r"tied with [12] threads? \(latency ratio [01]\.\d+, 95 % CI 0\.\d+–1\.\d+\)", latency.statement
    )


def test_a_missing_interval_is_said_to_be_missing(make_run):
    runs = [make_run(threads=1), make_run(threads=2, latency_ms=11.0)]
    latency = best_points(summarise(runs), runs)[0]
    assert latency.separated is None
    assert latency.decision is Decision.NOT_ENOUGH_DATA
    assert latency.statement.startswith("not enough data: 1 of 1 runs of 1 thread are valid")


def test_flagged_runs_make_no_winner_however_narrow_the_intervals(make_run):
    """The demo once showed a point with one valid run of three as the surest of all."""
    fast = three_of(make_run, threads=2, latency_ms=5.0)
    fast[1:] = [replace(run, verdict=Verdict.FLAGGED) for run in fast[1:]]
    slow = three_of(make_run, threads=1, latency_ms=10.0)
    for runs in (fast + slow, slow + fast):
        best = {one.goal: one for one in best_points(summarise(runs), runs)}
        assert best["latency"].summary.point.threads == 2
        assert best["latency"].decision is Decision.NOT_ENOUGH_DATA
        assert "1 of 3 runs of 2 threads are valid" in best["latency"].statement
    loser = [replace(run, verdict=Verdict.FLAGGED) for run in slow]
    runs = three_of(make_run, threads=2, latency_ms=5.0) + loser
    assert best_points(summarise(runs), runs)[0].decision is Decision.NOT_ENOUGH_DATA


def test_without_the_runs_nothing_is_said_of_how_sure_the_choice_is(make_run):
    runs = [*three_of(make_run, threads=1), *three_of(make_run, threads=2)]
    latency = best_points(summarise(runs))[0]
    assert (latency.ratio, latency.separated) == (None, None)


@pytest.mark.campaign
def test_among_many_equal_points_there_is_seldom_a_winner():
    """The best is chosen after looking, so that it is compared with all the others."""
    claimed = 0
    for seed in range(400):
        runs = sweep({point(threads): (100.0, 10.0) for threads in range(1, 9)}, seed=seed)
        claimed += best_points(summarise(runs), runs)[-1].separated
    assert claimed / 400 < 0.05


def test_the_winner_beats_every_rival_and_says_how_many():
    runs = sweep({point(1): (50.0, 10.0), point(2): (100.0, 10.0), point(4): (80.0, 10.0)}, repeats=5)
    latency = best_points(summarise(runs), runs)[0]
    assert latency.decision is Decision.WINNER
    assert re.fullmatch(
        r"winner: beats both others, the next best \(4 threads\) by \d\d\.\d % ± \d\.\d %", latency.statement
    )


def test_a_tie_names_the_best_rival_that_is_not_beaten_and_counts_the_others():
    """The next best is beaten, a third is too scattered to say: that is no winner."""
    steady = sweep({point(1): (100.0, 10.0), point(2): (95.0, 10.0)}, scatter=0.0005, repeats=5)
    wild = sweep({point(4): (80.0, 10.0), point(8): (79.0, 10.0)}, scatter=0.2, repeats=5)
    latency = best_points(summarise(steady + wild), steady + wild)[0]
    assert (latency.summary.point, latency.runner_up.point) == (point(1), point(2))
    assert latency.ratio.differs is True
    assert latency.decision is Decision.TIED
    assert re.fullmatch(r"tied with [48] threads \(latency ratio .*\) and 1 other", latency.statement)


def test_a_claim_that_would_do_alone_is_not_significant_among_many():
    alone = {point(1): (100.0, 10.0), point(2): (97.0, 10.0)}
    found = []
    for seed in range(60):
        few = sweep(alone, scatter=0.008, seed=seed)
        many = sweep({**alone, **{point(n): (96.9, 10.0) for n in range(3, 11)}}, scatter=0.008, seed=seed)
        found.append([best_points(summarise(runs), runs)[0] for runs in (few, many)])
    assert sum(few.separated for few, _ in found) > sum(many.separated for _, many in found)
    assert any("not significant among 9 rivals" in many.statement for _, many in found)


def test_what_is_missing_is_said_with_what_to_do(make_run):
    fast, slow = three_of(make_run, threads=2, latency_ms=5.0), three_of(make_run, threads=1, latency_ms=10.0)
    runs = [fast[0], replace(fast[1], verdict=Verdict.FLAGGED), replace(fast[2], verdict=Verdict.FLAGGED), *slow]
    latency = best_points(summarise(runs), runs)[0]
    assert latency.missing_repeats == 2
    assert latency.statement == (
        "not enough data: 1 of 3 runs of 2 threads are valid, and a claim takes 3; add 2 repeats"
    )
    lone = best_points(summarise(fast), fast)[0]
    assert lone.missing_repeats == 0


@given(st.lists(st.sampled_from([Verdict.VALID, Verdict.FLAGGED, Verdict.VOID]), min_size=6, max_size=6))
def test_two_valid_runs_of_a_point_never_make_a_winner(verdicts):
    runs = [
        replace(run, verdict=verdict)
        for run, verdict in zip(sweep({point(1): (100.0, 10.0), point(2): (50.0, 10.0)}), verdicts, strict=True)
    ]
    enough = all(
        sum(run.verdict is Verdict.VALID for run in runs if run.point == point(threads)) >= 3 for threads in (1, 2)
    )
    for best in best_points(summarise(runs), runs):
        assert (best.decision is Decision.WINNER) == enough


def test_a_lone_point_has_nothing_to_be_better_than(make_run):
    best = best_points(summarise(three_of(make_run)))
    assert [one.runner_up for one in best] == [None, None, None]
    assert {one.decision for one in best} == {Decision.NOT_ENOUGH_DATA}
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


def test_other_models_and_scenarios_do_other_work_and_are_ranked_apart(make_run):
    def fed(scenario, threads, **changes):
        return [
            replace(run, point=replace(run.point, workload=replace(run.point.workload, scenario=scenario)))
            for run in three_of(make_run, threads=threads, **changes)
        ]

    runs = [
        *fed(Scenario.SINGLE_STREAM, 1, latency_ms=10.0),
        *fed(Scenario.SINGLE_STREAM, 2, latency_ms=6.0),
        *fed(Scenario.MULTI_STREAM, 1, latency_ms=80.0),
        *three_of(make_run, threads=1, latency_ms=1.0, model="squeezenet"),
    ]
    latency = [one for one in best_points(summarise(runs), runs) if one.goal == "latency"]
    assert [(work_of(one.summary.point), one.summary.point.threads, one.runner_up is None) for one in latency] == [
        ("resnet50", 2, False),
        ("resnet50, multi-stream", 1, True),
        ("squeezenet", 1, True),
    ]
