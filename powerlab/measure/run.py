"""Measure one run: a worker runs the model while power is recorded; then judge the run and compute its figures."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain

from powerlab.backends.packages import installed_version
from powerlab.backends.registry import backend_module
from powerlab.domain.accuracy import LabelledAccuracy, OutputAccuracy
from powerlab.domain.errors import PowerlabError
from powerlab.domain.model_name import stored_model
from powerlab.domain.phase import RunPhase
from powerlab.domain.place import Place
from powerlab.domain.power import Part, Trace
from powerlab.domain.preflight import core_list
from powerlab.domain.quantity import Provenance
from powerlab.domain.rigour import least_inferences
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Processor
from powerlab.measure.duration import window_s
from powerlab.measure.evidence import Evidence
from powerlab.measure.figures import figures_of
from powerlab.measure.heat.guard import HeatGuard
from powerlab.measure.nodes import with_nodes
from powerlab.measure.percentiles.latency import TimedInferences, latency_trace, part_traces
from powerlab.measure.recording.background_load import BackgroundLoad, background_limit_cores
from powerlab.measure.recording.clock_rates import ClockRates
from powerlab.measure.recording.clocks import read_clocks
from powerlab.measure.recording.device_state import read_device_state
from powerlab.measure.recording.parts import cut, joined, span_of
from powerlab.measure.recording.phases import phase_wait_s
from powerlab.measure.recording.rails import IdleBaseline, Meter, Recording, idle_baseline, most_cores
from powerlab.measure.recording.temperature import Thermometer
from powerlab.measure.scenarios.registry import SCENARIOS
from powerlab.measure.steady.cool_down import Start, cool_down
from powerlab.measure.steady.warm_up import warm_up
from powerlab.measure.worker.cores import check_usable
from powerlab.measure.worker.memory import peak_memory_bytes
from powerlab.measure.worker.messages import Load, Measure
from powerlab.measure.worker.process import Worker
from powerlab.modes.knobs.cpu_quota.knob import join
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
        idle: the idle baseline after the run before this one, in the same power mode; None where there is none, and
            one is measured.
        drifted: says what changed in the power mode since it was set; None where it held.
        like_c: how warm the first run in the same power mode began, in °C; None for that run itself.
        output_difference: how far the engine's outputs were from the built-in engine's; None where none were compared.
        output_accuracy: how exact the outputs of a low precision were; None in fp32, and where none were compared.
        labelled_accuracy: how often its answer was the label; None where no labelled images were given.
        model_files: where the models lie that the plan names by their SHA-256, by the plan's word for them.
        announce: is told of each phase before it begins, and how long it takes, about, in s.
    """

    sweep_id: str
    plan: SweepPlan
    point: Point
    repeat: int
    meter: Meter
    idle: IdleBaseline | None
    drifted: Callable[[], str | None]
    like_c: float | None = None
    output_difference: float | None = None
    output_accuracy: OutputAccuracy | None = None
    labelled_accuracy: LabelledAccuracy | None = None
    model_files: Mapping[str, str] = field(default_factory=dict)
    announce: Callable[[RunPhase, float | None], None] = lambda _phase, _left_s: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A run, all that was recorded with it, the idle baseline after it, and how warm it began in °C."""

    run: Run
    traces: tuple[Trace, ...] = ()
    idle_after: IdleBaseline | None = None
    start_c: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recorded:
    """What the recording of a run gives: its times, what the rules judge, and what is only shown."""

    timed: TimedInferences
    evidence: Evidence
    idle_after: IdleBaseline | None
    start_c: float | None
    shown: tuple[Trace, ...] = ()


def worker_cores(point: Point) -> frozenset[int]:
    """Return the cores a point names, or the first ones of this process's mask.

    A simulated board may have more cores than the host: then those of the host that there are.
    """
    mask = sorted(os.sched_getaffinity(0))
    named = core_list(point.cores)
    if named is not None:
        return frozenset(mask) & named or frozenset(mask[: point.threads])
    return frozenset(mask[: point.threads])


SIMULATED_SPIN_US = 20
"""A thread that spins takes processor time, which a simulated board takes for work; much of it on a busy host."""


def load_request(
    point: Point,
    meter: Meter,
    seed: int,
    model_files: Mapping[str, str] | None = None,
    place: Place | None = None,
) -> Load:
    """Return the message that makes a worker load a point's model, for this device's part of a batch.

    Args:
        point: what is to be run.
        meter: where.
        seed: of the inputs.
        model_files: where the models lie that the plan names by their SHA-256, by the plan's word for them.
        place: the worker's place among those that train together; None where it trains, or infers, by itself.

    Raises:
        PowerlabError: the model is named by its SHA-256 and nobody has fetched it.
    """
    return Load(
        backend_module=backend_module(point.workload.engine, point.workload.kind),
        workload=replace(
            point.workload,
            model=_here(point.workload.model, model_files or {}),
            batch_size=point.workload.batch_size // point.workload.nodes,
        ),
        threads=point.threads,
        sysroot=str(meter.sysroot.base),
        seed=seed,
        spin_us=_spin_us(point, meter),
        place=place,
    )


def _here(model: str, model_files: Mapping[str, str]) -> str:
    """Return what an engine can load: a zoo name or the path of a file."""
    if model not in model_files and stored_model(model) is not None:
        raise PowerlabError(
            f"{model} lies on a server; fetch it with `powerlab models download` and name the file, or sweep it on an "
            "enrolled device."
        )
    return model_files.get(model, model)


def _spin_us(point: Point, meter: Meter) -> int | None:
    load = point.workload
    own = meter.sysroot.simulated and load.engine == "builtin" and load.processor is Processor.CPU and not load.trains
    return SIMULATED_SPIN_US if own and point.spin_us is None else point.spin_us


def measure_run(request: RunRequest) -> Measured:
    """Measure one repeat of a point.

    Raises:
        WorkerError: the worker died, hung or answered with garbage.
        TooHotError: the device passed the plan's highest temperature, or nobody could watch it.
        PowerlabError: the model or the device refused, for a reason the user can fix.
    """
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    recorded = _record(request)
    timed, evidence = recorded.timed, recorded.evidence
    figures = figures_of(request.point, timed, evidence, _provenance(request))
    run = Run(
        id=str(uuid.uuid4()),
        sweep_id=request.sweep_id,
        point=request.point,
        repeat=request.repeat,
        started_at=started_at,
        window_ns=timed.window_ns,
        inference_count=timed.count,
        verdict=figures.verdict,
        findings=figures.findings,
        metrics=figures.metrics,
        total=request.meter.total,
        budget=figures.budget,
        conditions=replace(evidence.conditions(), nodes=figures.nodes or tuple(evidence.nodes)),
    )
    return Measured(
        run=run,
        traces=(
            *evidence.traces,
            *evidence.idle_traces,
            latency_trace(timed, _provenance(request)),
            *part_traces(timed, _provenance(request)),
            *recorded.shown,
        ),
        idle_after=recorded.idle_after,
        start_c=recorded.start_c,
    )


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


def _record(request: RunRequest) -> _Recorded:
    """Run the worker's timed part with the recorder on, between two idle baselines."""
    plan, meter, clocks = request.plan, request.meter, read_clocks()
    workload = request.point.workload
    scenario = SCENARIOS[workload.scenario]
    check_usable(request.point, meter.sysroot)
    idle_s = plan.idle_s + 2 * meter.margin_s if plan.idle_s > 0 else 0.0
    request.announce(RunPhase.LOADING, None)
    place = None if meter.nodes is None else meter.nodes.place()
    listener = () if place is None or place.listener is None else (place.listener,)
    with (
        Worker(worker_cores(request.point), listeners=listener) as worker,
        HeatGuard(meter.sysroot, plan.temperature_limits, worker.kill) as heat_guard,
        ClockRates(meter.sysroot) as clock_rates,
        with_nodes(meter.nodes, request.point, place, worker.kill),
    ):
        join(meter.sysroot, worker.pid)
        processor_name = worker.load(load_request(request.point, meter, plan.seed, request.model_files, place))
        start, cooled = _cool_down(request)
        # What was recorded before the device cooled down is no baseline of what comes now.
        idle_before = None if start.waited_s else request.idle
        if idle_before is None:
            request.announce(RunPhase.IDLE, idle_s)
            idle_before = idle_baseline(meter, plan.idle_s)
        request.announce(RunPhase.WARM_UP, plan.warm_up_s)
        warmed = warm_up(worker, meter, plan, workload)
        query_s = warmed.inference_s * workload.inferences_per_query
        request.announce(RunPhase.TIMED, window_s(plan, request.point, query_s) + 2 * meter.margin_s)
        window = scenario.ready(worker.measure, workload, _window(request))
        state = read_device_state(meter.sysroot)
        background = None if meter.sysroot.simulated else BackgroundLoad(worker.pid)
        with (
            Guard(meter.sysroot) as guard,
            Thermometer(meter.sysroot) as thermometer,
            Recording(meter) as recording,
        ):
            time.sleep(meter.margin_s + phase_wait_s(time.monotonic() + meter.margin_s, request.repeat, meter.rails))
            load_ns = time.monotonic_ns()
            timed = scenario.timed(worker.measure, workload, window)
            background_cores = None if background is None else background.cores()
            traces = recording.finish()
            throttled = (*guard.finish(), *recording.beside.throttled)
            zones = (*thermometer.finish(), *recording.beside.zones)
            peak_memory = peak_memory_bytes(worker.pid)
        request.announce(RunPhase.IDLE, idle_s)
        idle_after = idle_baseline(meter, plan.idle_s)
        watched = heat_guard.words()
        rates = clock_rates.finish()
    clocks_after = read_clocks()
    idles = [idle for idle in (idle_before, idle_after) if idle is not None]
    evidence = Evidence(
        window_ns=timed.window_ns,
        inference_count=timed.count,
        total=meter.total,
        traces=(*traces, *zones),
        sample_period_s=meter.sample_period_s,
        workload=request.point.workload,
        drift=request.drifted() or recording.beside.drift,
        background_cores=most_cores((background_cores, recording.beside.background_cores)),
        idle_background_cores=most_cores(idle.background_cores for idle in idles),
        background_limit_cores=background_limit_cores(),
        idle_s=plan.idle_s,
        idle_before=None if idle_before is None else idle_before.energy,
        idle_after=None if idle_after is None else idle_after.energy,
        idle_traces=tuple(_idle_traces(idle_before, idle_after)),
        idle_before_ns=None if idle_before is None else idle_before.window_ns,
        idle_after_ns=None if idle_after is None else idle_after.window_ns,
        suspended_s=clocks.suspended_until_s(clocks_after),
        clock_jump_s=clocks.jumped_until_s(clocks_after),
        power_failure=recording.failure,
        load_ns=load_ns,
        lively=meter.lively,
        throttled=throttled,
        idle_throttled=tuple(sentence for idle in idles for sentence in idle.throttled),
        sampling_core_share=recording.core_share
        + guard.core_share
        + thermometer.core_share
        + heat_guard.core_share
        + clock_rates.core_share,
        warm_up_s=warmed.duration_s,
        unsteady=(*start.sentences, *warmed.unsteady),
        engine_version=installed_version(workload.engine) or "",
        processor_name=processor_name,
        output_difference=request.output_difference,
        output_accuracy=request.output_accuracy,
        labelled_accuracy=request.labelled_accuracy,
        device_state=state,
        temperature_guard=watched,
        peak_memory_bytes=peak_memory,
        warm_up_ns=warmed.window_ns,
        nodes=() if meter.nodes is None else meter.nodes.powers(meter.own),
    )
    idle_before, idle_after = (
        idle and replace(idle, beside=(*idle.beside, *cut(rates, idle.window_ns))) for idle in (idle_before, idle_after)
    )
    recorded_ns = (timed.window_ns[0] - meter.margin_ns, timed.window_ns[1] + meter.margin_ns)
    shown = (
        *_part(Part.COOL_DOWN, cooled, cut(rates, span_of(cooled))),
        *_part(Part.WARM_UP, warmed.traces, cut(rates, warmed.window_ns)),
        *_part(Part.RUN, cut(rates, recorded_ns)),
        *(_part(Part.IDLE_BEFORE, idle_before.beside) if idle_before else ()),
        *(_part(Part.IDLE_AFTER, idle_after.beside) if idle_after else ()),
    )
    return _Recorded(timed=timed, evidence=evidence, shown=shown, idle_after=idle_after, start_c=start.celsius)


def _cool_down(request: RunRequest) -> tuple[Start, tuple[Trace, ...]]:
    """Wait until the device is cool enough; return how warm it is then, and what was recorded if it had to wait."""
    meter = request.meter
    with ExitStack() as stack:
        recording, thermometer = Recording(meter), Thermometer(meter.sysroot)

        def begins() -> None:
            request.announce(RunPhase.COOLING, request.plan.cool_down_s)
            stack.enter_context(recording)
            stack.enter_context(thermometer)

        start = cool_down(meter.sysroot, request.like_c, request.plan.cool_down_s, begins=begins)
        if not start.waited_s:
            return start, ()
        return start, joined((recording.finish(), thermometer.finish()))


def _part(part: Part, *traces: Iterable[Trace]) -> Iterator[Trace]:
    return (replace(trace, part=part) for trace in chain(*traces))


def _window(request: RunRequest) -> Measure:
    """Return what the plan asks the worker for; queries of the server scenario arrive anew in every repeat."""
    plan = request.plan
    return Measure(
        duration_s=plan.duration_s,
        min_inferences=least_inferences(plan.rigour, plan.min_inferences, request.point.workload),
        margin_s=request.meter.margin_s,
        arrival_seed=(abs(plan.seed), request.repeat),
    )


def _provenance(request: RunRequest) -> Provenance:
    return Provenance.SIMULATED if request.meter.sysroot.simulated else Provenance.MEASURED


def _idle_traces(before: IdleBaseline | None, after: IdleBaseline | None) -> Iterator[Trace]:
    """Yield what was recorded around both idle baselines; a run keeps both, also the one it shares with another run."""
    for part, idle in ((Part.IDLE_BEFORE, before), (Part.IDLE_AFTER, after)):
        if idle is not None:
            yield from _part(part, idle.traces)
