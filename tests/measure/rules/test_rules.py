"""Each rule fires on its own evidence with its figure, is silent on a good run, and no faulty recording passes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.accuracy import OutputAccuracy
from powerlab.domain.power import CARDS_ALONE, TOO_LOW, WITHOUT_CARDS, Part, Rail, RailQuantity, TotalFormula, Trace
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.domain.validity import ENERGY_RULES
from powerlab.domain.workload import Processor, Scenario, Workload
from powerlab.measure.energy import budget
from powerlab.measure.energy.total import TotalEnergy
from powerlab.measure.evidence import Evidence
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.rules.registry import RULES
from powerlab.measure.rules.stalled import stalled_s
from powerlab.measure.rules.too_few_samples import queries_wanted
from powerlab.measure.validity import judge

SECOND = 1_000_000_000
WINDOW = (1 * SECOND, 6 * SECOND)
time_s = np.arange(0, 7, 0.01)
inside = (time_s >= 1) & (time_s <= 6)


def idle(power_w: float, unsure_w: float = 0.0) -> TotalEnergy:
    part = budget.Part(origin="ina3221:VDD_IN", effect="sampling", standard_uncertainty=2 * unsure_w)
    return TotalEnergy(energy_j=2 * power_w, duration_s=2.0, parts=(part,), provenance=Provenance.MEASURED)


@pytest.fixture
def good(make_trace, make_rail) -> Evidence:
    """Five seconds at about 12 W, read a hundred times a second, between baselines of 4 W."""
    rail = make_rail("VDD_IN", resolution=0.04, offset=0.08)
    value = 12.0 + np.random.default_rng(0).normal(0, 0.3, time_s.size)
    return Evidence(
        window_ns=WINDOW,
        inference_count=200,
        total=TotalFormula(rails=(rail.key,), scope="all"),
        traces=(make_trace(time_s, value, rail),),
        sample_period_s=0.01,
        background_cores=0.01,
        idle_s=2.0,
        idle_before=idle(4.0),
        idle_after=idle(4.1),
        sampling_core_share=0.01,
        workload=Workload(model="resnet50", batch_size=1),
    )


def read(evidence: Evidence, value: np.ndarray) -> Evidence:
    """The same with other readings."""
    return replace(evidence, traces=(replace(evidence.traces[0], value=value.astype(float)),))


def counted(evidence: Evidence, value: np.ndarray, step_j: float = 1e-4) -> Evidence:
    """The same with an energy counter."""
    rail = replace(evidence.traces[0].rail, source="rapl", quantity=RailQuantity.ENERGY, resolution=step_j)
    trace = replace(evidence.traces[0], rail=rail, value=value.astype(float))
    return replace(evidence, traces=(trace,), total=TotalFormula(rails=(rail.key,), scope="all"))


def found(evidence: Evidence) -> dict[str, tuple[Verdict, str]]:
    return {finding.rule: (finding.verdict, finding.detail) for finding in judge(evidence)}


def test_a_good_run_is_valid_with_a_counter_too(good):
    assert judge(good) == ()
    assert judge(counted(good, 12 * time_s)) == ()


def test_every_rule_has_a_name_of_its_own_and_says_why_it_is_there():
    assert len({rule.__name__ for rule in RULES}) == len(RULES)
    assert all(rule.__doc__ for rule in RULES)


@pytest.mark.parametrize(
    ("change", "rule", "words"),
    [
        ({"clock_jump_s": 3600.0}, "clock-jump", "set forward by 3.6e+03 s"),
        ({"clock_jump_s": -0.2}, "clock-jump", "set back by 0.2 s"),
        ({"sampling_core_share": 0.09}, "sampling-load", "9.0%"),
        ({"unsteady": ("latency still fell",)}, "unsteady", "latency still fell"),
        ({"idle_before": None, "idle_after": None}, "missing-idle", "2 s"),
        ({"idle_after": idle(6.0)}, "idle-drift", "4 W before the run and 6 W after it, 40%"),
        ({"stalled_s": 0.5}, "stalled", "0.5 s longer than is usual, 10%"),
        ({"total": TotalFormula(rails=("ina3221:VDD_IN",), scope=f"x; {TOO_LOW} y")}, "incomplete-total", TOO_LOW),
    ],
)
def test_a_rule_flags_its_own_evidence_with_the_figure(good, change, rule, words):
    ((name, (verdict, detail)),) = found(replace(good, **change)).items()
    assert (name, verdict) == (rule, Verdict.FLAGGED)
    assert words in detail


@pytest.mark.parametrize(
    "change",
    [
        {"clock_jump_s": 0.01},
        {"sampling_core_share": 0.04},
        {"sampling_core_share": None},
        {"idle_after": None},
        {"idle_before": None, "idle_after": None, "idle_s": 0.0},
        {"idle_after": idle(4.3)},
        {"idle_before": idle(4.0, 0.6), "idle_after": idle(5.0, 0.6)},
        {"stalled_s": 0.05},
    ],
)
def test_what_is_within_the_limits_is_no_finding(good, change):
    assert found(replace(good, **change)) == {}


def test_idle_power_is_not_missed_where_there_is_no_power_at_all(good):
    without = replace(good, total=None, traces=(), idle_before=None, idle_after=None)
    assert set(found(without)) == {"missing-power"}


@pytest.mark.parametrize(
    ("scenario", "wanted"),
    [
        (Scenario.SINGLE_STREAM, 10),
        (Scenario.MULTI_STREAM, 100),
        (Scenario.SERVER, 100),
        (Scenario.OFFLINE, 10),
    ],
)
def test_a_scenario_wants_enough_queries_for_the_percentile_it_is_judged_by(good, scenario, wanted):
    """With fewer, the percentile by nearest rank is the slowest query of all."""
    assert queries_wanted(scenario) == wanted
    workload = Workload(model="resnet50", batch_size=1, scenario=scenario)
    assert "too-few-samples" not in found(replace(good, workload=workload, inference_count=wanted))
    verdict, detail = found(replace(good, workload=workload, inference_count=wanted - 1))["too-few-samples"]
    assert verdict is Verdict.FLAGGED
    assert f"only {wanted - 1} queries were timed ({wanted} are wanted" in detail


@pytest.mark.parametrize(
    ("sqnr_db", "least_db", "flagged"), [(25.0, 20.0, False), (12.3, 20.0, True), (12.3, 10.0, False)]
)
def test_a_low_precision_below_what_the_plan_asks_for_is_flagged(good, sqnr_db, least_db, flagged):
    accuracy = OutputAccuracy(images=64, sqnr_db=sqnr_db, least_sqnr_db=least_db)
    judged = found(replace(good, output_accuracy=accuracy)).get("inaccurate")
    if flagged:
        assert judged is not None
        assert judged[0] is Verdict.FLAGGED
        assert "12.3 dB beside fp32, below the 20 dB" in judged[1]
    else:
        assert judged is None


@pytest.mark.parametrize(("p99_ms", "fires"), [(14.9, False), (15.0, False), (15.1, True), (None, False)])
def test_a_server_that_answers_too_late_is_flagged(good, p99_ms, fires):
    workload = Workload(model="resnet50", batch_size=1, scenario=Scenario.SERVER, latency_bound_ms=15.0)
    judged = found(replace(good, workload=workload, latency_p99_ms=p99_ms)).get("latency-bound")
    assert (judged is not None) == fires
    assert judged is None or "15.1 ms, above the bound of 15 ms" in judged[1]


def test_no_bound_is_asked_of_other_scenarios(good):
    assert found(replace(good, latency_p99_ms=1e6)) == {}


def zone(values: np.ndarray, name: str = "CPU-therm") -> Trace:
    rail = Rail(
        source="thermal",
        name=name,
        quantity=RailQuantity.TEMPERATURE,
        resolution=0.0,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=Provenance.MEASURED,
    )
    seconds = np.linspace(0, 7, values.size)
    return Trace(rail=rail, time_ns=np.round(seconds * 1e9).astype(np.int64), value=values.astype(float))


@pytest.mark.parametrize(
    ("values", "fires"),
    [
        (np.linspace(40, 44, 8), False),
        (np.linspace(40, 50, 8), True),
        (np.linspace(60, 48, 8), True),
        (np.array([20.0, 45, 45, 45, 45, 45, 45, 20]), False),
        (np.array([40.0]), False),
    ],
)
def test_a_window_in_which_the_device_grew_warmer_is_flagged(good, values, fires):
    judged = found(replace(good, traces=(*good.traces, zone(values)))).get("unsteady-temperature")
    assert (judged is not None) == fires
    assert judged is None or (judged[0] is Verdict.FLAGGED and "CPU-therm went from" in judged[1])


def test_a_reading_that_is_no_number_is_missing_power(good):
    values = good.traces[0].value.copy()
    values[300] = np.nan
    assert "no numbers" in found(read(good, values))["missing-power"][1]


@pytest.mark.parametrize(("share", "verdict"), [(0.01, None), (0.05, Verdict.FLAGGED), (0.3, Verdict.VOID)])
def test_a_sensor_that_is_connected_the_wrong_way_round_is_judged_by_its_share(good, share, verdict):
    values = good.traces[0].value.copy()
    values[(time_s >= 2) & (time_s < 2 + 5 * share)] *= -1
    judged = found(read(good, values)).get("negative-power")
    assert (judged and judged[0]) == verdict


def test_a_rail_that_flickers_around_0_w_is_no_negative_power(good, make_rail):
    rail = make_rail("CV")
    flicker = replace(good.traces[0], rail=rail, value=np.random.default_rng(1).normal(0, 0.03, time_s.size))
    total = TotalFormula(rails=(*good.total.rails, rail.key), scope="all")
    assert found(replace(good, total=total, traces=(*good.traces, flicker))) == {}


def test_a_counter_that_went_back_is_void(good):
    values = 12 * time_s
    values[time_s > 3] -= 30
    assert found(counted(good, values))["negative-power"][0] is Verdict.VOID


@pytest.mark.parametrize("times", [4, 50, 1000])
def test_one_reading_far_above_all_others_is_flagged(good, times):
    values = good.traces[0].value.copy()
    values[350] *= times
    verdict, detail = found(read(good, values))["implausible-power"]
    assert verdict is Verdict.FLAGGED
    assert "one reading of ina3221:VDD_IN" in detail


def test_a_counter_that_leaps_is_flagged(good):
    values = 12 * time_s
    values[time_s > 3] += 40
    assert "one reading of rapl:VDD_IN" in found(counted(good, values))["implausible-power"][1]


def test_a_slip_in_an_idle_baseline_is_flagged(good):
    values = np.where(np.arange(200) == 77, 80.0, np.random.default_rng(3).normal(4.0, 0.1, 200))
    seconds = np.arange(200) * 0.01
    slip = replace(good.traces[0], time_ns=np.round(seconds * 1e9).astype(np.int64), value=values, part=Part.IDLE_AFTER)
    evidence = replace(good, idle_traces=(slip,), idle_after_ns=(0, 2 * SECOND))
    verdict, detail = found(evidence)["implausible-power"]
    assert verdict is Verdict.FLAGGED
    assert detail.startswith("while idle power was measured: one reading of")
    assert found(replace(evidence, idle_after_ns=None)) == {}


def test_bursts_of_the_load_are_no_slips(good):
    values = np.where(np.arange(time_s.size) % 10 < 3, 40.0, 3.0)
    assert found(read(good, values)) == {}


@pytest.mark.parametrize(("share", "verdict"), [(0.01, None), (0.05, Verdict.FLAGGED), (0.3, Verdict.VOID)])
@pytest.mark.parametrize("with_idle", [True, False])
def test_a_board_that_reads_nothing_under_load_is_judged_by_its_share(good, share, verdict, with_idle):
    values = good.traces[0].value.copy()
    values[(time_s >= 2) & (time_s < 2 + 5 * share)] = 1.9 if with_idle else 0.0
    evidence = good if with_idle else replace(good, idle_before=None, idle_after=None, idle_s=0.0)
    judged = found(read(evidence, values)).get("implausible-power")
    assert (judged and judged[0]) == verdict
    assert judged is None or ("half of its idle power" if with_idle else "read 0 W") in judged[1]


def test_one_rail_may_be_off_while_the_board_works(good, make_rail):
    rail = make_rail("GPU")
    off = replace(good.traces[0], rail=rail, value=np.zeros(time_s.size))
    total = TotalFormula(rails=(*good.total.rails, rail.key), scope="all")
    assert found(replace(good, total=total, traces=(*good.traces, off))) == {}


def test_a_load_that_takes_less_than_none_is_flagged(good):
    busy_idle = replace(good, idle_before=idle(14.0), idle_after=idle(14.0))
    assert found(busy_idle)["implausible-power"][1] == "the board took 12 W under load, and 14 W idle"
    still_warm = replace(good, idle_before=idle(12.5), idle_after=idle(11.5))
    assert found(still_warm) == {}
    unsure = replace(good, idle_before=idle(14.0, 2.0), idle_after=idle(14.0, 2.0))
    assert found(unsure) == {}


def test_many_small_holes_hide_as_much_as_a_large_one(good):
    """Each is a hundredth of the window; together they are a fifth."""
    holes = (time_s % 0.25 < 0.06) & inside
    trace = good.traces[0]
    holed = replace(trace, time_ns=trace.time_ns[~holes], value=trace.value[~holes])
    verdict, detail = found(replace(good, traces=(holed,)))["power-gap"]
    assert verdict is Verdict.VOID
    assert "%" in detail


def test_a_sensor_that_is_slow_to_read_has_no_holes(good):
    trace = good.traces[0]
    slow = replace(trace, time_ns=trace.time_ns[::10], value=trace.value[::10])
    assert found(replace(good, traces=(slow,))) == {}


def stopped(from_s: float, until_s: float) -> np.ndarray:
    """A counter at 12 W that does not count for a while, and goes on as if nothing had happened."""
    moved = np.where((time_s >= from_s) & (time_s < until_s), 0.0, 0.12)
    return np.cumsum(moved)


@pytest.mark.parametrize(
    ("until_s", "verdict"), [(2.05, None), (2.25, Verdict.FLAGGED), (3.5, Verdict.VOID), (9.0, Verdict.VOID)]
)
def test_a_counter_that_stops_counting_is_judged_by_its_share(good, until_s, verdict):
    judged = found(counted(good, stopped(2.0, until_s))).get("stale-sensor")
    assert (judged and judged[0]) == verdict
    assert judged is None or "did not catch up" in judged[1]


def test_a_counter_that_was_only_not_renewed_catches_up(good):
    values = 12 * time_s
    late = np.where((time_s >= 2) & (time_s < 3.5), 24.0, values)
    assert "stale-sensor" not in found(counted(good, late))


def timed_of(lengths_s: list[float]) -> TimedInferences:
    edges = 7 * SECOND + np.round(np.concatenate(([0.0], np.cumsum(lengths_s))) * 1e9).astype(np.int64)
    return TimedInferences(start_ns=edges[:-1], end_ns=edges[1:])


def test_only_long_stalls_count():
    assert stalled_s(timed_of([0.01] * 100)) == 0.0
    assert stalled_s(timed_of([0.01] * 50 + [0.1] + [0.01] * 50)) == 0.0
    assert stalled_s(timed_of([0.01] * 50 + [2.0] + [0.01] * 50)) == pytest.approx(1.99)
    assert stalled_s(timed_of([0.3] * 10 + [0.9])) == 0.0


def test_a_pause_between_two_queries_is_a_stall_too():
    timed = timed_of([0.01] * 100)
    later = np.where(np.arange(100) >= 50, 3 * SECOND, 0)
    assert stalled_s(TimedInferences(start_ns=timed.start_ns + later, end_ns=timed.end_ns + later)) == pytest.approx(
        3.0
    )


def test_a_server_may_wait_for_its_queries(good):
    workload = Workload(model="resnet50", batch_size=1, scenario=Scenario.SERVER, latency_bound_ms=99.0)
    assert found(replace(good, workload=workload, stalled_s=3.0)) == {}


FAULTS = {
    "one value for ever": lambda v: np.full_like(v, v[0]),
    "no number": lambda v: np.where(np.arange(v.size) == 333, np.nan, v),
    "0 W for a while": lambda v: np.where((time_s > 3) & (time_s < 4), 0.0, v),
    "turned round": lambda v: np.where((time_s > 3) & (time_s < 4), -v, v),
    "a leap": lambda v: np.where(np.arange(v.size) == 333, 20 * v, v),
    "dead": np.zeros_like,
}


@pytest.mark.parametrize("fault", FAULTS)
@given(seed=st.integers(0, 2**32), watts=st.floats(2.0, 300.0))
def test_no_faulty_recording_passes_as_valid(make_rail, fault, seed, watts):
    rail = make_rail("VDD_IN")
    clean = watts * (1 + np.random.default_rng(seed).normal(0, 0.02, time_s.size))

    def evidence(value: np.ndarray) -> Evidence:
        return Evidence(
            window_ns=WINDOW,
            inference_count=200,
            total=TotalFormula(rails=(rail.key,), scope="all"),
            traces=(Trace(rail=rail, time_ns=np.round(time_s * 1e9).astype(np.int64), value=value),),
            sample_period_s=0.01,
            load_ns=SECOND // 2,
        )

    assert judge(evidence(clean)) == ()
    assert judge(evidence(FAULTS[fault](clean))) != ()


def test_every_rule_that_may_void_a_run_by_its_power_is_an_energy_rule():
    assert {"implausible-power", "negative-power", "stale-sensor", "power-gap"} <= ENERGY_RULES
    assert not {"clock-jump", "stalled", "idle-drift", "latency-bound", "mode-drift"} & ENERGY_RULES


def test_a_graphics_processor_in_software_draws_what_the_cores_draw(good):
    total = TotalFormula(rails=("ina3221:VDD_IN",), scope=f"packages; {WITHOUT_CARDS}, disks")
    workload = Workload(model="alexnet", batch_size=1, processor=Processor.GPU)
    run = replace(good, total=total, workload=workload)
    assert "uncovered-processor" in found(replace(run, processor_name="NVIDIA RTX A5000"))
    assert "uncovered-processor" not in found(replace(run, processor_name="llvmpipe (LLVM 15.0.6, 256 bits)"))


@pytest.mark.parametrize("processor", list(Processor))
@pytest.mark.parametrize(
    ("scope", "lacking"),
    [
        (f"packages; {WITHOUT_CARDS}, disks", Processor.GPU),
        (f"{CARDS_ALONE}, as they say", Processor.CPU),
        ("everything", None),
    ],
)
def test_power_without_the_processor_that_computed_is_void(good, processor, scope, lacking):
    total = TotalFormula(rails=("ina3221:VDD_IN",), scope=scope)
    workload = Workload(model="alexnet", batch_size=1, processor=processor)
    judged = found(replace(good, total=total, workload=workload))
    if processor is lacking:
        verdict, detail = judged["uncovered-processor"]
        assert verdict is Verdict.VOID
        assert scope in detail
        assert "uncovered-processor" in ENERGY_RULES
    else:
        assert "uncovered-processor" not in judged


@pytest.mark.parametrize(
    ("processor", "share", "verdict"),
    [
        (Processor.GPU, 0.04, None),
        (Processor.GPU, 0.09, Verdict.FLAGGED),
        (Processor.GPU, 0.30, Verdict.VOID),
        (Processor.CPU, 0.30, None),
    ],
)
def test_a_card_whose_sensor_missed_parts_of_its_queries(good, processor, share, verdict):
    """One that waits draws what it draws, whatever part of a query the cores are at."""
    workload = Workload(model="alexnet", batch_size=1, processor=processor)
    judged = found(replace(good, workload=workload, missed_shares={"nvml:GPU0": share}))
    assert judged.get("in-step", (None,))[0] is verdict
