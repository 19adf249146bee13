"""The budget of a point, and budgets as people read them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.budget import LEAST_PERCENT, RULE, SHOWN, effect_in_words, limit, rows_by_rail, rows_by_source
from powerlab.analysis.summary import combine, summarise, typical_figure
from powerlab.domain.budget import REPEATS, TOGETHER, half_width, interval, of_metric
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind, Finding, Run, Verdict
from powerlab.domain.statistics import NORMAL_95, mean_half_width

RAILS = ("ina3221:CPU", "ina3221:GPU", "rapl:package-0")
FLAG = Finding(rule="background-load", verdict=Verdict.FLAGGED, detail="others used 30% of the machine")


def line(uncertainty: float, origin: str = RAILS[0], effect: str = "offset", metric: str = "power_w") -> Contribution:
    return Contribution(
        metric=metric, origin=origin, effect=effect, kind=EffectKind.B, standard_uncertainty=uncertainty
    )


def budgeted(run: Run, uncertainty_w: float) -> Run:
    """Return a run whose power has that standard uncertainty, half of it gain, and the interval that follows."""
    lines = (line(0.6 * uncertainty_w, effect="gain"), line(0.8 * uncertainty_w))
    low, high = interval("power_w", run.metric("power_w").value, half_width(lines))
    metrics = tuple(
        replace(metric, low=low, high=high) if metric.name == "power_w" else metric for metric in run.metrics
    )
    return replace(run, metrics=metrics, budget=lines)


@given(
    powers=st.lists(st.floats(5, 50), min_size=2, max_size=7),
    uncertainties=st.lists(st.floats(0.01, 0.5), min_size=7, max_size=7),
)
def test_a_points_table_makes_its_interval(make_run, powers, uncertainties):
    runs = [budgeted(make_run(power_w=power), size) for power, size in zip(powers, uncertainties, strict=False)]
    (point,) = summarise(runs)
    metric = point.metric("power_w")
    low, high = interval("power_w", metric.value, half_width(of_metric(point.budget, "power_w")))
    assert (metric.low, metric.high) == (pytest.approx(low), pytest.approx(high))
    between = mean_half_width(powers)
    scatters = [one.standard_uncertainty for one in point.budget if one.origin == REPEATS]
    assert scatters == ([pytest.approx(between / NORMAL_95)] if between else [])


def test_a_points_systematic_part_is_the_typical_runs(make_run):
    runs = [budgeted(make_run(power_w=10.0), size) for size in (0.1, 0.5, 0.2)]
    (point,) = summarise(runs)
    assert point.budget == runs[2].budget, "the median, and repeats without scatter have no line"


def test_of_two_runs_the_less_certain_one_is_typical(make_run):
    runs = [budgeted(make_run(power_w=power), size) for power, size in ((10.0, 0.1), (11.0, 0.5))]
    (point,) = summarise(runs)
    assert point.budget[:2] == runs[1].budget
    assert point.budget[2].kind is EffectKind.A


def test_a_single_repeat_has_a_budget_and_no_interval(make_run):
    (point,) = summarise([budgeted(make_run(), 0.3)])
    assert point.metric("power_w").low is None
    assert {one.effect for one in point.budget} == {"gain", "offset"}


def test_only_usable_runs_count(make_run):
    flagged = budgeted(make_run(findings=(FLAG,)), 3.0)
    (point,) = summarise([budgeted(make_run(), 0.1), budgeted(make_run(), 0.1), flagged])
    assert max(one.standard_uncertainty for one in point.budget) < 1


def test_runs_without_a_budget_have_their_intervals_as_before(make_run):
    (point,) = summarise([make_run(power_w=power, spread=0.05) for power in (9.0, 10.0, 11.0)])
    between = mean_half_width([9.0, 10.0, 11.0])
    assert point.budget == ()
    assert point.metric("power_w").high == pytest.approx(10 + math.hypot(between, 0.5))


def test_an_inverse_keeps_its_two_sides():
    figures = [
        Metric(name="efficiency_img_per_s_per_w", value=2.0, low=1.5, high=3.0, provenance=Provenance.MEASURED)
        for _ in range(3)
    ]
    lines = [line(0.3, metric="efficiency_img_per_s_per_w")]
    made = combine(figures, lines)
    assert (made.low, made.high) == (1.5, 3.0)


def test_figures_without_intervals_have_no_typical_one():
    bare = Metric(name="power_w", value=2.0, provenance=Provenance.MEASURED)
    assert typical_figure([bare, bare]) is None
    assert typical_figure([]) is None


SIZES = st.floats(1e-6, 1e3)
LINES = st.lists(
    st.builds(
        line,
        SIZES,
        st.sampled_from((*RAILS, "idle", "repeats")),
        st.sampled_from(("gain", "edge", "offset", "idle offset", "gap")),
        st.sampled_from((*SHOWN, "efficiency_img_per_s_per_w")),
    ),
    min_size=1,
    max_size=30,
)


@given(lines=LINES)
def test_tables_leave_out_small_shares_alone(lines):
    for rows in (rows_by_rail(lines), rows_by_source(lines)):
        for metric in SHOWN:
            percents = [row.cells[metric].percent for row in rows if metric in row.cells]
            expected = 100 if any(one.metric == metric for one in lines) else 0
            assert math.fsum(percents) == pytest.approx(expected, abs=LEAST_PERCENT * 30)
            assert all(percent >= LEAST_PERCENT for percent in percents)
        most = [row.most_percent for row in rows]
        assert most == sorted(most, reverse=True)
        assert all(row.cells for row in rows)


def test_rails_of_a_source_are_put_together_and_named():
    lines = [line(3.0), line(4.0, RAILS[1]), line(5.0, RAILS[2])]
    found = {row.origin: row.cells["power_w"] for row in rows_by_source(lines)}
    assert {origin: cell.standard_uncertainty for origin, cell in found.items()} == pytest.approx(
        {"ina3221, 2 rails": 5.0, "rapl:package-0": 5.0}
    )
    assert [row.origin for row in rows_by_rail(lines)] == [RAILS[2], RAILS[1], RAILS[0]]


def test_one_row_holds_an_effect_in_every_figure():
    lines = [line(1.0), line(0.1, metric="energy_per_image_j"), line(2.0, effect="gain")]
    by_effect = {row.effect: row for row in rows_by_rail(lines)}
    assert set(by_effect["sensor offset"].cells) == {"power_w", "energy_per_image_j"}
    assert set(by_effect["sensor gain"].cells) == {"power_w"}
    assert by_effect["sensor offset"].cells["energy_per_image_j"].percent == pytest.approx(100)


def test_effects_have_words_and_new_ones_speak_for_themselves():
    assert effect_in_words("gain") == "sensor gain"
    assert effect_in_words("idle gain") == "sensor gain, idle"
    assert effect_in_words("moonlight") == "moonlight"
    assert all(effect_in_words(effect) != effect for effect in TOGETHER)


def test_a_sentence_names_the_largest_contribution_and_adds_the_rails_of_a_source():
    lines = [line(3.0, effect="gain"), line(3.0, RAILS[1], "gain"), line(4.0, RAILS[2], "rounding")]
    assert limit(lines, "power_w") == (
        "Power while running: main uncertainty: sensor gain (ina3221, 2 rails, 69 % of the variance)."
    )


@pytest.mark.parametrize(("origin", "effect"), [("repeats", "scatter"), ("idle", "drift")])
def test_what_is_no_rails_goes_without_an_origin(origin, effect):
    assert f"{effect_in_words(effect)} (100 % of" in limit([line(1.0, origin, effect)], "power_w")


def test_without_a_budget_nothing_is_said():
    assert limit([], "power_w") == ""
    assert limit([line(1.0)], "idle_power_w") == ""
    assert rows_by_source([]) == rows_by_rail([]) == ()


def test_the_table_shows_figures_there_are_and_says_the_rule():
    assert set(SHOWN) <= set(METRICS)
    assert all(effect in RULE for effect in TOGETHER)
