"""What a sweep says beforehand about times that are too short for its sensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import Rail, RailQuantity, TotalFormula, Trace
from powerlab.domain.quantity import Provenance
from powerlab.domain.sweep import SweepPlan
from powerlab.measure.recording.rails import Meter
from powerlab.measure.validity import Evidence, window_too_short
from powerlab.power.sources.estimate import Estimate
from powerlab.sweep.advice import advice
from powerlab.sysroot import Sysroot
from zone_tree import ZoneTree

PLAN = SweepPlan(models=("m",), threads=(1,))


def meter_of(*periods_s: float, sample_period_s: float = 0.01) -> Meter:
    rails = tuple(
        Rail(
            source="ipmi",
            name=f"rail {period_s:g}",
            quantity=RailQuantity.POWER,
            resolution=1.0,
            relative_error=0.1,
            update_period_s=period_s,
            provenance=Provenance.MEASURED,
        )
        for period_s in periods_s
    )
    total = TotalFormula(rails=tuple(rail.key for rail in rails), scope="s")
    return Meter(sysroot=Sysroot(), total=total, rails=rails, sample_period_s=sample_period_s)


def test_a_sensor_of_one_second_makes_the_default_plan_flagged_and_its_idle_power_missing():
    assert advice(PLAN, meter_of(0.001, 1.0)) == (
        "ipmi:rail 1 has a new value every 1 s and 20 of them are wanted: runs of 5 s will be flagged as too short and "
        "an idle baseline of 2 s will give no idle power; ask for at least 21 s."
    )


def test_what_is_long_enough_is_not_mentioned():
    assert advice(replace(PLAN, duration_s=30.0), meter_of(0.5)) == (
        "ipmi:rail 0.5 has a new value every 0.5 s and 20 of them are wanted: an idle baseline of 2 s will give no "
        "idle power; ask for at least 10.5 s."
    )
    assert "idle" not in advice(replace(PLAN, idle_s=0.0), meter_of(1.0))
    assert "have no power figures" in advice(replace(PLAN, duration_s=2.0), meter_of(1.0))


def test_nothing_is_said_where_all_is_well_or_nothing_is_measured():
    assert not advice(PLAN, meter_of(0.001, 0.1))
    assert not advice(PLAN, replace(meter_of(), total=None))


def test_the_default_plan_is_long_enough_for_the_estimate():
    (rail,) = Estimate().probe(Sysroot()).rails
    assert not advice(PLAN, replace(meter_of(1.0), rails=(rail,)))


def test_a_cool_down_that_no_zone_can_guide_is_said_beforehand(tmp_path):
    wanted = replace(PLAN, cool_down_s=60.0)
    without = replace(meter_of(0.001), sysroot=Sysroot(tmp_path / "bare"))
    assert advice(wanted, without) == (
        "No thermal zone can be read here, so no run waits until the device is as cool as it was at the first one."
    )
    assert not advice(PLAN, without)
    assert not advice(wanted, replace(without, sysroot=ZoneTree(tmp_path, ("CPU-therm", "40000")).sysroot))


def test_slow_sampling_counts_like_a_slow_sensor():
    assert "every 0.5 s" in advice(PLAN, meter_of(0.0, sample_period_s=0.5))


@given(
    periods_s=st.lists(st.sampled_from([0.0, 0.001, 0.05, 0.1, 0.3, 1.0, 7.0]), min_size=1, max_size=4),
    sample_period_s=st.sampled_from([0.001, 0.01, 0.2]),
)
def test_who_follows_the_advice_is_neither_advised_again_nor_flagged(periods_s, sample_period_s):
    meter = meter_of(*periods_s, sample_period_s=sample_period_s)
    sentence = advice(replace(PLAN, duration_s=0.001, idle_s=0.001), meter)
    seconds = float(sentence.rpartition("at least ")[2].removesuffix(" s."))
    assert not advice(replace(PLAN, duration_s=seconds, idle_s=seconds), meter)
    traces = []
    for rail in meter.rails:
        apart_s = max(rail.update_period_s, sample_period_s)
        times = np.arange(0.5 * apart_s, seconds + apart_s, apart_s)
        traces.append(Trace(rail=rail, time_ns=np.round(times * 1e9).astype(np.int64), value=np.ones(times.size)))
    evidence = Evidence(
        window_ns=(0, round(seconds * 1e9)),
        inference_count=100,
        total=meter.total,
        traces=traces,
        sample_period_s=sample_period_s,
    )
    assert not list(window_too_short(evidence))


@pytest.mark.parametrize("period_s", [0.0, 0.1, 1.0, 2.5])
@pytest.mark.parametrize("duration_s", [0.3, 2.0, 5.0, 19.0, 60.0])
def test_the_sentence_foretells_what_the_rule_will_say(period_s, duration_s):
    meter = meter_of(period_s)
    times = np.arange(0.0, duration_s + 1e-9, 0.01)
    (rail,) = meter.rails
    trace = Trace(rail=rail, time_ns=np.round(times * 1e9).astype(np.int64), value=np.ones(times.size))
    evidence = Evidence(
        window_ns=(0, round(duration_s * 1e9)),
        inference_count=100,
        total=meter.total,
        traces=(trace,),
        sample_period_s=0.01,
    )
    said = [verdict for verdict, _ in window_too_short(evidence)]
    sentence = advice(replace(PLAN, duration_s=duration_s, idle_s=0.0), meter)
    assert bool(said) == bool(sentence)
    assert ("no power figures" in sentence) == (said == ["void"])
