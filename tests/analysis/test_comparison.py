"""Ratios of two points: what they share cancels, what they do not share stays, and nothing is claimed too often."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.comparison import compare, holm, margin
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Contribution, EffectKind, Finding, Verdict
from powerlab.domain.statistics import NORMAL_95
from tests.analysis.paired_runs import RAIL, point, sweep

A, B = point(1), point(2)
POWER, RATE, EFFICIENCY = "power_w", "throughput_img_per_s", "efficiency_img_per_s_per_w"


def ratio(runs, name=POWER, **changes):
    return compare([run for run in runs if run.point == A], [run for run in runs if run.point == B], name, **changes)


def half_width(found):
    return math.log(found.high / found.low) / 2


T_975 = {2: 6.205347, 4: 3.495406}
"""Two-sided 97.5 % quantiles of Student's t by degrees of freedom (Abramowitz and Stegun, table 26.10)."""


def with_values(runs, name, values):
    by_place = {
        (run.point, run.repeat): value
        for run, value in zip(sorted(runs, key=lambda run: (run.point != A, run.repeat)), values, strict=True)
    }
    return [
        replace(
            run,
            metrics=tuple(
                replace(metric, value=by_place[run.point, run.repeat]) if metric.name == name else metric
                for metric in run.metrics
            ),
        )
        for run in runs
    ]


def with_budget(runs, place, lines):
    """Give a point's runs a budget of (origin, effect, kind, relative uncertainty) for their power."""
    return [
        run
        if run.point != place
        else replace(
            run,
            budget=tuple(
                Contribution(
                    metric=POWER,
                    origin=origin,
                    effect=effect,
                    kind=kind,
                    standard_uncertainty=relative * run.metric(POWER).value,
                )
                for origin, effect, kind, relative in lines
            ),
        )
        for run in runs
    ]


def exact(**changes):
    """Return runs without any scatter, so that the interval holds the systematic part alone."""
    return sweep({A: (100.0, 10.0), B: (100.0, 20.0)}, scatter=0.0, **changes)


def test_the_gain_of_a_rail_that_both_points_use_cancels():
    found = ratio(exact(gain=0.015))
    assert found.value == pytest.approx(0.5)
    assert half_width(found) == pytest.approx(0, abs=1e-12)
    assert found.differs is True


def test_the_gain_does_not_cancel_between_two_devices():
    found = ratio(exact(), one_device=False)
    assert half_width(found) == pytest.approx(NORMAL_95 * math.hypot(0.015, 0.015) / math.sqrt(3))


def test_an_offset_leaves_what_two_loads_of_different_watts_feel_of_it():
    found = ratio(exact(gain_bound=0.0, offset_bound_w=0.3))
    left = 0.3 / math.sqrt(3) * (1 / 10 - 1 / 20)
    assert half_width(found) == pytest.approx(NORMAL_95 * left)


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_interval_holds_the_truth_under_the_greatest_offset(sign):
    """The offset acts to first order as said; at 3 % of the load the second order is no part of the interval's ends."""
    found = ratio(exact(gain_bound=0.0, offset_bound_w=0.3, offset_w=sign * 0.3))
    assert found.low < 0.5 < found.high


@pytest.mark.parametrize("effect", ["quantisation", "edge", "lag", "drift"])
def test_what_a_load_itself_decides_does_not_cancel(effect):
    runs = exact()
    for place in (A, B):
        runs = with_budget(runs, place, [(RAIL, effect, EffectKind.B, 0.01)])
    assert half_width(ratio(runs)) == pytest.approx(NORMAL_95 * 0.01 * math.sqrt(2))


def test_the_gains_of_different_rails_do_not_cancel():
    runs = with_budget(exact(), A, [("ina3221:CPU", "gain", EffectKind.B, 0.01)])
    runs = with_budget(runs, B, [("ina3221:GPU", "gain", EffectKind.B, 0.01)])
    assert half_width(ratio(runs)) == pytest.approx(NORMAL_95 * 0.01 * math.sqrt(2))


def test_of_several_rails_the_difference_of_their_shares_stays():
    """A is all CPU, B half CPU and half memory: what the rails' gains do to the ratio is half of each."""
    runs = with_budget(exact(), A, [("ina3221:CPU", "gain", EffectKind.B, 0.01)])
    runs = with_budget(
        runs,
        B,
        [("ina3221:CPU", "gain", EffectKind.B, 0.005), ("ina3221:DDR", "gain", EffectKind.B, 0.005)],
    )
    assert half_width(ratio(runs)) == pytest.approx(NORMAL_95 * 0.005 * math.sqrt(2))


def test_lines_found_from_repetition_are_left_to_the_scatter_of_the_repeats():
    runs = exact()
    for place in (A, B):
        runs = with_budget(runs, place, [(RAIL, "sampling", EffectKind.A, 0.05)])
    assert half_width(ratio(runs)) == pytest.approx(0, abs=1e-12)


def test_without_a_budget_the_whole_intervals_of_both_stay():
    found = ratio(exact(budget=False))
    assert half_width(found) == pytest.approx(NORMAL_95 * math.hypot(0.015, 0.015) / math.sqrt(3))


def test_the_error_of_a_model_is_not_the_same_at_every_load():
    found = ratio(exact(gain_bound=0.6, provenance=Provenance.ESTIMATED))
    assert half_width(found) == pytest.approx(NORMAL_95 * math.hypot(0.6, 0.6) / math.sqrt(3))
    assert found.provenance is Provenance.ESTIMATED


def test_rails_of_one_source_are_late_alike_so_that_their_edges_are_added():
    runs = exact()
    for place in (A, B):
        lines = [(f"ina3221:{rail}", "edge", EffectKind.B, 0.01) for rail in ("CPU", "GPU")]
        runs = with_budget(runs, place, lines)
    assert half_width(ratio(runs)) == pytest.approx(NORMAL_95 * 0.02 * math.sqrt(2))


def test_efficiency_and_energy_have_a_budget_as_their_power_has():
    runs = exact(gain_bound=0.0, offset_bound_w=0.3)
    halves = [half_width(ratio(runs, name)) for name in (POWER, "energy_per_image_j", EFFICIENCY)]
    assert halves == pytest.approx([halves[0]] * 3)


def test_blocks_cancel_because_repeats_are_paired():
    truth = {A: (100.0, 10.0), B: (100.0, 10.0)}
    found = ratio(sweep(truth, scatter=0.001, blocks=0.2, repeats=5), RATE)
    assert found.paired is True
    assert found.repeat_count == 5
    assert half_width(found) < 0.01


def test_the_interval_of_pairs_is_students():
    runs = with_values(sweep({A: (100.0, 10.0), B: (100.0, 10.0)}), RATE, [110.0, 121.0, 133.1, 100.0, 100.0, 110.0])
    found = ratio(runs, RATE)
    logs = [math.log(1.1), math.log(1.21), math.log(1.21)]
    mean = sum(logs) / 3
    spread = math.sqrt(sum((one - mean) ** 2 for one in logs) / 2)
    assert found.value == pytest.approx(math.exp(mean))
    assert half_width(found) == pytest.approx(T_975[2] * spread / math.sqrt(3))


def test_sweeps_are_compared_without_pairs():
    """Welch's own example of degrees: equal scatter and equal counts give as many as a pooled test has."""
    one = with_values(sweep({A: (100.0, 10.0)}, sweep_id="one"), RATE, [99.0, 100.0, 101.0])
    other = with_values(sweep({A: (100.0, 10.0)}, sweep_id="other"), RATE, [99.0, 100.0, 101.0])
    found = compare(one, other, RATE)
    assert found.paired is False
    logs = [math.log(value) for value in (99.0, 100.0, 101.0)]
    mean = sum(logs) / 3
    error = math.sqrt(2 * sum((value - mean) ** 2 for value in logs) / 2 / 3)
    assert found.value == pytest.approx(1)
    assert half_width(found) == pytest.approx(T_975[4] * error)


def test_repeats_that_never_met_are_compared_without_pairs():
    runs = [
        run for run in sweep({A: (100.0, 10.0), B: (100.0, 10.0)}, repeats=6) if (run.repeat < 3) == (run.point == A)
    ]
    found = ratio(runs, RATE)
    assert found.paired is False
    assert found.low < 1 < found.high


def test_two_provenances_have_no_ratio():
    runs = sweep({A: (100.0, 10.0)}) + sweep({B: (100.0, 10.0)}, provenance=Provenance.SIMULATED)
    assert ratio(runs) is None
    assert ratio(runs, RATE) is not None


def test_a_lone_repeat_has_a_ratio_and_no_interval():
    found = ratio(sweep({A: (100.0, 10.0), B: (50.0, 10.0)}, repeats=1, scatter=0.0), RATE)
    assert found.value == pytest.approx(2)
    assert (found.low, found.high, found.level, found.differs) == (None, None, None, None)


@pytest.mark.parametrize("repeats", [1, 2])
def test_two_pairs_are_no_claim_however_alike_they_are(repeats):
    """Seen once: "beats the next best by 73.21 % ± 0.13 %", from two pairs."""
    found = ratio(sweep({A: (100.0, 10.0), B: (57.7, 10.0)}, repeats=repeats, scatter=0.0001), RATE)
    assert found.value == pytest.approx(1.733, rel=0.001)
    assert (found.low, found.high, found.level, found.differs) == (None, None, None, None)
    assert found.repeat_count == repeats


def flagged(runs, places, rule="throttled"):
    finding = Finding(rule=rule, verdict=Verdict.FLAGGED, detail="it was.")
    return [
        replace(run, verdict=Verdict.FLAGGED, findings=(finding,)) if (run.point, run.repeat) in places else run
        for run in runs
    ]


@given(st.sets(st.tuples(st.sampled_from([A, B]), st.integers(0, 5))))
def test_flagged_runs_never_narrow_an_interval(places):
    """A ratio with its flagged runs says no more than without them: the same interval, or none."""
    runs = flagged(sweep({A: (120.0, 10.0), B: (100.0, 10.0)}, repeats=6), places)
    found, without = ratio(runs, RATE), ratio([run for run in runs if run.verdict is Verdict.VALID], RATE)
    if without is None:
        assert found is None or found.low is None
    else:
        assert (found.low, found.high, found.level) == (without.low, without.high, without.level)


def test_a_finding_about_power_alone_leaves_the_times_sound():
    runs = flagged(sweep({A: (120.0, 10.0), B: (100.0, 10.0)}), {(A, 0), (B, 1)}, rule="power-gap")
    assert ratio(runs, RATE).low > 1
    assert ratio(runs, POWER).low is None


@pytest.mark.parametrize("value", [0.0, -1.0])
def test_what_is_not_above_zero_has_no_ratio(value):
    runs = with_values(sweep({A: (100.0, 10.0), B: (50.0, 10.0)}), POWER, [1.0, value, 1.0, 1.0, 1.0, 1.0])
    assert ratio(runs) is None


def test_no_runs_have_no_ratio():
    assert compare([], [], POWER) is None


@given(
    st.lists(st.floats(1e-3, 1e3), min_size=6, max_size=6),
    st.floats(0.01, 100),
)
def test_the_other_way_round_it_is_the_inverse_and_scale_does_not_count(values, scale):
    runs = with_values(sweep({A: (100.0, 10.0), B: (50.0, 10.0)}), RATE, values)
    found, back = ratio(runs, RATE), ratio([replace(run, point=B if run.point == A else A) for run in runs], RATE)
    assert found.value * back.value == pytest.approx(1)
    assert found.low * back.high == pytest.approx(1)
    assert found.differs == back.differs
    scaled = ratio(with_values(runs, RATE, [scale * value for value in values]), RATE)
    assert scaled.value == pytest.approx(found.value)
    assert scaled.low == pytest.approx(found.low, rel=1e-6)


@given(st.integers(3, 8), st.floats(0, 0.3), st.floats(0, 0.2), st.floats(0.3, 3), st.integers(0, 10**6))
def test_the_level_says_the_same_as_the_interval(repeats, scatter, offset, speed, seed):
    runs = sweep(
        {A: (100.0 * speed, 10.0), B: (100.0, 20.0)},
        repeats=repeats,
        scatter=scatter,
        offset_bound_w=10 * offset,
        seed=seed,
    )
    found = ratio(runs, EFFICIENCY)
    if found is None:  # so much scatter that a rate fell to 0 or below
        return
    assert found.low <= found.value <= found.high
    if abs(found.level - 0.05) > 1e-6:
        assert found.differs == (found.level < 0.05)


@pytest.mark.parametrize("values", [(1e-300, 1e300), (1e300, 1e-300), (5e-324, 1.0)])
def test_the_furthest_figures_have_a_finite_ratio(values):
    runs = with_values(sweep({A: (1.0, 1.0), B: (1.0, 1.0)}), RATE, [values[0]] * 3 + [values[1]] * 3)
    found = ratio(runs, RATE)
    assert all(math.isfinite(value) and value > 0 for value in (found.low, found.value, found.high))


def test_a_margin_says_how_much_more_or_how_much_less():
    runs = sweep({A: (125.0, 10.0), B: (100.0, 10.0)}, scatter=0.0)
    assert margin(ratio(runs, RATE)) == pytest.approx((0.25, 0.25, 0.25))
    assert margin(ratio(runs, "latency_p50_ms")) == pytest.approx((0.2, 0.2, 0.2))


def test_holms_procedure_stops_at_the_first_claim_that_fails():
    assert holm([0.01, 0.04, 0.03, 0.005]) == (True, False, False, True)
    assert holm([0.02, None]) == (True, False)
    assert holm([]) == ()


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_lies_between_bonferroni_and_no_correction(levels):
    for level, made in zip(levels, holm(levels), strict=True):
        assert not made or level <= 0.05
        assert made or level > 0.05 / len(levels)


def claims(truth, count, repeats=3, **changes):
    """Return in how many of so many sweeps a difference in efficiency is claimed."""
    found = [ratio(sweep(truth, repeats=repeats, seed=seed, **changes), EFFICIENCY) for seed in range(count)]
    return sum(one.differs for one in found) / count


EQUAL = {A: (100.0, 10.0), B: (100.0, 10.0)}


@pytest.mark.parametrize("repeats", [3, *(pytest.param(count, marks=pytest.mark.campaign) for count in (5, 10))])
@pytest.mark.parametrize("changes", [{"blocks": 0.0}, {"blocks": 0.1}, {"gain": 0.015}, {"budget": False}])
def test_a_against_a_is_told_apart_in_no_more_than_one_sweep_in_twenty(repeats, changes):
    """The binomial scatter of 1000 sweeps is 0.7 %, so that 7.2 % would be more than chance."""
    assert claims(EQUAL, 1000, repeats, **changes) < 0.072


@pytest.mark.parametrize("offset_w", [-0.3, 0.3])
def test_equal_efficiency_at_different_watts_is_told_apart_no_more_often_under_the_greatest_offset(offset_w):
    """The sensor's error is a bound here, and not a draw from its rectangle: the worst case."""
    truth = {A: (100.0, 10.0), B: (200.0, 20.0)}
    assert claims(truth, 1000, offset_w=offset_w, offset_bound_w=0.3) < 0.072


def test_differences_of_ten_percent_are_mostly_found():
    truth = {A: (110.0, 10.0), B: (100.0, 10.0)}
    assert claims(truth, 300, gain=0.015) > 0.75
    assert claims(truth, 300, repeats=5, gain=0.015) > 0.97
    assert claims(truth, 300, repeats=5, scatter=0.02, blocks=0.1) > 0.85
    assert claims(truth, 300, repeats=5, budget=False) > 0.95
