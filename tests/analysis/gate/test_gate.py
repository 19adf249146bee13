"""A gate's verdicts: what was lost is found, what was not passes, and what cannot be known is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.analysis.gate.gate import GateVerdict, judge
from powerlab.analysis.gate.planning import plan
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Verdict
from tests.analysis.gate_sweeps import POINT, series
from tests.analysis.paired_runs import point

RATE, EFFICIENCY = "throughput_img_per_s", "efficiency_img_per_s_per_w"
LIMITS = {"max_loss": 0.02, "found_loss": 0.03}


def judged(before, after, names=(RATE,), **changes):
    return judge(before, after, names, **{**LIMITS, **changes})


def test_a_loss_is_found_and_no_loss_passes():
    before = series(8)
    assert judged(before, series(8, seed=1, loss=0.05)).verdict is GateVerdict.LOSS
    assert judged(before, series(8, seed=1)).verdict is GateVerdict.PASS
    assert judged(before, series(8, seed=1, loss=-0.05)).verdict is GateVerdict.PASS


def test_a_small_loss_within_the_limit_passes():
    report = judged(series(8, between=0.001, within=0.001), series(8, seed=1, between=0.001, within=0.001, loss=0.01))
    (row,) = report.rows
    assert row.level < 0.01  # that something was lost is certain
    assert report.verdict is GateVerdict.PASS


def test_too_few_sweeps_give_no_verdict_and_say_how_many_would():
    report = judged(series(2, between=0.02), series(2, seed=1, between=0.02, loss=0.03))
    assert report.verdict is GateVerdict.OPEN
    assert report.sweeps_needed > 2
    single = judged(series(1), series(1, seed=1, loss=0.5))
    assert (single.verdict, single.rows[0].loss, single.sweeps_needed) == (GateVerdict.OPEN, None, None)


def test_days_that_differ_are_no_loss_however_many_repeats_a_sweep_has():
    """The repeats of one slow day agree with each other, and would show a loss to whoever counted them."""
    losses = 0
    for seed in range(100):
        before = series(4, seed=seed, between=0.02, within=0.001)
        report = judged(before, series(1, seed=1000 + seed, between=0.02, within=0.001))
        losses += report.verdict is GateVerdict.LOSS
    assert losses <= 4


def test_one_lost_point_among_many_is_a_loss():
    points = [point(threads) for threads in (1, 2, 4)]

    def slowed(run):
        return replace(run, metrics=tuple(replace(one, value=0.9 * one.value) for one in run.metrics))

    after = [
        [slowed(run) if run.point == points[1] else run for run in sweep] for sweep in series(8, seed=1, points=points)
    ]
    report = judged(series(8, points=points), after)
    assert {row.point.threads: row.verdict for row in report.rows} == {
        1: GateVerdict.PASS,
        2: GateVerdict.LOSS,
        4: GateVerdict.PASS,
    }
    assert report.verdict is GateVerdict.LOSS


def test_points_that_the_change_did_not_run_are_named():
    report = judged(series(4, points=[point(1), point(2)]), series(4, seed=1, points=[point(1)]))
    assert report.missing == (point(2),)
    assert len(report.rows) == 1


def test_a_new_version_of_a_model_is_the_same_point():
    def of(digest, **words):
        place = replace(POINT, workload=replace(POINT.workload, model=f"net@sha256:{digest * 64}"))
        return series(8, points=[place], **words)

    assert judged(of("a"), of("b", seed=1, loss=0.06)).verdict is GateVerdict.LOSS


def test_a_point_that_fails_now_does_not_pass():
    points = [point(1), point(2)]
    after = [
        [replace(run, verdict=Verdict.FAILED, metrics=()) if run.point == points[1] else run for run in sweep]
        for sweep in series(8, seed=1, points=points)
    ]
    report = judged(series(8, points=points), after)
    assert report.verdict is GateVerdict.OPEN
    assert [row.reason for row in report.rows] == ["", "the sweep has no valid run of it"]


def test_estimates_are_not_judged_and_simulations_not_beside_measurements():
    def marked(sweeps, word):
        return [
            [
                replace(
                    run,
                    metrics=tuple(
                        replace(one, provenance=word) if one.name == EFFICIENCY else one for one in run.metrics
                    ),
                )
                for run in sweep
            ]
            for sweep in sweeps
        ]

    before, after = series(8), series(8, seed=1)
    report = judged(*(marked(side, Provenance.ESTIMATED) for side in (before, after)), names=(RATE, EFFICIENCY))
    assert (report.estimated, len(report.rows)) == ((EFFICIENCY,), 1)
    assert report.verdict is GateVerdict.PASS
    with pytest.raises(PowerlabError, match="a gate judges no estimates"):
        judged(*(marked(side, Provenance.ESTIMATED) for side in (before, after)), names=(EFFICIENCY,))
    with pytest.raises(PowerlabError, match="measured and simulated figures have no ratio"):
        judged(before, marked(after, Provenance.SIMULATED), names=(EFFICIENCY,))


def test_nothing_to_judge_is_said():
    with pytest.raises(PowerlabError, match="no point in common"):
        judged(series(2), series(2, points=[point(2)]))
    flagged = Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="hot")
    unsure = [
        [replace(run, verdict=Verdict.FLAGGED, findings=(flagged,)) for run in sweep] for sweep in series(2, seed=1)
    ]
    with pytest.raises(PowerlabError, match="no valid run"):
        judged(series(2), unsure)
    with pytest.raises(PowerlabError, match="no run of the baseline has such a metric"):
        judged(series(2), series(2, seed=1), names=("server_queries_per_s",))


def test_a_plan_says_what_a_gate_takes():
    made = plan(series(6, between=0.01), (RATE, EFFICIENCY), **LIMITS)
    assert (made.run_count, len(made.rows), len(made.baseline_sweeps)) == (3, 2, 6)
    assert made.sweeps_needed == max(row.sweeps_needed for row in made.rows) > 6
    with pytest.raises(PowerlabError, match="at least two sweeps"):
        plan(series(1), (RATE,), **LIMITS)


def minutes(sweeps, start, step):
    """Return sweeps that began so many minutes after each other."""
    return [
        [
            replace(run, started_at=f"2026-01-01T{(at := start + step * number) // 60:02}:{at % 60:02}:00+00:00")
            for run in sweep
        ]
        for number, sweep in enumerate(sweeps)
    ]


def test_sweeps_in_one_go_are_one_observation_and_in_turns_several():
    """Ten sweeps of one slow quarter of an hour agree with each other, and say nothing of the next quarter."""
    before, slower = series(6, between=0.001), series(6, seed=1, between=0.001, loss=0.04)
    report = judged(minutes(before, 0, 2), minutes(slower, 30, 2))
    assert (report.baseline_occasions, report.candidate_occasions) == (1, 1)
    assert (report.verdict, report.rows[0].loss) == (GateVerdict.OPEN, None)
    turns = judged(minutes(before, 0, 4), minutes(slower, 2, 4))
    assert (turns.baseline_occasions, turns.candidate_occasions) == (6, 6)
    assert turns.verdict is GateVerdict.LOSS
    later = judged(minutes(before, 0, 90), minutes(slower, 600, 2))
    assert (later.baseline_occasions, later.candidate_occasions) == (6, 1)
    assert later.verdict is GateVerdict.LOSS
    assert len(later.candidate_sweeps) == 6
