"""The operating point under bounds: chosen, tied, open, what bounds cost, and why there is none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.analysis.operating_point.answer import operating_points
from powerlab.analysis.operating_point.bounds import Fit
from powerlab.analysis.operating_point.devices import MeasuredSweep, of_devices
from powerlab.analysis.operating_point.question import parse_question
from powerlab.analysis.operating_point.records import Cause
from powerlab.analysis.verdict import Decision
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Verdict
from tests.analysis.operating_point.idling_runs import idling, place

SLOW, FAST, BATCH = place("7W"), place("15W"), place("15W", batch=4)
TRUTH = {SLOW: (40.0, 6.0, 3.0), FAST: (100.0, 10.0, 5.0), BATCH: (160.0, 12.0, 5.0)}
RUNS = idling(TRUTH, repeats=4, scatter=0.002)


def asked(goal=None, rate=None, battery=None, **bounds):
    return parse_question(goal, bounds, rate, battery)


def only(question, runs=RUNS):
    (answer,) = operating_points(runs, question)
    return answer


def test_without_bounds_the_least_energy_when_always_busy_wins():
    answer = only(asked())
    assert answer.best.point == BATCH
    assert answer.decision is Decision.WINNER
    assert answer.beaten == 2
    assert answer.best.figure.value == pytest.approx(12 / 160, rel=0.01)


@pytest.mark.parametrize(
    ("question", "best"),
    [
        (asked("throughput", power="11W"), FAST),
        (asked("latency"), FAST),
        (asked(rate="25", p99="40ms"), SLOW),
        (asked(rate="25", p99="25ms"), FAST),
        (asked("battery", rate="90", p99="80ms"), BATCH),
        (asked(throughput="50/s", p99="20ms"), FAST),
    ],
)
def test_the_point_is_the_best_of_those_that_keep_all_bounds(question, best):
    answer = only(question)
    assert answer.best.point == best
    assert all(held.fit is Fit.KEPT for held in answer.held)


def test_a_batch_that_takes_too_long_to_collect_does_not_answer_in_time():
    patient, pressed = (
        only(asked("throughput", rate="50", p99="200ms")),
        only(asked("throughput", rate="50", p99="60ms")),
    )
    assert patient.best.point == BATCH  # 3 images at 50 a second are 60 ms, and 30 ms to compute
    assert pressed.best.point == FAST
    (held,) = [one for one in patient.held if one.bound.name == "p99"]
    assert held.figure.value == pytest.approx(60 + 4 * 1000 / 160 * 1.2, rel=0.01)


def test_what_a_bound_costs_is_the_best_point_without_it():
    answer = only(asked(power="8W", p99="1s"))
    power, latency = sorted(answer.costs, key=lambda cost: cost.bound.name, reverse=True)
    assert answer.best.point == SLOW
    assert power.without.point == BATCH
    assert power.without.ratio.value == pytest.approx((6 / 40) / (12 / 160), rel=0.02)
    assert power.without.ratio.differs
    assert latency.without is None


def test_what_lacks_repeats_says_which_command_adds_them_to_which_sweep():
    few = idling(TRUTH, repeats=2, scatter=0.002)
    sweep = few[0].sweep_id
    assert f"add 1 repeat (`powerlab repeat {sweep[:8]} --add 1`)" in only(asked(), few).statement
    of_two = [
        replace(run, sweep_id=f"{sweep}{run.repeat}", started_at=f"2026-01-0{run.repeat + 1}T00:00:00+00:00")
        for run in few
    ]
    assert f"add 1 repeat (`powerlab repeat {sweep}1 --add 1`)" in only(asked(), of_two).statement


def test_points_that_do_not_differ_are_tied_and_listed():
    twin = place("15W", threads=2)
    answer = only(asked(), idling({FAST: TRUTH[FAST], twin: TRUTH[FAST], SLOW: TRUTH[SLOW]}, repeats=4, seed=3))
    assert answer.decision is Decision.TIED
    assert {answer.best.point, *(one.point for one in answer.tied)} == {FAST, twin}
    assert answer.beaten == 1


def test_an_open_bound_is_never_kept_and_says_how_many_repeats_may_settle_it():
    runs = idling(TRUTH, repeats=4, scatter=0.03, gain_bound=0.0001)
    answer = only(asked("throughput", power="12.1W"), runs)
    assert answer.best.point == FAST
    (one,) = answer.open_points
    (held,) = one.held
    assert one.rated.point == BATCH
    assert held.fit is Fit.OPEN
    assert held.repeats is None or held.repeats > 4


def test_figures_of_different_provenance_are_answered_apart():
    measured, estimated = (
        idling({point: TRUTH[point]}, provenance=word)
        for point, word in ((FAST, Provenance.MEASURED), (SLOW, Provenance.ESTIMATED))
    )
    found = operating_points([*measured, *estimated], asked())
    assert {answer.provenance: answer.best.point for answer in found} == {
        Provenance.MEASURED: FAST,
        Provenance.ESTIMATED: SLOW,
    }


def test_the_best_point_at_other_rates_and_where_racing_to_idle_pays():
    runs = idling({FAST: (100.0, 10.0, 5.0), SLOW: (50.0, 9.5, 3.0)}, repeats=5)
    answer = only(asked(battery="50Wh", p99="25ms"), runs)
    rows = {row.rate_img_per_s: row for row in answer.rates}
    assert rows[10].rated.point == SLOW
    assert rows[10].power.value == pytest.approx(3 + 10 * 6.5 / 50, rel=0.02)
    assert rows[10].hours == pytest.approx(50 / rows[10].power.value)
    assert rows[10].hours_low < rows[10].hours < rows[10].hours_high
    assert rows[50].rated.point == FAST
    (change,) = answer.changes
    assert (change.cause, change.below, change.above, change.racing_below) == (Cause.CROSSOVER, SLOW, FAST, False)
    assert change.rate_img_per_s == pytest.approx((5 - 3) / (6.5 / 50 - 5 / 100), rel=0.2)
    assert change.low < change.rate_img_per_s < change.high


def test_a_point_that_keeps_up_no_further_gives_way():
    answer = only(asked(p99="40ms"), idling({FAST: (100.0, 10.0, 5.0), SLOW: (40.0, 6.0, 3.0)}, repeats=5))
    (change,) = answer.changes
    assert (change.cause, change.below, change.above) == (Cause.CAPACITY, SLOW, FAST)
    assert change.rate_img_per_s == pytest.approx(40, rel=0.05)
    assert answer.rates[-1].rate_img_per_s == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        (
            asked(p99="10ms"),
            r"99th percentile latency of at most 10 ms is missed by 2\.\d+ ms .*the nearest is batch 1, mode 15W",
        ),
        (asked(power="1W"), r"power while running of at most 1 W is missed by 5\.\d+ W"),
        (asked(p99="13ms", power="7W"), r"no point surely keeps all bounds together.*mode"),
        (asked(rate="500"), r"no point keeps up with 500 img/s: the fastest gives 1\d\d\.\d img/s, 3\d\d\.\d too few"),
    ],
)
def test_bounds_that_nobody_keeps_are_named_with_by_how_much(question, said):
    with pytest.raises(PowerlabError, match=said):
        operating_points(RUNS, question)


def test_a_figure_that_no_run_has_is_no_bound_kept():
    bare = [replace(run, metrics=tuple(one for one in run.metrics if one.name != "power_w")) for run in RUNS]
    with pytest.raises(PowerlabError, match="power while running of at most 100 W: no usable run has that figure"):
        operating_points(bare, asked(power="100W"))


def test_without_power_the_goal_is_latency_and_energy_cannot_be_asked_for():
    clock = [
        replace(run, metrics=tuple(one for one in run.metrics if one.name[:4] in {"late", "thro"}), budget=())
        for run in RUNS
    ]
    answer = only(asked(), clock)
    assert (answer.goal, answer.best.point, answer.rates) == ("latency", FAST, ())
    with pytest.raises(PowerlabError, match="no usable run has the figure for the goal energy"):
        operating_points(clock, asked("energy"))


def test_a_sweep_without_valid_runs_is_refused_with_the_first_reason():
    finding = Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="the device was too hot")
    flagged = [replace(run, verdict=Verdict.FLAGGED, findings=(finding,)) for run in RUNS]
    with pytest.raises(PowerlabError, match=r"none of the 12 runs is valid.*flagged: the device was too hot"):
        operating_points(flagged, asked())
    with pytest.raises(PowerlabError, match="there are no runs"):
        operating_points([], asked())


def test_devices_are_answered_apart_and_one_that_cannot_says_why():
    def measured(device, truth):
        runs = tuple(idling(truth, repeats=3, sweep_id=device))
        return MeasuredSweep(sweep_id=device, device_id=device, device_name=device, simulated=False, runs=runs)

    sweeps = [measured("a", {SLOW: TRUTH[SLOW]}), measured("b", {FAST: TRUTH[FAST]})]
    able, unable = of_devices(sweeps, asked(power="8W")).items
    assert able.answers[0].best.point == SLOW
    assert (unable.answers, unable.device_name) == ((), "b")
    assert "power while running of at most 8 W is missed by" in unable.problem
    with pytest.raises(PowerlabError, match=r"a: no point.*; b: no point"):
        of_devices(sweeps, asked(power="1W"))


ONCE_OR_TWICE = [run for run in RUNS if run.point != SLOW or run.repeat < 2]
"""A search has not measured the slow point as often as the others."""
ASIDE = {"efficiency": frozenset({SLOW})}


def test_what_a_search_gave_up_is_not_compared():
    assert only(asked(), ONCE_OR_TWICE).decision is Decision.NOT_ENOUGH_DATA
    (answer,) = operating_points(ONCE_OR_TWICE, asked(), ASIDE)
    assert (answer.best.point, answer.decision, answer.beaten) == (BATCH, Decision.WINNER, 1)


@pytest.mark.parametrize(
    "question", [asked(power="11W"), asked("throughput"), asked(rate="25")], ids=["bound", "other goal", "idling"]
)
def test_what_a_search_gave_up_may_still_be_best_at_anything_else(question):
    (answer,) = operating_points(ONCE_OR_TWICE, question, ASIDE)
    assert answer == only(question, ONCE_OR_TWICE)
    assert answer.decision is Decision.NOT_ENOUGH_DATA


def test_what_one_sweep_gave_up_and_another_measured_is_compared():
    def measured(name, runs, aside):
        return MeasuredSweep(
            sweep_id=name, device_id="a", device_name="a", simulated=False, runs=tuple(runs), aside=aside
        )

    search = measured("search", ONCE_OR_TWICE, ASIDE)
    grid = measured("grid", [run for run in RUNS if run.point == SLOW], {})
    (alone,), (both,) = (of_devices(sweeps, asked()).items for sweeps in ([search], [search, grid]))
    assert (alone.answers[0].beaten, both.answers[0].beaten) == (1, 2)
