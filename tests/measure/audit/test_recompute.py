"""A run is worked out again from its record alone, and whatever was changed in either is seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import IDLE_PARTS, Part, RailQuantity, TotalFormula
from powerlab.domain.run import Finding, Verdict
from powerlab.domain.workload import Scenario, Workload
from powerlab.measure.audit.audit import Audit, audit
from powerlab.measure.audit.mlperf import Ruling
from powerlab.measure.audit.recompute import recompute
from powerlab.measure.percentiles.latency import from_trace, latency_trace
from recorded_run import POINT, Recorded, recorded_run

RECORDED = recorded_run()


def audited(recorded: Recorded) -> Audit:
    return audit(recorded.run, recorded.traces)


def differing(recorded: Recorded) -> dict[str, str]:
    return {one.what: one.detail for one in audited(recorded).compared if not one.equal}


def test_a_run_gives_itself_again():
    found = audited(RECORDED)
    assert found.equal
    assert found.run is RECORDED.run
    assert {one.what for one in found.compared} >= {
        "window",
        "inferences",
        "Median latency",
        "Throughput",
        "Power while running",
        "Idle power in the same mode",
        "Energy per image above idle",
        "Efficiency (images per joule): budget",
        "findings",
        "verdict",
    }
    assert found.sample_count == sum(trace.time_ns.size for trace in RECORDED.traces)


@pytest.mark.parametrize(
    "recorded",
    [
        recorded_run(idle_s=0.0, idle_before=None, idle_after=None, idle_before_ns=None, idle_after_ns=None),
        recorded_run(idle_before=None, idle_before_ns=None),
        recorded_run(throttled=("the clocks were low",), background_cores=0.9, clock_jump_s=5.0),
        recorded_run(drift="somebody changed the mode"),
        recorded_run(power_failure="the sensor went up in smoke"),
        recorded_run(query_s=0.9),
        recorded_run(window_s=0.02, query_s=0.02),
        recorded_run(
            point=replace(
                POINT,
                workload=Workload(model="resnet50", batch_size=1, scenario=Scenario.SERVER, latency_bound_ms=21.0),
            )
        ),
        recorded_run(point=replace(POINT, workload=Workload(model="a", batch_size=8, scenario=Scenario.OFFLINE))),
    ],
    ids=["no idle", "one idle", "flagged", "drifted", "no power", "slow", "one query", "server", "offline"],
)
def test_runs_of_every_kind_give_themselves_again(recorded):
    found = audited(recorded)
    assert [one for one in found.compared if not one.equal] == []
    assert len(found.mlperf) >= 15


def test_times_survive_their_trace_to_the_nanosecond():
    timed = from_trace(RECORDED.traces[-1])
    again = from_trace(latency_trace(timed, RECORDED.traces[-1].rail.provenance))
    assert np.array_equal(timed.start_ns, again.start_ns)
    assert np.array_equal(timed.end_ns, again.end_ns)


@given(st.integers(0, 2**62), st.lists(st.integers(1, 10**13), min_size=1, max_size=20))
def test_any_times_survive(start_ns, lengths_ns):
    trace = replace(
        RECORDED.traces[-1],
        time_ns=start_ns + 2 * np.cumsum(np.array(lengths_ns, dtype=np.int64)),
        value=np.array(lengths_ns) / 1e9,
    )
    timed = from_trace(trace)
    assert (timed.end_ns - timed.start_ns).tolist() == lengths_ns


@given(st.integers(0, len(RECORDED.run.metrics) - 1), st.floats(-0.5, 0.5).filter(lambda share: abs(share) > 1e-7))
def test_any_figure_that_was_changed_is_seen(number, share):
    metrics = list(RECORDED.run.metrics)
    changed = replace(metrics[number], value=metrics[number].value * (1 + share))
    metrics[number] = changed
    ((_, detail),) = differing(RECORDED.but(metrics=tuple(metrics))).items()
    assert f"value: {changed.value:.10g} is stored" in detail


@given(st.integers(0, len(RECORDED.run.budget) - 1), st.floats(1e-6, 10))
def test_any_line_of_the_budget_that_was_changed_is_seen(number, share):
    budget = list(RECORDED.run.budget)
    line = budget[number]
    budget[number] = replace(line, standard_uncertainty=line.standard_uncertainty * (1 + share) + 1e-6)
    ((what, detail),) = differing(RECORDED.but(budget=tuple(budget))).items()
    assert what.endswith(": budget")
    assert line.effect in detail


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"verdict": Verdict.FLAGGED}, {"verdict"}),
        ({"inference_count": 9}, {"inferences"}),
        ({"window_ns": (1, 2)}, {"window"}),
        ({"findings": (Finding(rule="made-up", verdict=Verdict.VOID, detail="x"),)}, {"finding made-up"}),
        ({"metrics": RECORDED.run.metrics[1:]}, {"Median latency"}),
    ],
)
def test_anything_else_that_was_changed_is_seen(change, what):
    assert set(differing(RECORDED.but(**change))) == what


def test_a_finding_that_was_taken_away_is_seen():
    flagged = recorded_run(throttled=("the clocks were low",))
    hidden = differing(flagged.but(findings=(), verdict=Verdict.VALID))
    assert set(hidden) == {"finding throttled", "verdict"}


def test_another_batch_size_changes_what_images_cost():
    smaller = replace(POINT, workload=replace(POINT.workload, batch_size=2))
    assert {"Throughput", "Energy per image"} <= set(differing(RECORDED.but(point=smaller)))


def test_another_formula_changes_the_power():
    total = TotalFormula(rails=RECORDED.run.total.rails[:1], scope="half")
    assert "Power while running" in differing(RECORDED.but(total=total))


@pytest.mark.parametrize("part", [Part.RUN, *IDLE_PARTS])
def test_samples_that_were_changed_are_seen(part):
    traces = [
        replace(trace, value=trace.value * 1.001)
        if trace.part is part and trace.rail.quantity is RailQuantity.POWER
        else trace
        for trace in RECORDED.traces
    ]
    found = differing(replace(RECORDED, traces=tuple(traces)))
    assert ("Power while running" if part is Part.RUN else "Idle power in the same mode") in found


def test_one_latency_that_was_changed_is_seen():
    *others, latencies = RECORDED.traces
    values = latencies.value.copy()
    values[-1] += 1e-9
    assert "window" in differing(replace(RECORDED, traces=(*others, replace(latencies, value=values))))


def test_a_rail_that_is_gone_is_seen():
    gone = tuple(trace for trace in RECORDED.traces if trace.rail.source != "rapl")
    found = differing(replace(RECORDED, traces=gone))
    assert found["Power while running"] == "the record gives none"
    assert {"finding missing-power", "verdict"} <= set(found)


def test_an_error_that_was_made_smaller_is_seen():
    better = tuple(replace(trace, rail=replace(trace.rail, relative_error=0.001)) for trace in RECORDED.traces)
    found = differing(replace(RECORDED, traces=better))
    assert "lower end" in found["Power while running"]
    assert "gain" in found["Power while running: budget"]


def test_what_comes_of_rounding_is_no_difference():
    metrics = tuple(replace(metric, value=metric.value * (1 + 1e-13)) for metric in RECORDED.run.metrics)
    assert differing(RECORDED.but(metrics=metrics)) == {}


@pytest.mark.parametrize(
    ("recorded", "words"),
    [
        (RECORDED.but(verdict=Verdict.FAILED), "failed and has no figures"),
        (RECORDED.but(conditions=None), "measured by an older powerlab"),
        (replace(RECORDED, traces=()), "latencies of run"),
        (
            replace(
                RECORDED.but(conditions=replace(RECORDED.run.conditions, traces_shed="its traces were shed.")),
                traces=(),
            ),
            "cannot be audited: its traces were shed.",
        ),
    ],
)
def test_a_record_that_is_not_enough_is_refused_in_one_sentence(recorded, words):
    with pytest.raises(PowerlabError, match=words):
        recompute(recorded.run, recorded.traces)


def test_mlperf_is_asked_about_what_was_recorded_and_not_about_what_is_said():
    boasting = RECORDED.but(window_ns=(0, 700_000_000_000))
    (duration,) = (one for one in audited(boasting).mlperf if one.rule == "duration")
    assert duration.ruling is Ruling.REJECTED
    assert duration.figure.startswith("5.")


@pytest.mark.parametrize("part", [Part.COOL_DOWN, Part.WARM_UP])
def test_no_figure_is_made_of_a_warm_up_or_a_cool_down(part):
    beside = tuple(
        replace(trace, part=part, value=9 * trace.value)
        for trace in RECORDED.traces
        if trace.part is Part.RUN and trace.rail.quantity is RailQuantity.POWER
    )
    assert beside
    assert not differing(replace(RECORDED, traces=(*RECORDED.traces, *beside)))


def test_no_figure_is_made_of_clocks():
    watts = next(trace for trace in RECORDED.traces if trace.part is Part.RUN)
    rail = replace(watts.rail, source="clocks", name="GPU", quantity=RailQuantity.CLOCK)
    assert not differing(replace(RECORDED, traces=(*RECORDED.traces, replace(watts, rail=rail))))
