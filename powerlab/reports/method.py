"""The method of a sweep in sentences that hold for this sweep, for a paper."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.analysis.searched import search_notes
from powerlab.analysis.summary import MIN_VALID
from powerlab.domain.quantity import Provenance
from powerlab.domain.rigour import LEVELS
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Preparation, Scenario, WorkloadKind
from powerlab.reports.subject import Subject
from powerlab.reports.text import counted

_SCENARIOS = {
    Scenario.SINGLE_STREAM: "each query was sent when the one before it was answered (MLPerf's single-stream scenario)",
    Scenario.MULTI_STREAM: "queries of 8 images followed each other without pause (MLPerf's multi-stream scenario)",
    Scenario.SERVER: "queries arrived at random, as a Poisson process, at the highest rate that met the latency bound "
    "(MLPerf's server scenario)",
    Scenario.OFFLINE: "all images were there from the beginning (MLPerf's offline scenario)",
}
_SENSED = {
    Provenance.MEASURED: "Power was measured, as",
    Provenance.SIMULATED: "Power and speed are those of a simulated board, whose sensors are simulated too; power is",
    Provenance.ESTIMATED: "Power was estimated from the processor's load by a model, without a sensor, as",
    Provenance.PUBLISHED: "Power was published elsewhere, as",
}


def paragraphs(subject: Subject) -> tuple[str, ...]:
    """Return the method: design, runs, power, figures."""
    plan = subject.plan
    return (
        " ".join(_design(subject, plan)),
        " ".join(_runs(plan)),
        " ".join(_power(subject, plan)),
        " ".join(_figures(subject)),
    )


def _design(subject: Subject, plan: SweepPlan) -> Iterator[str]:
    points, runs = len(subject.summaries), len(subject.runs)
    made = sorted({summary.run_count for summary in subject.summaries})
    times = counted(made[0], "time") if len(made) == 1 else f"{made[0]} to {made[-1]} times"
    if plan.search_percent:
        yield " ".join(search_notes(subject.runs, plan))
        yield f"The {counted(points, 'point')} of threads × power mode × workload were run {times} each."
        return
    planned = plan.point_count * plan.repeats
    missing = f" Of {planned} planned runs, {runs} were made." if runs < planned else ""
    until = (
        f", and repeated from {plan.repeats} up to {plan.most_repeats} times until the 95 % interval of img/s/W was "
        f"within ±{plan.until_percent:g} %"
        if plan.until_percent
        else ""
    )
    yield (
        f"{counted(points, 'point').capitalize()} of threads × power mode × workload "
        f"{'was' if points == 1 else 'were'} run {times} each{until}, {counted(runs, 'run')} "
        f"in all.{missing}"
    )
    yield (
        "The order is a randomised block design (Fisher, 1935): every repeat is a block that holds each point once, "
        f"shuffled with seed {plan.seed}, so that slow changes such as heat show as scatter."
    )


def _runs(plan: SweepPlan) -> Iterator[str]:
    level = LEVELS[plan.rigour]
    loads = "; ".join(_SCENARIOS[scenario] for scenario in plan.scenarios)
    yield f"Rigour was `{plan.rigour.value}` ({level.words}). In a run, {loads}."
    if plan.workload is WorkloadKind.TRAIN:
        yield (
            f"A query was a step of training by {' or '.join(plan.optimizers)}: forward pass, gradients and update of "
            f"all weights, on one batch of random numbers and labels (seed {plan.seed}); an image counts when a step "
            "has learnt from it."
        )
    if plan.latency_bound_ms:
        yield f"The 99th percentile had to stay below {plan.latency_bound_ms:g} ms."
    yield (
        f"Each run is a process of its own, pinned to its cores. It warmed up for at least {plan.warm_up_s:g} s, and "
        f"at most {plan.longest_warm_up_s:g} s, until latency, power and temperature were steady; the timed window "
        f"lasted at least {plan.duration_s:g} s and {counted(plan.min_inferences, 'inference')}."
        if plan.warm_up_s
        else "Each run is a process of its own, pinned to its cores. There was no warm-up; the timed window lasted at "
        f"least {plan.duration_s:g} s and {counted(plan.min_inferences, 'inference')}."
    )
    if plan.cool_down_s:
        yield f"Before it the device cooled, for at most {plan.cool_down_s:g} s, to the temperature of earlier runs."
    if plan.max_temperature_c is not None:
        yield f"A run was ended when a thermal zone exceeded {plan.max_temperature_c:g} °C."
    inside = plan.preparation is not Preparation.OUTSIDE
    yield f"Preparation of the input was {'inside' if inside else 'outside'} the timed part."


def _power(subject: Subject, plan: SweepPlan) -> Iterator[str]:
    total = next((run.total for run in subject.runs if run.total is not None), None)
    provenances = {
        metric.provenance for summary in subject.summaries if (metric := summary.metric("power_w")) is not None
    }
    if total is None or not provenances:
        yield "Power was not recorded: the device has no source that could be used, so there are no figures of energy."
        return
    sources = " and ".join(sorted({key.partition(":")[0] for key in total.rails}))
    for provenance in sorted(provenances):
        yield f"{_SENSED[provenance]} the sum of {' + '.join(total.rails)} ({total.scope})."
    yield (
        f"The source `{sources}` was sampled every {1000 * plan.sample_period_s:g} ms, and each sample stamped with "
        "CLOCK_MONOTONIC half-way through its read. Power is the energy in the window divided by its length; energy "
        "per image is that energy divided by the images, and efficiency is its inverse."
    )
    if plan.idle_s:
        yield f"Idle power was recorded for {plan.idle_s:g} s before and after each run, in the same power mode."


def _figures(subject: Subject) -> Iterator[str]:
    yield (
        f"A figure is the median of a point's valid runs (with fewer than {MIN_VALID}, flagged ones count too). Its "
        "95 % interval combines, as the root of the sum of squares, the scatter between the repeats (Student's t) and "
        "what one run cannot know of itself: the uncertainty budget after JCGM 100:2008 (GUM) of sensor gain, offset, "
        "quantisation, sampling, window edges, lag and idle drift."
    )
    yield (
        "Ratios of two points leave out the errors of the sensors that both share; a point is called the winner only "
        "if it is shown to beat every other point that does the same work. Figures of different provenance are never "
        "combined."
    )
    if any(run.conditions and run.conditions.output_difference is not None for run in subject.runs):
        furthest = max(
            run.conditions.output_difference
            for run in subject.runs
            if run.conditions is not None and run.conditions.output_difference is not None
        )
        yield f"The engines' outputs differ from the built-in engine's by at most {furthest:.1e} of the largest value."
