"""Quantities with a unit, an uncertainty and a provenance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from powerlab.domain.errors import PowerlabError


class Provenance(StrEnum):
    """Where a figure comes from. It travels with the figure into every table, answer and picture."""

    MEASURED = "measured"
    ESTIMATED = "estimated"
    SIMULATED = "simulated"
    PUBLISHED = "published"


def common_provenance(provenances: Iterable[Provenance]) -> Provenance:
    """Return the one provenance all figures share.

    Raises:
        PowerlabError: the figures come from different places, or there are none; such figures are never combined.
    """
    distinct = sorted(set(provenances))
    if len(distinct) != 1:
        found = ", ".join(distinct) or "none"
        raise PowerlabError(
            f"figures of different provenance cannot be combined (found: {found}); compare them side by side instead."
        )
    return distinct[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One figure of a run.

    Attributes:
        name: a key of :data:`METRICS`.
        value: the figure in the unit that :data:`METRICS` states.
        low: lower end of the 95 % interval, in the same unit; None where no interval can be given.
        high: upper end of the 95 % interval; None together with ``low``.
        provenance: where the figure comes from.
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    provenance: Provenance


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricKind:
    """What a metric's name means."""

    unit: str
    title: str
    higher_is_better: bool


METRICS: dict[str, MetricKind] = {
    "latency_p50_ms": MetricKind(unit="ms", title="Median latency", higher_is_better=False),
    "latency_p90_ms": MetricKind(unit="ms", title="90th percentile latency", higher_is_better=False),
    "latency_p95_ms": MetricKind(unit="ms", title="95th percentile latency", higher_is_better=False),
    "latency_p99_ms": MetricKind(unit="ms", title="99th percentile latency", higher_is_better=False),
    "latency_p99_9_ms": MetricKind(unit="ms", title="99.9th percentile latency", higher_is_better=False),
    "latency_p90_early_ms": MetricKind(
        unit="ms", title="90th percentile latency, at most (99 % sure)", higher_is_better=False
    ),
    "latency_p99_early_ms": MetricKind(
        unit="ms", title="99th percentile latency, at most (99 % sure)", higher_is_better=False
    ),
    "forward_p50_ms": MetricKind(unit="ms", title="Median forward pass", higher_is_better=False),
    "backward_p50_ms": MetricKind(unit="ms", title="Median backward pass", higher_is_better=False),
    "reduce_p50_ms": MetricKind(unit="ms", title="Median wait for other devices' gradients", higher_is_better=False),
    "update_p50_ms": MetricKind(unit="ms", title="Median update of the weights", higher_is_better=False),
    "server_queries_per_s": MetricKind(
        unit="queries/s", title="Queries per second within the latency bound", higher_is_better=True
    ),
    "server_bound_confidence_percent": MetricKind(
        unit="%", title="Confidence that the latency bound is held", higher_is_better=True
    ),
    "throughput_img_per_s": MetricKind(unit="img/s", title="Throughput", higher_is_better=True),
    "power_w": MetricKind(unit="W", title="Power while running", higher_is_better=False),
    "power_by_slopes_w": MetricKind(
        unit="W", title="Power by the trapezoid of the counters' slopes", higher_is_better=False
    ),
    "idle_power_w": MetricKind(unit="W", title="Idle power in the same mode", higher_is_better=False),
    "energy_per_image_j": MetricKind(unit="J/img", title="Energy per image", higher_is_better=False),
    "energy_above_idle_per_image_j": MetricKind(
        unit="J/img", title="Energy per image above idle", higher_is_better=False
    ),
    "forward_energy_j": MetricKind(unit="J", title="Energy of a step's forward pass", higher_is_better=False),
    "backward_energy_j": MetricKind(unit="J", title="Energy of a step's backward pass", higher_is_better=False),
    "update_energy_j": MetricKind(unit="J", title="Energy of a step's update of the weights", higher_is_better=False),
    "efficiency_img_per_s_per_w": MetricKind(
        unit="img/s/W", title="Efficiency (images per joule)", higher_is_better=True
    ),
    "start_temperature_c": MetricKind(unit="°C", title="Hottest zone at the start", higher_is_better=False),
    "end_temperature_c": MetricKind(unit="°C", title="Hottest zone at the end", higher_is_better=False),
    "output_sqnr_db": MetricKind(
        unit="dB", title="Signal to quantisation noise of the outputs, beside fp32", higher_is_better=True
    ),
    "top1_agreement_percent": MetricKind(unit="%", title="Top-1 agreement with fp32", higher_is_better=True),
    "top1_accuracy_percent": MetricKind(unit="%", title="Top-1 accuracy on labelled images", higher_is_better=True),
    "peak_memory_mb": MetricKind(unit="MB", title="Peak memory of the worker process", higher_is_better=False),
    "sampling_core_percent": MetricKind(unit="%", title="powerlab's own sampling, of one core", higher_is_better=False),
}
"""Every metric powerlab knows. img/s/W and images per joule are the same number."""

POWER_FIGURES = (
    "power_w",
    "idle_power_w",
    "energy_per_image_j",
    "energy_above_idle_per_image_j",
    "efficiency_img_per_s_per_w",
)
"""The metrics that a run has wherever its power could be used, whatever its scenario."""
