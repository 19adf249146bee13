"""A plan carried out on a host, as a stream of events."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

from powerlab.backends.registry import BACKENDS
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import check_plan
from powerlab.domain.run import Verdict
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.measure.process import Worker, WorkerError
from powerlab.measure.record import IdleBaseline, Meter
from powerlab.measure.run import Measured, RunRequest, failed_run, load_request, measure_run, worker_cores
from powerlab.sweep.advice import advice
from powerlab.sweep.events import RunFinished, RunStarted, SweepEvent, SweepFinished, SweepStarted
from powerlab.sweep.expected import expected_s
from powerlab.sweep.host import Host
from powerlab.sweep.meter import calibrated_meter, choose_meter, watch_s, watched_meter
from powerlab.sweep.order import ModeVisit, visits


def run_sweep(
    plan: SweepPlan,
    sweep_id: str,
    host: Host,
    done: frozenset[tuple[str, int]] = frozenset(),
    stop: threading.Event | None = None,
) -> Generator[SweepEvent, None, None]:
    """Carry out a plan; a run that fails is recorded and the sweep goes on.

    The power mode is restored when the generator ends, is closed, or raises.

    Args:
        plan: what to run.
        sweep_id: stored with every run.
        host: where to run it.
        done: (point id, repeat) of runs measured before; they are left out.
        stop: when set, the sweep ends after the run in progress.

    Yields:
        events in the order in which things happen.

    Raises:
        PowerlabError: the plan cannot be carried out here (raised before the first event).
    """
    host.controller.recover()
    capabilities = host.capabilities(plan.modes)
    check_plan(plan, host.device(), capabilities, tuple(BACKENDS))
    meter = choose_meter(host.sysroot, capabilities, plan.sample_period_s)
    check_models(plan, meter)
    order = visits(plan, done)
    run_count = sum(len(visit.points) for visit in order)
    if run_count:
        meter = calibrated_meter(watched_meter(meter, watch_s(plan.duration_s)), meter.rails, host.device())
    yield SweepStarted(
        sweep_id=sweep_id,
        run_count=run_count,
        expected_s=expected_s(plan, order, meter.margin_s),
        advice=advice(plan, meter) if run_count else "",
    )
    sweep = _Sweep(plan=plan, sweep_id=sweep_id, host=host, meter=meter, run_count=run_count, stop=stop)
    verdicts: Counter[Verdict] = Counter()
    for visit in order:
        if sweep.stopped():
            break
        for event in sweep.visit(visit):
            if isinstance(event, RunFinished):
                verdicts[event.run.verdict] += 1
            yield event
    yield SweepFinished(
        sweep_id=sweep_id,
        valid_count=verdicts[Verdict.VALID],
        flagged_count=verdicts[Verdict.FLAGGED],
        void_count=verdicts[Verdict.VOID],
        failed_count=verdicts[Verdict.FAILED],
    )


def check_models(plan: SweepPlan, meter: Meter) -> None:
    """Load every model once at every batch size, in a worker, before anything is measured.

    A worker that crashes here says nothing yet: its runs will be recorded as failed.

    Raises:
        PowerlabError: a model cannot be read or run, with the reason.
    """
    first_at = {(point.workload.model, point.workload.batch_size): point for point in reversed(plan.points())}
    for point in first_at.values():
        try:
            with Worker(worker_cores(point)) as worker:
                worker.load(load_request(point, meter, plan.seed))
        except WorkerError:
            continue


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sweep:
    """What every run of a sweep shares, and the runs' running number."""

    plan: SweepPlan
    sweep_id: str
    host: Host
    meter: Meter
    run_count: int
    stop: threading.Event | None
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def stopped(self) -> bool:
        """Whether the sweep should end."""
        return self.stop is not None and self.stop.is_set()

    def visit(self, visit: ModeVisit) -> Iterator[RunStarted | RunFinished]:
        """Set the mode, run every point between idle baselines, restore the mode."""
        idle: IdleBaseline | None = None
        refusal: str | None = None
        with ExitStack() as stack:
            try:
                stack.enter_context(self.host.controller.applied(visit.mode))
            except PowerlabError as error:
                refusal = str(error)
            for point in visit.points:
                if self.stopped():
                    return
                index = next(self.numbers)
                yield RunStarted(point=point, repeat=visit.repeat, index=index, run_count=self.run_count)
                measured = _measured_or_failed(self._request(visit, point, idle), refusal)
                idle = measured.idle_after
                yield RunFinished(run=measured.run, traces=measured.traces, index=index, run_count=self.run_count)

    def _request(self, visit: ModeVisit, point: Point, idle: IdleBaseline | None) -> RunRequest:
        return RunRequest(
            sweep_id=self.sweep_id,
            plan=self.plan,
            point=point,
            repeat=visit.repeat,
            meter=self.meter,
            idle=idle,
            drifted=partial(self.host.controller.drifted, visit.mode),
        )


def _measured_or_failed(request: RunRequest, refusal: str | None) -> Measured:
    if refusal is not None:
        return Measured(run=failed_run(request, "mode-not-ready", refusal))
    try:
        return measure_run(request)
    except WorkerError as error:
        return Measured(run=failed_run(request, "worker-failed", str(error)))
    except PowerlabError as error:
        return Measured(run=failed_run(request, "refused", str(error)))
