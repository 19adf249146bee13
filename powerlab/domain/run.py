"""A run: one measured repeat of a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from powerlab.domain.accuracy import LabelledAccuracy, OutputAccuracy
from powerlab.domain.device_state import ClockOffset, DeviceState
from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric
from powerlab.domain.sweep import Point


class Verdict(StrEnum):
    """Whether a run's figures may be used."""

    VALID = "valid"
    FLAGGED = "flagged"
    VOID = "void"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One validity rule that had something to say, with its figure in ``detail``."""

    rule: str
    verdict: Verdict
    detail: str


class EffectKind(StrEnum):
    """How a standard uncertainty was found (JCGM 100:2008, 0.7): from repeated observations, or by other means."""

    A = "A"
    B = "B"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """One line of a figure's uncertainty budget.

    Attributes:
        metric: the figure it belongs to, a key of :data:`powerlab.domain.quantity.METRICS`.
        origin: where it comes from: a rail's key, ``idle`` or ``repeats``.
        effect: what it is: ``gain``, ``quantisation``, ``offset``, ``sampling``, ``edge``, ``lag``, ``drift``...
        kind: how it was found.
        standard_uncertainty: in the metric's unit.
    """

    metric: str
    origin: str
    effect: str
    kind: EffectKind
    standard_uncertainty: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePower:
    """One of several devices that trained together.

    Attributes:
        name: the device's.
        rails: keys of its rails in the board's power of the run, which is the sum of all devices'.
        clock_error_s: half of the longest time that a question for its clock took, by which its samples may be wrong
            beside those of the first device; 0 for that one.
        energy_j: what its rails say in the timed part; None where the power may not be used.
        low_j: lower end of its 95 % interval.
        high_j: upper end.
    """

    name: str
    rails: tuple[str, ...]
    clock_error_s: float = 0.0
    energy_j: float | None = None
    low_j: float | None = None
    high_j: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What the validity rules looked at beside the traces, so that everybody can ask them again.

    Attributes:
        sample_period_s: the planned time between two samples.
        load_ns: when the load began, on CLOCK_MONOTONIC; None where nobody knows.
        idle_before_ns: the idle baseline before the run; None where there was none.
        idle_after_ns: the one after it.
        drift: what changed in the power mode; None where it held.
        suspended_s: how long the machine was suspended meanwhile.
        clock_jump_s: by how much the wall clock was set meanwhile.
        power_failure: what kept the power from being recorded; None where nothing did.
        background_cores: cores that others kept busy; None where that says nothing.
        idle_background_cores: the same during the idle baselines.
        background_limit_cores: how many cores others may keep busy on that machine.
        lively: by key, how often a second rails changed that are known to change at every load.
        throttled: in sentences, how the device was slowed down.
        idle_throttled: the same during the idle baselines.
        sampling_core_share: processor time of the sampling as a share of one core; None where it was not counted.
        idle_s: how long an idle baseline was asked for.
        warm_up_s: how long the warm-up took.
        unsteady: in sentences, what had not become steady when the warm-up was ended.
        measured_with: the version of powerlab that worked out the figures.
        engine_version: the version of the engine that ran the model; empty where nobody knows.
        processor_name: what the engine called the graphics processor that computed; empty where none did, or the
            engine does not say.
        output_difference: the largest difference between the engine's outputs and those of the built-in engine in
            fp32, for the same inputs, as a share of the largest output; None where nothing was compared.
        output_accuracy: how exact the outputs of a low precision are beside those; None in fp32, and where nothing was
            compared.
        labelled_accuracy: how often the engine's answer was the label; None where no labelled images were given.
        device_state: the device's software, clocks and fans; None in runs of an older powerlab.
        clock_offset: how the device's wall clock stood to its server's; None where no server was asked.
        temperature_guard: in words, which zones the temperature guard watched, the peak and the limits; empty where the
            run had no limit.
        traces_shed: in a sentence, why the run's traces were thrown away on the device; empty where they were not.
        peak_memory_bytes: the most memory that the worker process had resident since it started, with the model; None
            where it was not read.
        warm_up_ns: when the warm-up began and ended, on CLOCK_MONOTONIC; None where there was none, and in runs of an
            older powerlab.
        nodes: the devices that trained together, the first one first; none where one device ran the model.
    """

    sample_period_s: float
    load_ns: int | None = None
    idle_before_ns: tuple[int, int] | None = None
    idle_after_ns: tuple[int, int] | None = None
    drift: str | None = None
    suspended_s: float = 0.0
    clock_jump_s: float = 0.0
    power_failure: str | None = None
    background_cores: float | None = None
    idle_background_cores: float | None = None
    background_limit_cores: float = 0.5
    lively: Mapping[str, float] = field(default_factory=dict)
    throttled: tuple[str, ...] = ()
    idle_throttled: tuple[str, ...] = ()
    sampling_core_share: float | None = None
    idle_s: float = 0.0
    warm_up_s: float = 0.0
    unsteady: tuple[str, ...] = ()
    measured_with: str = ""
    engine_version: str = ""
    processor_name: str = ""
    output_difference: float | None = None
    output_accuracy: OutputAccuracy | None = None
    labelled_accuracy: LabelledAccuracy | None = None
    device_state: DeviceState | None = None
    clock_offset: ClockOffset | None = None
    temperature_guard: str = ""
    traces_shed: str = ""
    peak_memory_bytes: int | None = None
    warm_up_ns: tuple[int, int] | None = None
    nodes: tuple[NodePower, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measured repeat of a point.

    Attributes:
        id: a UUID given by the device that measured it, so that uploads can be repeated.
        sweep_id: the sweep it belongs to.
        point: what was run.
        repeat: 0-based number of the repeat.
        started_at: UTC, ISO 8601.
        window_ns: start and end of the timed part on CLOCK_MONOTONIC; (0, 0) for a failed run.
        inference_count: queries answered in the timed part: an inference each, but for multi-stream's eight images.
        verdict: the worst of ``findings``.
        findings: what the validity rules said.
        metrics: the figures; without power the power metrics are left out, never 0.
        total: the formula of the board's power; None where no rail could be read.
        budget: what the intervals of power and energy are made of.
        conditions: what the rules looked at beside the traces; None for a failed run.
    """

    id: str
    sweep_id: str
    point: Point
    repeat: int
    started_at: str
    window_ns: tuple[int, int]
    inference_count: int
    verdict: Verdict
    findings: tuple[Finding, ...]
    metrics: tuple[Metric, ...]
    total: TotalFormula | None
    budget: tuple[Contribution, ...] = ()
    conditions: Conditions | None = None

    def metric(self, name: str) -> Metric | None:
        """Return the metric of that name, or None where the run has none."""
        return next((metric for metric in self.metrics if metric.name == name), None)
