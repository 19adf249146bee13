"""Check a run against the rules of MLPerf Power, one by one.

The rules are those of MLPerf Inference's power measurement (mlcommons/inference_policies, power_measurement.adoc) and
of the checks that its results must pass (mlcommons/power-dev, compliance), in numbers. Each is asked of one run, with
how to comply. What no run can show (which analyser it was, how accurate the model is) stays open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from powerlab.domain.power import Trace
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.run import Finding, Run
from powerlab.domain.workload import Scenario
from powerlab.measure.evidence import Evidence
from powerlab.measure.figures import Figures

MIN_DURATION_S = 600.0
MAX_SAMPLE_DISTANCE_S = 1.0
MAX_UNCERTAINTY = 0.01
MAX_CLOCK_DIFFERENCE_S = 0.4
MAX_PHASE_DIFFERENCE_S = 0.8
MIN_OFFLINE_IMAGES = 24_576
MIN_QUERIES = {Scenario.SINGLE_STREAM: 64, Scenario.MULTI_STREAM: 662, Scenario.SERVER: 662}
"""What early stopping needs for the 90th and the 99th percentile at 99 % confidence."""
JUDGED_AT = {Scenario.SINGLE_STREAM: "latency_p90_ms", Scenario.MULTI_STREAM: "latency_p99_ms"}
GAP_RULES = ("missing-power", "power-gap", "stale-sensor", "suspended")
WALL_METER, PTDAEMON = "meter", "ptd://"


class Ruling(StrEnum):
    """What a rule would say."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    UNKNOWN = "cannot be known here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruled:
    """One rule and what it says of the run.

    Attributes:
        rule: its name.
        asks: what it asks for.
        ruling: what it would say.
        figure: what the run has.
        remedy: what would make it pass; empty where it passes.
    """

    rule: str
    asks: str
    ruling: Ruling
    figure: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A run as the rules look at it: what it says, what was recorded, and its figures worked out again."""

    run: Run
    evidence: Evidence
    figures: Figures

    def metric(self, name: str) -> Metric | None:
        """Return the figure of that name, worked out again."""
        return next((metric for metric in self.figures.metrics if metric.name == name), None)

    def said(self, *rules: str) -> list[Finding]:
        """Return what some of powerlab's own rules say."""
        return [finding for finding in self.figures.findings if finding.rule in rules]

    @property
    def power(self) -> Metric | None:
        """Power while running; None where the run has none."""
        return self.metric("power_w")

    @property
    def sources(self) -> set[str]:
        """Names of the sources of the total's rails."""
        return set() if self.run.total is None else {key.partition(":")[0] for key in self.run.total.rails}


Said = tuple[Ruling, str, str]
NO_POWER = "the run has no power figure"


@dataclass(frozen=True, slots=True, kw_only=True)
class MlperfRule:
    """A rule: its name, what it asks for in words, and what it says of a run with the figure and how to comply."""

    name: str
    asks: str
    judge: Callable[[Case], Said]


def _duration(case: Case) -> Said:
    window_s = case.evidence.window_s
    ruling = Ruling.ACCEPTED if window_s >= MIN_DURATION_S else Ruling.REJECTED
    return ruling, f"{window_s:.1f} s", "measure with --rigour publishable, or --duration 600"


def _same_run(case: Case) -> Said:
    if case.power is None:
        return Ruling.REJECTED, NO_POWER, "see the findings and powerlab doctor"
    return Ruling.ACCEPTED, "power is that of the window in which the queries were timed", ""


def _measured(case: Case) -> Said:
    if case.power is None:
        return Ruling.REJECTED, NO_POWER, "see the findings and powerlab doctor"
    ruling = Ruling.ACCEPTED if case.power.provenance is Provenance.MEASURED else Ruling.REJECTED
    return ruling, f"power is {case.power.provenance.value}", "measure a real device with a sensor"


def _wall_power(case: Case) -> Said:
    scope = NO_POWER if case.run.total is None else case.run.total.scope
    if case.sources == {WALL_METER}:
        return Ruling.UNKNOWN, scope, "see that the meter feeds the whole system, without a battery"
    return Ruling.REJECTED, scope, "connect an external meter at the plug (docs/guides/wall-meter.md)"


def _analyser(case: Case) -> Said:
    scope = "" if case.run.total is None else case.run.total.scope
    if case.sources == {WALL_METER} and PTDAEMON in scope:
        return Ruling.UNKNOWN, "a meter behind PTDaemon", "see that it is on SPEC's list of accepted analysers"
    found = ", ".join(sorted(case.sources)) or "no power source"
    return Ruling.REJECTED, found, "read an analyser of SPEC's list through PTDaemon (address = ptd://HOST:PORT)"


def _sampling(case: Case) -> Said:
    traces = case.evidence.total_traces()
    if case.power is None or not traces:
        return Ruling.REJECTED, NO_POWER, "see the findings and powerlab doctor"
    slowest, apart_s = max(
        ((trace.rail.key, _sample_distance_s(trace, case)) for trace in traces), key=lambda one: one[1]
    )
    ruling = Ruling.ACCEPTED if apart_s <= MAX_SAMPLE_DISTANCE_S else Ruling.REJECTED
    return (
        ruling,
        f"at most {1000 * apart_s:.4g} ms apart ({slowest})",
        "use a sensor that updates at least once a second",
    )


def _sample_distance_s(trace: Trace, case: Case) -> float:
    """Return the longest distance of two samples that reaches into the window; no less than the sensor's own period."""
    start_ns, end_ns = case.evidence.window_ns
    overlaps = (trace.time_ns[1:] > start_ns) & (trace.time_ns[:-1] < end_ns)
    apart_ns = np.diff(trace.time_ns)[overlaps]
    return max(trace.rail.update_period_s, float(apart_ns.max()) / 1e9 if apart_ns.size else 0.0)


def _uncertainty(case: Case) -> Said:
    power = case.power
    if power is None or power.low is None or power.high is None or power.value <= 0:
        return Ruling.REJECTED, NO_POWER, "see the findings and powerlab doctor"
    share = max(power.high - power.value, power.value - power.low) / power.value
    ruling = Ruling.ACCEPTED if share <= MAX_UNCERTAINTY else Ruling.REJECTED
    return (
        ruling,
        f"±{share:.2%} of {power.value:.4g} W {power.provenance.value}",
        "use a meter of a better class; powerlab runs show names the largest part",
    )


def _clocks(case: Case) -> Said:
    jump_s = abs(case.evidence.clock_jump_s)
    if jump_s > MAX_CLOCK_DIFFERENCE_S:
        return Ruling.REJECTED, f"the wall clock was set by {jump_s:.3g} s", "let NTP set the clock before the run"
    return Ruling.ACCEPTED, "0 ms: one clock of one machine stamps queries and samples", ""


def _phases(case: Case) -> Said:
    start_ns, end_ns = case.evidence.window_ns
    traces = case.evidence.total_traces()
    if case.power is None or not traces:
        return Ruling.REJECTED, NO_POWER, "see the findings and powerlab doctor"
    apart_s = max(
        float(np.abs(trace.time_ns - end_ns_).min()) / 1e9 for trace in traces for end_ns_ in (start_ns, end_ns)
    )
    ruling = Ruling.ACCEPTED if apart_s <= MAX_PHASE_DIFFERENCE_S else Ruling.REJECTED
    return ruling, f"the nearest samples are {1000 * apart_s:.3g} ms from the window's ends", "use a faster sensor"


def _gaps(case: Case) -> Said:
    found = case.said(*GAP_RULES)
    if found:
        return Ruling.REJECTED, "; ".join(finding.detail for finding in found), "measure again"
    return Ruling.ACCEPTED, "none", ""


def _percentile(case: Case) -> Said:
    scenario, count = case.run.point.workload.scenario, case.evidence.inference_count
    if case.run.point.workload.trains:
        return Ruling.REJECTED, "steps of training are no queries of an inference", "measure inference"
    if scenario is Scenario.OFFLINE:
        return Ruling.ACCEPTED, "offline is judged by its throughput", ""
    wanted = MIN_QUERIES[scenario]
    if scenario is Scenario.SERVER:
        return _server(case, wanted)
    name = JUDGED_AT[scenario]
    metric = case.metric(name)
    figure = f"{METRICS[name].title.lower()} {metric.value:.4g} ms of {count} queries" if metric else f"{count} queries"
    ruling = Ruling.ACCEPTED if metric and count >= wanted else Ruling.REJECTED
    return ruling, figure, f"time at least {wanted} queries (--min-inferences {wanted})"


def _server(case: Case, wanted: int) -> Said:
    bound_ms, count = case.run.point.workload.latency_bound_ms, case.evidence.inference_count
    found = case.metric("latency_p99_ms")
    figure = f"99th percentile {found.value:.4g} ms of {count} queries, bound {bound_ms:.4g} ms" if found else "none"
    held = found is not None and found.value <= bound_ms and count >= wanted
    return Ruling.ACCEPTED if held else Ruling.REJECTED, figure, f"hold the bound over at least {wanted} queries"


def _offline(case: Case) -> Said:
    workload = case.run.point.workload
    if workload.scenario is not Scenario.OFFLINE:
        return Ruling.ACCEPTED, f"not asked of {workload.scenario.value}", ""
    images = case.evidence.inference_count * workload.images_per_query
    ruling = Ruling.ACCEPTED if images >= MIN_OFFLINE_IMAGES else Ruling.REJECTED
    return ruling, f"{images} images", f"run at least {MIN_OFFLINE_IMAGES} images (--min-inferences)"


def _mode(case: Case) -> Said:
    found = case.said("mode-drift")
    if found:
        return Ruling.REJECTED, found[0].detail, "leave the device's power mode alone while it is measured"
    return Ruling.ACCEPTED, f"mode {case.run.point.mode}, the same before and after", ""


def _loadgen(case: Case) -> Said:
    return (
        Ruling.REJECTED,
        f"powerlab issued the queries of {case.run.point.workload.scenario.value}",
        "submit a run of LoadGen under MLPerf's own power workflow; powerlab tells which settings are worth it",
    )


def _accuracy(case: Case) -> Said:
    return (
        Ruling.UNKNOWN,
        f"powerlab made up the inputs of {case.run.point.workload.model} and looked at no answer",
        "run the accuracy mode of MLPerf's reference on its data set",
    )


MLPERF_RULES: tuple[MlperfRule, ...] = (
    MlperfRule(name="duration", asks=f"at least {MIN_DURATION_S:g} s a scenario", judge=_duration),
    MlperfRule(name="same run", asks="power and performance from the same run", judge=_same_run),
    MlperfRule(name="measured", asks="measured power of a real system", judge=_measured),
    MlperfRule(name="wall power", asks="the whole system, at the wall", judge=_wall_power),
    MlperfRule(name="analyser", asks="an analyser of SPEC's PTDaemon list", judge=_analyser),
    MlperfRule(name="sampling", asks=f"a sample every {1000 * MAX_SAMPLE_DISTANCE_S:g} ms at least", judge=_sampling),
    MlperfRule(name="uncertainty", asks=f"at most {MAX_UNCERTAINTY:.0%}", judge=_uncertainty),
    MlperfRule(name="clocks", asks=f"within {1000 * MAX_CLOCK_DIFFERENCE_S:g} ms of each other, by NTP", judge=_clocks),
    MlperfRule(name="phases", asks=f"power and load at most {1000 * MAX_PHASE_DIFFERENCE_S:g} ms apart", judge=_phases),
    MlperfRule(name="gaps", asks="no gap in the samples and no lost connection", judge=_gaps),
    MlperfRule(
        name="percentile", asks="single stream judged at p90, multi-stream and server at p99", judge=_percentile
    ),
    MlperfRule(name="offline", asks=f"at least {MIN_OFFLINE_IMAGES} samples offline", judge=_offline),
    MlperfRule(name="power management", asks="no hand on it during the run", judge=_mode),
    MlperfRule(name="LoadGen", asks="queries from MLPerf's LoadGen", judge=_loadgen),
    MlperfRule(name="accuracy", asks="the model's reference accuracy", judge=_accuracy),
)
"""In the order in which they are told."""


def ask_mlperf(case: Case) -> tuple[Ruled, ...]:
    """Ask every rule."""
    return tuple(_ruled(rule, *rule.judge(case)) for rule in MLPERF_RULES)


def _ruled(rule: MlperfRule, ruling: Ruling, figure: str, remedy: str) -> Ruled:
    return Ruled(
        rule=rule.name,
        asks=rule.asks,
        ruling=ruling,
        figure=figure,
        remedy="" if ruling is Ruling.ACCEPTED else remedy,
    )


def in_one_word(ruled: Sequence[Ruled]) -> Ruling:
    """Return what MLPerf Power would say of the run as a whole: one rejection is enough."""
    found = {one.ruling for one in ruled}
    for ruling in (Ruling.REJECTED, Ruling.UNKNOWN):
        if ruling in found:
            return ruling
    return Ruling.ACCEPTED
