"""Recompute a run's findings and figures from its raw record alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import IDLE_PARTS, POWER_QUANTITIES, Part, RailQuantity, Trace
from powerlab.domain.run import Conditions, Run, Verdict
from powerlab.measure.energy.rail import covers
from powerlab.measure.energy.total import TotalEnergy, total_energy
from powerlab.measure.evidence import Evidence
from powerlab.measure.figures import Figures, figures_of
from powerlab.measure.percentiles.latency import TimedInferences, from_trace, is_latency

_NO_EVIDENCE = (RailQuantity.LATENCY, RailQuantity.CLOCK)
"""Latencies come as a table of their own, and clocks are shown and not judged."""


def recompute(run: Run, traces: Sequence[Trace]) -> tuple[TimedInferences, Evidence, Figures]:
    """Work out everything that a run says of itself.

    Args:
        run: of it only what was planned, seen or counted is used: its point, total, conditions. No figure is.
        traces: all that was recorded with it, in every part.

    Raises:
        PowerlabError: the record is not enough to audit the run, with what is missing.
    """
    if run.verdict is Verdict.FAILED:
        raise PowerlabError(f"run {run.id} failed and has no figures to audit; choose one that was measured.")
    if run.conditions is None:
        raise PowerlabError(
            f"run {run.id} was measured by an older powerlab, which did not keep what its rules looked at; "
            "measure it again to audit it."
        )
    if run.conditions.traces_shed:
        raise PowerlabError(f"run {run.id} cannot be audited: {run.conditions.traces_shed}")
    of_queries = [trace for trace in traces if trace.rail.quantity is RailQuantity.LATENCY]
    latencies = next(filter(is_latency, of_queries), None)
    if latencies is None:
        raise PowerlabError(f"the latencies of run {run.id} are not stored; audit it where its traces are.")
    timed = from_trace(latencies, [trace for trace in of_queries if trace is not latencies])
    evidence = _evidence(run, run.conditions, timed, traces)
    return timed, evidence, figures_of(run.point, timed, evidence, latencies.rail.provenance)


def _evidence(run: Run, conditions: Conditions, timed: TimedInferences, traces: Sequence[Trace]) -> Evidence:
    """Put together what the rules looked at; what stands in the run twice is taken from what was recorded."""
    kept = {one.name: getattr(conditions, one.name) for one in fields(Conditions)}
    return Evidence(
        **kept,
        window_ns=timed.window_ns,
        inference_count=timed.count,
        total=run.total,
        traces=tuple(trace for trace in traces if trace.part is Part.RUN and trace.rail.quantity not in _NO_EVIDENCE),
        workload=run.point.workload,
        idle_traces=tuple(
            trace for trace in traces if trace.part in IDLE_PARTS and trace.rail.quantity in POWER_QUANTITIES
        ),
        idle_before=_idle(run, conditions.idle_before_ns, Part.IDLE_BEFORE, traces),
        idle_after=_idle(run, conditions.idle_after_ns, Part.IDLE_AFTER, traces),
    )


def _idle(run: Run, window_ns: tuple[int, int] | None, part: Part, traces: Sequence[Trace]) -> TotalEnergy | None:
    """Return the energy of an idle baseline; None where the run had none, or its samples are not all there."""
    if run.total is None or window_ns is None:
        return None
    chosen = [trace for trace in traces if trace.part is part and trace.rail.quantity in POWER_QUANTITIES]
    found = {trace.rail.key for trace in chosen if covers(trace, *window_ns)}
    return total_energy(run.total, chosen, window_ns) if set(run.total.rails) <= found else None
