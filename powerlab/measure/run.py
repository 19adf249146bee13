"""One run: a worker measured while its board's power is recorded, judged and put into figures."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np

from powerlab.backends.registry import backend_module
from powerlab.domain.power import Trace
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.validity import worst_verdict
from powerlab.measure.background import BackgroundLoad
from powerlab.measure.clocks import suspended_since_boot_s
from powerlab.measure.latency import TimedInferences, latency_metrics, throughput_metric
from powerlab.measure.messages import Load, Measure
from powerlab.measure.power import TotalEnergy, energy_metrics
from powerlab.measure.process import Worker
from powerlab.measure.record import IdleBaseline, Meter, Recording, usable_energy
from powerlab.measure.validity import Evidence, judge
from powerlab.modes.cpu_quota import join
from powerlab.throttling.guard import Guard


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """What one run needs to know.

    Attributes:
        sweep_id: stored with the run.
        plan: durations and counts.
        point: what to run.
        repeat: 0-based number of the repeat.
        meter: how power is read.
        idle: the idle baseline of the same power mode; None where there is none.
        drifted: says what changed in the power mode since it was set; None where it held.
    """

    sweep_id: str
    plan: SweepPlan
    point: Point
    repeat: int
    meter: Meter
    idle: IdleBaseline | None
    drifted: Callable[[], str | None]


def worker_cores(threads: int) -> frozenset[int]:
    """Return the first cores of this process's mask; a simulated board may have more threads than the host cores."""
    return frozenset(sorted(os.sched_getaffinity(0))[:threads])


def load_request(point: Point, meter: Meter, seed: int) -> Load:
    """Return the message that makes a worker load a point's model."""
    return Load(
        backend_module=backend_module(point.workload.engine),
        model=point.workload.model,
        batch_size=point.workload.batch_size,
        threads=point.threads,
        sysroot=str(meter.sysroot.base),
        seed=seed,
    )


def measure_run(request: RunRequest) -> tuple[Run, tuple[Trace, ...]]:
    """Measure one repeat of a point.

    Raises:
        WorkerError: the worker died, hung or answered with garbage.
        PowerlabError: the model or the device refused, for a reason the user can mend.
    """
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    timed, evidence = _record(request)
    findings = judge(evidence)
    run = Run(
        id=str(uuid.uuid4()),
        sweep_id=request.sweep_id,
        point=request.point,
        repeat=request.repeat,
        started_at=started_at,
        window_ns=timed.window_ns,
        inference_count=timed.count,
        verdict=worst_verdict(findings),
        findings=findings,
        metrics=(
            *_metrics(request, timed, usable_energy(evidence, findings)),
            *_sampling_metric(request, evidence.sampling_core_share),
        ),
        total=request.meter.total,
    )
    return run, tuple(_near(trace, timed.window_ns, request.meter.margin_s) for trace in evidence.traces)


def failed_run(request: RunRequest, rule: str, reason: str) -> Run:
    """Return the record of a run that gave no figures."""
    return Run(
        id=str(uuid.uuid4()),
        sweep_id=request.sweep_id,
        point=request.point,
        repeat=request.repeat,
        started_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        window_ns=(0, 0),
        inference_count=0,
        verdict=Verdict.FAILED,
        findings=(Finding(rule=rule, verdict=Verdict.FAILED, detail=reason),),
        metrics=(),
        total=request.meter.total,
    )


def _record(request: RunRequest) -> tuple[TimedInferences, Evidence]:
    """Run the worker's timed part with the recorder on; return its times and what the rules judge."""
    plan, meter = request.plan, request.meter
    with Worker(worker_cores(request.point.threads)) as worker:
        join(meter.sysroot, worker.pid)
        worker.load(load_request(request.point, meter, plan.seed))
        worker.warm_up(plan.warm_up_s)
        slept_s = suspended_since_boot_s()
        background = None if meter.sysroot.simulated else BackgroundLoad(worker.pid)
        with Guard(meter.sysroot) as guard, Recording(meter) as recording:
            time.sleep(meter.margin_s)
            load_ns = time.monotonic_ns()
            timed = worker.measure(
                Measure(duration_s=plan.duration_s, min_inferences=plan.min_inferences, margin_s=meter.margin_s)
            )
            background_cores = None if background is None else background.cores()
            traces = recording.finish()
            throttled = guard.finish()
    return timed, Evidence(
        window_ns=timed.window_ns,
        inference_count=timed.count,
        total=meter.total,
        traces=traces,
        sample_period_s=meter.sample_period_s,
        drift=request.drifted(),
        background_cores=background_cores,
        idle_background_cores=None if request.idle is None else request.idle.background_cores,
        suspended_s=suspended_since_boot_s() - slept_s,
        power_failure=recording.failure,
        load_ns=load_ns,
        lively=meter.lively,
        throttled=throttled,
        idle_throttled=() if request.idle is None else request.idle.throttled,
        sampling_core_share=recording.core_share + guard.core_share,
    )


def _metrics(request: RunRequest, timed: TimedInferences, energy: TotalEnergy | None) -> tuple[Metric, ...]:
    provenance = Provenance.SIMULATED if request.meter.sysroot.simulated else Provenance.MEASURED
    batch_size = request.point.workload.batch_size
    metrics = (*latency_metrics(timed, provenance), throughput_metric(timed, batch_size, provenance))
    if energy is None:
        return metrics
    idle = None if request.idle is None else request.idle.energy
    return (*metrics, *energy_metrics(energy, idle, timed.count * batch_size))


def _sampling_metric(request: RunRequest, core_share: float | None) -> Iterator[Metric]:
    """Yield what powerlab's own sampling cost, where it was counted."""
    if core_share is not None:
        provenance = Provenance.SIMULATED if request.meter.sysroot.simulated else Provenance.MEASURED
        yield Metric(name="sampling_core_percent", value=100 * core_share, provenance=provenance)


def _near(trace: Trace, window_ns: tuple[int, int], margin_s: float) -> Trace:
    """Cut a trace to the window and its margins."""
    margin_ns = round(margin_s * 1e9)
    keep = (trace.time_ns >= window_ns[0] - margin_ns) & (trace.time_ns <= window_ns[1] + margin_ns)
    return Trace(
        rail=trace.rail,
        time_ns=np.ascontiguousarray(trace.time_ns[keep]),
        value=np.ascontiguousarray(trace.value[keep]),
        read_cost_ns=trace.read_cost_ns,
    )
