"""Repeats put together: medians, both kinds of scatter, and never two provenances."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.analysis.summary import METHOD, MIXED_RULE, combine, summarise, typical_figure
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind, Finding, Verdict

FLAG = Finding(rule="background-load", verdict=Verdict.FLAGGED, detail="others used 30% of the machine")
NO_POWER = Finding(rule="missing-power", verdict=Verdict.VOID, detail="no power source")
DRIFT = Finding(rule="mode-drift", verdict=Verdict.VOID, detail="somebody changed the mode")
CRASH = Finding(rule="worker-failed", verdict=Verdict.FAILED, detail="killed by SIGKILL")


def figure(value: float, low: float | None = None, high: float | None = None, **changes) -> Metric:
    fields = {"name": "power_w", "provenance": Provenance.MEASURED, **changes}
    return Metric(value=value, low=low, high=high, **fields)


def test_the_figure_is_the_median_and_the_interval_is_students():
    combined = combine([figure(10.0), figure(11.0), figure(15.0)])
    deviation = math.sqrt(((10 - 12) ** 2 + (11 - 12) ** 2 + (15 - 12) ** 2) / 2)
    assert combined.value == 11
    assert combined.high - combined.value == pytest.approx(4.303 * deviation / math.sqrt(3))


def test_what_every_run_does_not_know_about_itself_does_not_shrink_with_repeats():
    combined = combine([figure(10.0, 9.5, 10.5)] * 20)
    assert (combined.low, combined.high) == (9.5, 10.5)


@given(values=st.lists(st.floats(1, 1e4), min_size=2, max_size=10), share=st.floats(0, 0.5))
def test_the_interval_holds_the_figure_and_is_no_narrower_than_either_scatter(values, share):
    inside = combine([figure(value, value * (1 - share), value * (1 + share)) for value in values])
    between = combine([figure(value) for value in values])
    assert inside.value == between.value
    assert 0 <= inside.low <= inside.value <= inside.high
    assert inside.high >= between.high - 1e-9
    assert inside.low <= between.low + 1e-9


def test_one_repeat_has_no_interval():
    assert combine([figure(10.0, 9.0, 11.0)]).low is None


def test_energy_above_idle_may_be_negative_and_nothing_else():
    above = [figure(value, name="energy_above_idle_per_image_j") for value in (0.1, -0.1, 0.0)]
    assert combine(above).low < 0
    assert combine([figure(value) for value in (0.1, 10.0, 0.2)]).low == 0


def test_points_keep_their_order_and_count_their_runs(make_run):
    runs = [make_run(threads=2), make_run(threads=1), make_run(threads=2, findings=(CRASH,)), make_run(threads=1)]
    summaries = summarise(runs)
    assert [summary.point.threads for summary in summaries] == [2, 1]
    assert [(summary.run_count, summary.valid_count) for summary in summaries] == [(2, 1), (2, 2)]
    assert summaries[0].findings == (CRASH,)


def test_valid_repeats_are_used_before_flagged_ones(make_run):
    flagged = make_run(latency_ms=99.0, findings=(FLAG,))
    assert (
        summarise([make_run(latency_ms=10.0), make_run(latency_ms=12.0), flagged])[0].metric("latency_p50_ms").value
        == 11
    )
    three = [make_run(latency_ms=latency_ms) for latency_ms in (10.0, 12.0, 13.0)]
    assert summarise([*three, flagged])[0].metric("latency_p50_ms").value == 12


def test_one_valid_repeat_is_joined_by_the_flagged_ones_because_it_has_no_scatter(make_run):
    runs = [make_run(latency_ms=10.0), make_run(latency_ms=11.0, findings=(FLAG,)), make_run(findings=(CRASH,))]
    summary = summarise(runs)[0]
    assert summary.metric("latency_p50_ms").value == 10.5
    assert summary.metric("latency_p50_ms").low is not None
    assert summary.valid_count == 1


def test_without_valid_repeats_the_flagged_ones_are_shown_and_say_so(make_run):
    summary = summarise([make_run(latency_ms=20.0, findings=(FLAG,)) for _ in range(3)])[0]
    assert summary.metric("latency_p50_ms").value == 20
    assert summary.valid_count == 0
    assert summary.findings == (FLAG,)


def test_runs_void_for_energy_alone_still_show_their_latency(make_run):
    summary = summarise([make_run(power_w=None, findings=(NO_POWER,)) for _ in range(3)])[0]
    assert summary.metric("latency_p50_ms").value == 10
    assert summary.metric("power_w") is None
    assert summary.metric("efficiency_img_per_s_per_w") is None


def test_a_flag_beside_a_missing_power_does_not_take_the_latency_away(make_run):
    summary = summarise([make_run(power_w=None, findings=(FLAG, NO_POWER)) for _ in range(3)])[0]
    assert summary.metric("latency_p50_ms").value == 10


def test_failed_runs_show_nothing(make_run):
    assert summarise([make_run(findings=(CRASH,)) for _ in range(3)])[0].metrics == ()


def test_both_sides_of_a_lopsided_interval_stay():
    combined = combine([figure(10.0, 4.0, 26.0)] * 3)
    assert (combined.low, combined.high) == (4.0, 26.0)


def test_the_typical_figure_has_the_interval_of_median_width():
    wide, narrow, middle = figure(3.0, 0.0, 6.0), figure(11.0, 10.0, 12.0), figure(22.0, 20.0, 24.0)
    assert typical_figure([wide, narrow, middle]) is middle
    assert typical_figure([wide, narrow]) is wide
    assert typical_figure([figure(1.0, low=0.5), figure(2.0, high=3.0)]) is None


def test_runs_in_a_mode_that_drifted_show_nothing(make_run):
    summary = summarise([make_run(findings=(DRIFT,)) for _ in range(3)])[0]
    assert summary.metrics == ()
    assert summary.findings == (DRIFT,)


def test_figures_of_different_provenance_are_never_put_together(make_run):
    runs = [make_run(), make_run(), make_run(provenance=Provenance.ESTIMATED)]
    summary = summarise(runs)[0]
    assert summary.metric("power_w") is None
    assert summary.metric("efficiency_img_per_s_per_w") is None
    assert summary.metric("latency_p50_ms") is not None
    assert any(
        finding.rule == MIXED_RULE and "estimated and measured" in finding.detail for finding in summary.findings
    )


@pytest.mark.parametrize("provenance", list(Provenance))
def test_the_provenance_travels_into_the_summary(make_run, provenance):
    summary = summarise([make_run(provenance=provenance) for _ in range(3)])[0]
    assert summary.metric("power_w").provenance is provenance
    assert summary.metric("latency_p50_ms").provenance is Provenance.MEASURED


SAID = {2: "791c9e7a688b9788"}
"""By method, what summaries of the runs below say. Where they now say something else on purpose, raise METHOD."""


def test_one_method_always_says_the_same(make_run):
    lines = tuple(
        Contribution(metric="power_w", origin=origin, effect="gain", kind=EffectKind.B, standard_uncertainty=size)
        for origin, size in (("ina3221:VDD_GPU", 0.1), ("idle", 0.05))
    )
    measured = [replace(make_run(power_w=watts), budget=lines) for watts in (10.0, 10.5, 11.5)]
    others = [
        *(make_run(threads=2, latency_ms=latency, provenance=Provenance.ESTIMATED) for latency in (20.0, 21.0)),
        *(make_run(threads=3, findings=(finding,)) for finding in (FLAG, DRIFT, CRASH)),
        *(make_run(threads=4, power_w=None, findings=(NO_POWER,)) for _ in range(3)),
        *(make_run(threads=5, provenance=provenance) for provenance in Provenance),
    ]
    said = repr(_rounded(msgspec.to_builtins(summarise([*measured, *others]))))
    assert hashlib.sha256(said.encode()).hexdigest()[:16] == SAID[METHOD]


def _rounded(said):
    """Return plain words with their floats to ten digits: the last ones are each mathematical library's own."""
    if isinstance(said, dict):
        return {name: _rounded(value) for name, value in said.items()}
    if isinstance(said, list | tuple):
        return [_rounded(value) for value in said]
    return f"{said:.10g}" if isinstance(said, float) else said


def test_no_runs_give_no_summaries(make_run):
    assert summarise([]) == ()
    failed = replace(make_run(findings=(CRASH,)), metrics=())
    assert summarise([failed])[0].metrics == ()
