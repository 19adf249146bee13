"""Domain objects of a layer profile: time and energy of every layer of a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric, MetricKind
from powerlab.domain.run import Finding

LAYER_METRICS: dict[str, MetricKind] = {
    "layer_time_ms": MetricKind(unit="ms", title="Time within an inference", higher_is_better=False),
    "layer_alone_ms": MetricKind(unit="ms", title="Time when repeated alone", higher_is_better=False),
    "layer_power_w": MetricKind(unit="W", title="Power when repeated alone", higher_is_better=False),
    "layer_energy_j": MetricKind(unit="J", title="Energy within an inference", higher_is_better=False),
    "layer_energy_above_idle_j": MetricKind(
        unit="J", title="Energy within an inference, above idle", higher_is_better=False
    ),
    "layer_idle_power_w": MetricKind(unit="W", title="Idle power in the same mode", higher_is_better=False),
    "whole_per_sum_energy": MetricKind(unit="", title="Whole ÷ sum of its layers, energy", higher_is_better=False),
    "whole_per_sum_time": MetricKind(unit="", title="Whole ÷ sum of its layers alone, time", higher_is_better=False),
}
"""Every figure of a layer profile. They are no figures of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One step of the engine's plan.

    Attributes:
        index: its place in the plan, from 0.
        name: the node it computes, or what it does where it computes none.
        operator: that node's operator after the passes; empty where it computes none.
        nodes: the nodes of the model that it stands for: the engine puts several into one step.
        kernel: what computes it.
        shape: of its result, NCHW.
        flops: floating-point operations, two for a multiply-add, however the kernel saves some of them.
        bytes_moved: operands, weights and result, each once, in float32.
        once_us: how long it took in one inference, which lay in the middle of all.
        time: ms within an inference.
        alone: ms when repeated alone, with its operands and weights in whatever caches hold them then.
        power: W while it was repeated alone; None where power cannot be read or used.
        energy: J within an inference: ``power`` for as long as ``time``, idle power included.
        above_idle: J within an inference above what idling as long costs; None without an idle baseline.
        share_percent: of the whole inference's energy; of its time where there is no energy.
        steady: whether the last window showed no drift of the power.
        windows: how many windows that took.
        findings: what the validity rules said.
    """

    index: int
    name: str
    operator: str
    nodes: tuple[str, ...]
    kernel: str
    shape: tuple[int, ...]
    flops: int
    bytes_moved: int
    once_us: float
    time: Metric
    alone: Metric
    power: Metric | None = None
    energy: Metric | None = None
    above_idle: Metric | None = None
    share_percent: float = 0.0
    steady: bool = True
    windows: int = 1
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """The whole inference, or the sum of its layers.

    Attributes:
        time: ms; of a sum, what the layers take when repeated alone.
        power: W on the mean.
        energy: J, idle power included.
        above_idle: J above idle.
    """

    time: Metric
    power: Metric | None = None
    energy: Metric | None = None
    above_idle: Metric | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Roof:
    """What the processor can do at most, measured with the same threads (Williams et al., 2009).

    Attributes:
        peak_gflops: 10^9 floating-point operations a second out of registers.
        memory_gb_per_s: 10^9 bytes a second through memory.
    """

    peak_gflops: float
    memory_gb_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerProfile:
    """Time and energy of every layer of one network, as one device runs it.

    Attributes:
        id: a UUID.
        started_at: UTC, ISO 8601.
        device_name: what people call the device.
        model: zoo name or file.
        batch_size: images in an inference.
        threads: threads that compute.
        mode: the power mode.
        tier: the instruction set.
        seconds_per_layer: how long a window lasts.
        seed: makes the order of the layers repeatable.
        total: the formula of the board's power; None where no rail can be read.
        no_power: why there are no power figures; empty where there are.
        idle_power: W without load, before and after.
        whole: the whole inference, measured in windows of its own between the layers'.
        layers: in the order of the plan.
        total_of_layers: what they add up to.
        total_of_parts: what those of each part of a step of training add up to, by its name, in order; time is within a
            step. Empty for an inference.
        energy_ratio: energy of the whole ÷ energy of its layers; None without power.
        time_ratio: time of the whole ÷ time of its layers when each is repeated alone: what caches make of it.
        roof: None where it was not measured.
        no_roof: why there is none; empty where there is one.
        findings: on the whole profile.
    """

    id: str
    started_at: str
    device_name: str
    model: str
    batch_size: int
    threads: int
    mode: str
    tier: str
    seconds_per_layer: float
    seed: int
    total: TotalFormula | None
    no_power: str
    idle_power: Metric | None
    whole: Whole
    layers: tuple[Layer, ...]
    total_of_layers: Whole
    energy_ratio: Metric | None
    time_ratio: Metric
    roof: Roof | None
    no_roof: str
    findings: tuple[Finding, ...] = ()
    total_of_parts: Mapping[str, Whole] = field(default_factory=dict)
