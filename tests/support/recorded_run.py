"""Runs whose figures follow from their record, as a real one's do: for every test that works them out again."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from powerlab.domain.power import Part, Rail, RailQuantity, TotalFormula, Trace
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.measure.energy.total import total_energy
from powerlab.measure.evidence import Evidence
from powerlab.measure.figures import figures_of
from powerlab.measure.percentiles.latency import TimedInferences, latency_trace

SECOND = 1_000_000_000
RECORDED_AT = "2026-01-02T03:04:05.678901+00:00"
POINT = Point(workload=Workload(model="resnet50", batch_size=4), threads=2, mode="current")


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A run and everything that was recorded with it."""

    run: Run
    traces: tuple[Trace, ...]

    def but(self, **changes: Any) -> Recorded:
        """The same with other things in the run."""
        return replace(self, run=replace(self.run, **changes))


def rail(name: str, quantity: RailQuantity = RailQuantity.POWER, **changes: Any) -> Rail:
    fields: dict[str, Any] = {
        "source": "rapl" if quantity is RailQuantity.ENERGY else "ina3221",
        "name": name,
        "quantity": quantity,
        "resolution": 0.008 if quantity is RailQuantity.POWER else 6.1e-5,
        "relative_error": 0.01,
        "update_period_s": 0.01,
        "provenance": Provenance.MEASURED,
    }
    return Rail(**{**fields, **changes})


def trace_of(of: Rail, span_s: tuple[float, float], power_w: float, part: Part = Part.RUN, seed: int = 0) -> Trace:
    """Readings a hundred times a second; a counter counts the same power."""
    time_s = np.arange(*span_s, 0.01)
    value = power_w * (1 + np.random.default_rng(seed).normal(0, 0.02, time_s.size))
    if of.quantity is RailQuantity.ENERGY:
        value = np.cumsum(value) * 0.01
    return Trace(rail=of, time_ns=np.round(time_s * 1e9).astype(np.int64), value=value, read_cost_ns=20_000, part=part)


def recorded_run(
    *,
    sweep_id: str = "s",
    point: Point = POINT,
    repeat: int = 0,
    rails: tuple[Rail, ...] | None = None,
    window_s: float = 5.0,
    query_s: float = 0.02,
    scope: str = "module rails, without the carrier board",
    sample_every: int = 1,
    **found: Any,
) -> Recorded:
    """Return a run at 12 W a rail between idle baselines of 4 W; ``found`` goes into its evidence."""
    rails = rails or (rail("VDD_IN"), rail("package-0", RailQuantity.ENERGY))
    start_s, count = 11.0, round(window_s / query_s)
    random = np.random.default_rng(7)
    edges_s = start_s + np.concatenate(([0.0], np.cumsum(query_s * random.uniform(0.9, 1.1, count))))
    edges_ns = np.round(edges_s * 1e9).astype(np.int64)
    timed = TimedInferences(start_ns=edges_ns[:-1], end_ns=edges_ns[1:])
    total = TotalFormula(rails=tuple(one.key for one in rails), scope=scope)
    idles = {Part.IDLE_BEFORE: (2.0, 4.0), Part.IDLE_AFTER: (edges_s[-1] + 2, edges_s[-1] + 4)}
    windows = {part: (round(a * 1e9), round(b * 1e9)) for part, (a, b) in idles.items()}
    baselines = {
        part: tuple(trace_of(one, (a - 0.2, b + 0.2), 4.0, part, seed) for seed, one in enumerate(rails))
        for part, (a, b) in idles.items()
    }
    running = tuple(trace_of(one, (start_s - 0.5, edges_s[-1] + 0.5), 12.0, seed=9 + n) for n, one in enumerate(rails))
    running = tuple(
        replace(one, time_ns=one.time_ns[::sample_every], value=one.value[::sample_every]) for one in running
    )
    evidence = Evidence(
        **{
            "window_ns": timed.window_ns,
            "inference_count": timed.count,
            "total": total,
            "traces": running,
            "sample_period_s": 0.01 * sample_every,
            "workload": point.workload,
            "load_ns": round((start_s - 0.2) * 1e9),
            "idle_s": 2.0,
            "idle_traces": tuple(one for traces in baselines.values() for one in traces),
            "idle_before": total_energy(total, baselines[Part.IDLE_BEFORE], windows[Part.IDLE_BEFORE]),
            "idle_after": total_energy(total, baselines[Part.IDLE_AFTER], windows[Part.IDLE_AFTER]),
            "idle_before_ns": windows[Part.IDLE_BEFORE],
            "idle_after_ns": windows[Part.IDLE_AFTER],
            "sampling_core_share": 0.01,
            "peak_memory_bytes": 150_000_000,
            **found,
        }
    )
    figures = figures_of(point, timed, evidence, Provenance.MEASURED)
    run = Run(
        id=str(uuid.uuid4()),
        sweep_id=sweep_id,
        point=point,
        repeat=repeat,
        started_at=RECORDED_AT,
        window_ns=timed.window_ns,
        inference_count=timed.count,
        verdict=figures.verdict,
        findings=figures.findings,
        metrics=figures.metrics,
        total=total,
        budget=figures.budget,
        conditions=evidence.conditions(),
    )
    latencies = latency_trace(timed, Provenance.MEASURED)
    return Recorded(run=run, traces=(*evidence.traces, *evidence.idle_traces, latencies))
