"""Findings and figures of a run from its raw record: one computation for measuring and auditing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Contribution, Finding, NodePower, Verdict
from powerlab.domain.sweep import Point
from powerlab.domain.validity import worst_verdict
from powerlab.measure.energy.clocks import with_energies
from powerlab.measure.energy.idle import idle_around
from powerlab.measure.energy.in_step import in_step_parts, missed_shares
from powerlab.measure.energy.of_parts import PartEnergy, part_energies
from powerlab.measure.energy.total import TotalEnergy, energy_budget, energy_metrics
from powerlab.measure.evidence import Evidence
from powerlab.measure.output_accuracy import accuracy_metrics, label_metrics
from powerlab.measure.percentiles.latency import TimedInferences, percentile_ms
from powerlab.measure.rules.stalled import stalled_s
from powerlab.measure.scenarios.registry import latency_metrics_from
from powerlab.measure.steady.temperature_metrics import temperature_metrics
from powerlab.measure.validity import judge, usable_energy

_BYTES_PER_MB = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What a run says of itself: findings, verdict, figures, what their intervals are made of, each device's energy."""

    findings: tuple[Finding, ...]
    verdict: Verdict
    metrics: tuple[Metric, ...]
    budget: tuple[Contribution, ...]
    nodes: tuple[NodePower, ...]


def figures_of(point: Point, timed: TimedInferences, evidence: Evidence, provenance: Provenance) -> Figures:
    """Judge a run and work out its figures.

    Args:
        point: what was run.
        timed: start and end of every query of the timed part.
        evidence: everything else that is known; what follows from the times alone is added here.
        provenance: of latency and throughput; power has its rails' own.
    """
    findings = judge(
        replace(
            evidence,
            latency_p99_ms=percentile_ms(timed, 0.99),
            stalled_s=stalled_s(timed),
            missed_shares=missed_shares(evidence.total_traces(), timed),
        ),
    )
    images = timed.count * point.workload.images_per_query
    energy, idle = _usable_energy(evidence, findings, timed), idle_around(evidence.idle_before, evidence.idle_after)
    of_parts = () if energy is None else _of_parts(point, timed, evidence)
    return Figures(
        findings=findings,
        verdict=worst_verdict(findings),
        metrics=(
            *latency_metrics_from(point.workload, timed, provenance),
            *(() if energy is None else energy_metrics(energy, idle, images)),
            *(one.metric() for one in of_parts),
            *temperature_metrics(evidence.traces, timed.window_ns),
            *_worker_metrics(evidence, provenance),
            *(() if evidence.output_accuracy is None else accuracy_metrics(evidence.output_accuracy, provenance)),
            *(() if evidence.labelled_accuracy is None else label_metrics(evidence.labelled_accuracy, provenance)),
        ),
        budget=(
            *(() if energy is None else energy_budget(energy, idle, images)),
            *(line for one in of_parts for line in one.budget()),
        ),
        nodes=()
        if energy is None
        else with_energies(evidence.nodes, evidence.total_traces(), energy.parts, evidence.window_ns),
    )


def _of_parts(point: Point, timed: TimedInferences, evidence: Evidence) -> tuple[PartEnergy, ...]:
    """Return the energy of the parts of a step of training.

    Slices of a batch go through them each by itself, and several devices wait for each other between them.
    """
    alone = point.workload.slices == point.workload.nodes == 1
    return tuple(part_energies(evidence.total_traces(), timed)) if alone else ()


def _usable_energy(evidence: Evidence, findings: tuple[Finding, ...], timed: TimedInferences) -> TotalEnergy | None:
    """Return the board's energy with what a load in step with a sensor may have hidden from it."""
    energy = usable_energy(evidence, findings)
    if energy is None:
        return None
    hidden = in_step_parts(evidence.total_traces(), evidence.idle_traces, timed)
    return replace(energy, parts=(*energy.parts, *hidden))


def _worker_metrics(evidence: Evidence, provenance: Provenance) -> Iterator[Metric]:
    """Yield the worker's memory, and what powerlab's own sampling cost beside it, where they were counted."""
    if evidence.peak_memory_bytes is not None:
        yield Metric(name="peak_memory_mb", value=evidence.peak_memory_bytes / _BYTES_PER_MB, provenance=provenance)
    if evidence.sampling_core_share is not None:
        yield Metric(name="sampling_core_percent", value=100 * evidence.sampling_core_share, provenance=provenance)
