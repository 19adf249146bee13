"""The rules that decide whether a run's figures may be used. A rule is one function and one line in :data:`RULES`.

A function's name with dashes is the rule's name in findings. :data:`powerlab.domain.validity.ENERGY_RULES` names the
rules that judge power and energy alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from powerlab.domain.power import RailQuantity, TotalFormula, Trace
from powerlab.domain.run import Conditions, Finding, Verdict
from powerlab.measure.background import background_limit_cores
from powerlab.measure.energy import covers, rail_energy
from powerlab.measure.stale import stale_sensor

MIN_UPDATES_VOID, MIN_UPDATES_FLAGGED = 5, 20
GAP_SHARE_VOID, GAP_SHARE_FLAGGED = 0.10, 0.02
GAP_PERIODS = 5.0
MIN_INFERENCES = 10
MAX_SUSPENDED_S = 0.05
"""The two clocks are read one after the other; a real suspension lasts much longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What the rules look at.

    Attributes:
        window_ns: the timed part.
        inference_count: inferences in it.
        total: the formula of the board's power; None where no rail can be read.
        traces: what was recorded.
        sample_period_s: the planned time between two samples.
        drift: what the mode controller says changed; None where the mode held.
        suspended_s: how long the machine was suspended meanwhile.
        power_failure: what kept the power from being recorded; None where nothing did.
        background_cores: cores that others kept busy; None where that says nothing.
        idle_background_cores: the same while the idle baseline was measured.
        load_ns: when the load began, on CLOCK_MONOTONIC; None where there was none, or nobody knows.
        lively: by key, how often a second rails changed that are known to change at every load.
        throttled: in sentences, how the device was slowed down meanwhile.
        idle_throttled: the same while the idle baseline was measured.
        idle_before_ns: the idle baseline before the run; None where there was none.
        idle_after_ns: the one after it.
        clock_jump_s: by how much the wall clock was set meanwhile.
        warm_up_s: how long the warm-up took.
        unsteady: in sentences, what had not become steady when the warm-up ended.
        sampling_core_share: processor time of powerlab's own sampling as a share of one core; None where it was not
            counted.
    """

    window_ns: tuple[int, int]
    inference_count: int
    total: TotalFormula | None
    traces: Sequence[Trace]
    sample_period_s: float
    drift: str | None = None
    background_cores: float | None = None
    idle_background_cores: float | None = None
    power_failure: str | None = None
    suspended_s: float = 0.0
    load_ns: int | None = None
    lively: Mapping[str, float] = field(default_factory=dict)
    throttled: Sequence[str] = ()
    idle_throttled: Sequence[str] = ()
    sampling_core_share: float | None = None
    idle_before_ns: tuple[int, int] | None = None
    idle_after_ns: tuple[int, int] | None = None
    clock_jump_s: float = 0.0
    warm_up_s: float = 0.0
    unsteady: Sequence[str] = ()

    @property
    def window_s(self) -> float:
        """Length of the timed part."""
        return (self.window_ns[1] - self.window_ns[0]) / 1e9

    def conditions(self) -> Conditions:
        """Return what a run keeps of this beside its traces."""
        return Conditions(**{one.name: getattr(self, one.name) for one in fields(Conditions)})

    def total_traces(self) -> list[Trace]:
        """Return the traces of the formula's rails that were recorded."""
        return [trace for trace in self.traces if self.total is not None and trace.rail.key in self.total.rails]


Judgement = tuple[Verdict, str]


def missing_power(evidence: Evidence) -> Iterator[Judgement]:
    """No power is a state to show, never 0 W."""
    if evidence.total is None:
        yield Verdict.VOID, "no power source can be read on this device, so the run has no power figures"
        return
    if evidence.power_failure is not None:
        yield Verdict.VOID, evidence.power_failure
        return
    complaints = list(_missing_rails(evidence, evidence.total))
    if not complaints:
        energy_j = math.fsum(rail_energy(trace, *evidence.window_ns).energy_j for trace in evidence.total_traces())
        if energy_j <= 0:
            complaints.append(f"the rails of the total add up to {energy_j:g} J, and no machine runs on 0 W")
    for complaint in complaints:
        yield Verdict.VOID, complaint


def _missing_rails(evidence: Evidence, total: TotalFormula) -> Iterator[str]:
    found = {trace.rail.key: trace for trace in evidence.traces}
    for key in total.rails:
        if key not in found:
            yield f"the rail {key} belongs to the total but gave no samples"
        elif not covers(found[key], *evidence.window_ns):
            yield f"the samples of {key} do not span the timed window"
        elif found[key].rail.quantity is RailQuantity.ENERGY and _moved_j(found[key]) <= 0:
            yield f"the energy counter {key} did not move in {evidence.window_s:.2f} s"


def suspended(evidence: Evidence) -> Iterator[Judgement]:
    """The clock of the samples stands still while a machine sleeps; counters and supplies do not."""
    if evidence.suspended_s > MAX_SUSPENDED_S:
        yield Verdict.VOID, f"the machine was suspended for {evidence.suspended_s:.1f} s meanwhile"


def window_too_short(evidence: Evidence) -> Iterator[Judgement]:
    """A sensor that updated only a few times says little about the window."""
    for trace in evidence.total_traces():
        inside = int(
            np.count_nonzero((trace.time_ns >= evidence.window_ns[0]) & (trace.time_ns <= evidence.window_ns[1]))
        )
        updates = inside
        if trace.rail.update_period_s > 0:
            updates = min(updates, int(evidence.window_s / trace.rail.update_period_s))
        if updates < MIN_UPDATES_FLAGGED:
            verdict = Verdict.VOID if updates < MIN_UPDATES_VOID else Verdict.FLAGGED
            yield (
                verdict,
                (
                    f"{trace.rail.key} updated only {updates} times in the window of {evidence.window_s:.2f} s "
                    f"({MIN_UPDATES_FLAGGED} are wanted)"
                ),
            )


def power_gap(evidence: Evidence) -> Iterator[Judgement]:
    """A hole in the samples is time whose power nobody saw; an energy counter goes on counting through it."""
    for trace in evidence.total_traces():
        if trace.rail.quantity is RailQuantity.ENERGY or not covers(trace, *evidence.window_ns):
            continue
        gap_s = _longest_gap_s(trace, evidence.window_ns)
        usual_s = max(evidence.sample_period_s, trace.rail.update_period_s)
        share = gap_s / evidence.window_s
        if gap_s > GAP_PERIODS * usual_s and share > GAP_SHARE_FLAGGED:
            verdict = Verdict.VOID if share > GAP_SHARE_VOID else Verdict.FLAGGED
            yield verdict, f"{trace.rail.key} was not sampled for {gap_s:.2f} s, {share:.0%} of the window"


def mode_drift(evidence: Evidence) -> Iterator[Judgement]:
    """Somebody changed the power mode meanwhile: the figures belong to no mode."""
    if evidence.drift is not None:
        yield Verdict.VOID, evidence.drift


def throttled(evidence: Evidence) -> Iterator[Judgement]:
    """A device that was slowed down is not in the state its power mode stands for."""
    for sentence in evidence.throttled:
        yield Verdict.FLAGGED, sentence
    for sentence in evidence.idle_throttled:
        yield Verdict.FLAGGED, f"while idle power was measured: {sentence}"


def background_load(evidence: Evidence) -> Iterator[Judgement]:
    """Other processes took time and power."""
    for cores, when in (
        (evidence.background_cores, "during the run"),
        (evidence.idle_background_cores, "while idle power was measured, which makes it too high"),
    ):
        limit = background_limit_cores()
        if cores is not None and cores > limit:
            yield Verdict.FLAGGED, f"other processes kept {cores:.2g} cores busy {when} (up to {limit:.2g} may be)"


def too_few_samples(evidence: Evidence) -> Iterator[Judgement]:
    """A percentile of a handful of inferences is an anecdote."""
    if evidence.inference_count < MIN_INFERENCES:
        yield Verdict.FLAGGED, f"only {evidence.inference_count} inferences were timed ({MIN_INFERENCES} are wanted)"


RULES: tuple[Callable[[Evidence], Iterator[Judgement]], ...] = (
    missing_power,
    window_too_short,
    power_gap,
    stale_sensor,
    suspended,
    mode_drift,
    throttled,
    background_load,
    too_few_samples,
)


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Ask every rule."""
    return tuple(
        Finding(rule=rule.__name__.replace("_", "-"), verdict=verdict, detail=detail)
        for rule in RULES
        for verdict, detail in rule(evidence)
    )


def _moved_j(trace: Trace) -> float:
    return float(trace.value[-1] - trace.value[0])


def _longest_gap_s(trace: Trace, window_ns: tuple[int, int]) -> float:
    """Return the longest time between two samples as far as it lies in the window."""
    clipped = np.clip(trace.time_ns, *window_ns)
    return float(np.diff(clipped).max()) / 1e9
