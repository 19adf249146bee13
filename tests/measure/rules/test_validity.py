"""Each rule fires on its evidence, states its figure, and is silent on a good run."""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.power import RailQuantity, TotalFormula
from powerlab.domain.run import Verdict
from powerlab.domain.validity import ENERGY_RULES, worst_verdict
from powerlab.measure.recording.background_load import background_limit_cores
from powerlab.measure.validity import RULES, Evidence, judge

WINDOW = (1_000_000_000, 6_000_000_000)


@pytest.fixture
def good(make_trace, make_rail) -> Evidence:
    rail = make_rail("VDD_IN")
    return Evidence(
        window_ns=WINDOW,
        inference_count=200,
        total=TotalFormula(rails=(rail.key,), scope="all"),
        traces=(make_trace(np.arange(0, 7, 0.01), np.full(700, 12.0), rail),),
        sample_period_s=0.01,
        background_cores=0.01,
    )


def found(evidence: Evidence) -> dict[str, tuple[Verdict, str]]:
    return {finding.rule: (finding.verdict, finding.detail) for finding in judge(evidence)}


def test_a_good_run_is_valid(good):
    assert judge(good) == ()
    assert worst_verdict(judge(good)) is Verdict.VALID


def test_every_energy_rule_is_a_rule_that_exists():
    assert {rule.__name__.replace("_", "-") for rule in RULES} >= ENERGY_RULES


def test_no_source_is_void_with_a_reason(good):
    verdict, detail = found(replace(good, total=None, traces=()))["missing-power"]
    assert verdict is Verdict.VOID
    assert "no power source" in detail


def test_a_rail_without_samples_is_named(good):
    total = TotalFormula(rails=("ina3221:VDD_IN", "ina3221:GPU"), scope="two")
    verdict, detail = found(replace(good, total=total))["missing-power"]
    assert verdict is Verdict.VOID
    assert "ina3221:GPU" in detail


def test_samples_that_end_within_the_window_are_void(good, make_trace, make_rail):
    trace = make_trace(np.arange(0, 4, 0.01), np.full(400, 12.0), make_rail("VDD_IN"))
    assert "do not span" in found(replace(good, traces=(trace,)))["missing-power"][1]


def test_a_total_of_0_w_is_missing_power_but_one_idle_rail_is_not(good, make_trace, make_rail):
    times = np.arange(0, 7, 0.01)
    dead = make_trace(times, np.zeros(700), make_rail("VDD_IN"))
    assert "0 W" in found(replace(good, traces=(dead,)))["missing-power"][1]
    live = make_trace(times, np.full(700, 3.0), make_rail("GPU"))
    both = TotalFormula(rails=("ina3221:VDD_IN", "ina3221:GPU"), scope="two")
    assert found(replace(good, total=both, traces=(dead, live))) == {}


def test_a_counter_that_stands_still_is_missing_power(good, make_trace, make_rail):
    rail = make_rail(quantity=RailQuantity.ENERGY)
    trace = make_trace(np.arange(0, 7, 0.01), np.full(700, 55.0), rail)
    evidence = replace(good, total=TotalFormula(rails=(rail.key,), scope="all"), traces=(trace,))
    assert "did not move" in found(evidence)["missing-power"][1]


@pytest.mark.parametrize(("update_s", "verdict"), [(0.01, None), (0.3, Verdict.FLAGGED), (2.0, Verdict.VOID)])
def test_a_window_of_few_updates_is_judged_with_the_figure(good, make_trace, make_rail, update_s, verdict):
    rail = make_rail("VDD_IN", update_period_s=update_s)
    judged = found(replace(good, traces=(replace(good.traces[0], rail=rail),))).get("window-too-short")
    assert (judged and judged[0]) == verdict
    assert judged is None or f"only {int(5 / update_s)} times in the window of 5.00 s" in judged[1]


@pytest.mark.parametrize(("gap_s", "verdict"), [(0.05, None), (0.3, Verdict.FLAGGED), (1.0, Verdict.VOID)])
def test_a_hole_in_the_samples_is_judged_with_the_figure(good, make_trace, make_rail, gap_s, verdict):
    times = np.arange(0, 7, 0.01)
    times = times[(times <= 3) | (times >= 3 + gap_s - 1e-9)]
    trace = make_trace(times, np.full(times.size, 12.0), make_rail("VDD_IN"))
    judged = found(replace(good, traces=(trace,))).get("power-gap")
    assert (judged and judged[0]) == verdict
    assert judged is None or f"{gap_s:.2f} s" in judged[1]


def test_a_hole_outside_the_window_or_in_a_counter_does_not_matter(good, make_trace, make_rail):
    times = np.arange(0, 7, 0.01)
    before = times[(times <= 0.1) | (times >= 0.9)]
    trace = make_trace(before, np.full(before.size, 12.0), make_rail("VDD_IN"))
    assert found(replace(good, traces=(trace,))) == {}
    rail = make_rail(quantity=RailQuantity.ENERGY)
    holed = times[(times <= 2) | (times >= 4)]
    counter = make_trace(holed, 12 * holed, rail)
    assert found(replace(good, total=TotalFormula(rails=(rail.key,), scope="all"), traces=(counter,))) == {}


def test_a_drifted_mode_is_void(good):
    assert found(replace(good, drift="cpu0 went from 1200000 to 800000 kHz"))["mode-drift"][0] is Verdict.VOID


@pytest.mark.parametrize(
    ("cores", "machine", "fires"),
    [(None, 2, False), (0.15, 2, False), (0.4, 2, True), (0.4, 8, False), (0.6, 8, True), (0.6, 128, True)],
)
def test_background_load_is_flagged_with_its_figure(good, monkeypatch, cores, machine, fires):
    """10 % of a small machine; on a large one half a core is much beside a few threads."""
    monkeypatch.setattr(os, "cpu_count", lambda: machine)
    limit = background_limit_cores()
    for field in ("background_cores", "idle_background_cores"):
        judged = found(replace(good, background_limit_cores=limit, **{field: cores})).get("background-load")
        assert (judged is not None) == fires
        assert judged is None or (judged[0] is Verdict.FLAGGED and f"kept {cores} cores busy" in judged[1])
        assert judged is None or ("idle" in judged[1]) == (field == "idle_background_cores")


def test_a_suspension_makes_power_void_and_leaves_latency(good):
    assert found(replace(good, suspended_s=0.001)) == {}
    verdict, detail = found(replace(good, suspended_s=31.4))["suspended"]
    assert verdict is Verdict.VOID
    assert "31.4 s" in detail
    assert "suspended" in ENERGY_RULES


def test_power_only_beside_the_window_is_missing_power(good, make_trace, make_rail):
    """Neither a counter that moves in the margin alone nor a rail that reads 0 W inside may lead to J/img of 0."""
    times = np.arange(0, 7, 0.01)
    rail = make_rail("VDD_IN", RailQuantity.ENERGY)
    total = TotalFormula(rails=(rail.key,), scope="all")
    counter = make_trace(times, np.where(times < 0.5, 1.0, 2.0), rail)
    assert "0 J" in found(replace(good, total=total, traces=(counter,)))["missing-power"][1]
    dead = make_trace(times, np.where(times < 0.5, 12.0, 0.0), make_rail("VDD_IN"))
    assert "0 J" in found(replace(good, traces=(dead,)))["missing-power"][1]
    backwards = make_trace(times, np.full(700, -3.0), make_rail("VDD_IN"))
    assert "-15 J" in found(replace(good, traces=(backwards,)))["missing-power"][1]


def test_a_handful_of_inferences_is_flagged(good):
    verdict, detail = found(replace(good, inference_count=4))["too-few-samples"]
    assert verdict is Verdict.FLAGGED
    assert "only 4" in detail
