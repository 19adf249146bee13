"""Measure every layer of a network, in an order shuffled by a seed."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import UTC, datetime

from powerlab.domain.layers import LayerProfile, Roof
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Processor
from powerlab.measure.energy.idle import idle_around
from powerlab.measure.layers.messages import WHOLE, FindCeilings, LoadLayers, Roofs, Steps
from powerlab.measure.layers.profile import Measured, layer_profile
from powerlab.measure.layers.window import MOST_WINDOWS, StepWindow, steady_window
from powerlab.measure.recording.rails import Meter, idle_baseline
from powerlab.measure.run import worker_cores
from powerlab.measure.worker.process import LOAD_TIMEOUT_S, Worker
from powerlab.modes.knobs.cpu_quota.knob import join

WHOLE_WINDOWS = 3
"""Windows of the whole inference, placed among those of the layers as chance will have it."""
_LOAD_S, _CEILINGS_S, _BETWEEN_S = 2.0, 2.0, 0.2
NO_ROOF_SIMULATED = "a simulated board has no ceilings of its own, and those of this host would say nothing about it"

NO_ROOF_GPU = "what a GPU can do at most is not measured yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersRequest:
    """What a layer profile needs to know.

    Attributes:
        point: model, batch size, threads and power mode.
        device_name: what people call the device.
        meter: how power is read.
        no_power: why there will be no power figures; empty where there will be.
        window_s: how long each window lasts.
        idle_s: how long each idle baseline lasts.
        seed: makes order and inputs repeatable.
        drifted: says what changed in the power mode since it was set; None where it held.
    """

    point: Point
    device_name: str
    meter: Meter
    no_power: str
    window_s: float
    idle_s: float
    seed: int
    drifted: Callable[[], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersStarted:
    """The model is loaded: so many windows, which take so long if each is steady at once, and so long at most."""

    layer_count: int
    window_count: int
    expected_s: float
    longest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowDone:
    """A step, or the whole, has been measured: the ``number``-th of all."""

    name: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LayersFinished:
    """Everything has been measured."""

    profile: LayerProfile


LayersEvent = LayersStarted | WindowDone | LayersFinished


def measure_layers(request: LayersRequest) -> Generator[LayersEvent, None, None]:
    """Measure every layer and the whole, between two idle baselines.

    Yields:
        events in the order in which things happen; the profile last.

    Raises:
        WorkerError: the worker died, hung or answered with garbage.
        PowerlabError: the model or the device refused, for a reason the user can fix.
    """
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds")
    meter = request.meter
    with Worker(worker_cores(request.point)) as worker:
        join(meter.sysroot, worker.pid)
        steps = worker.ask(_load(request), LOAD_TIMEOUT_S, Steps)
        order = shuffled(len(steps.kernels), request.seed)
        yield _started(request, len(steps.kernels), len(order))
        no_roof = _no_roof(request)
        roof = None if no_roof else _roof(worker)
        idle_before = idle_baseline(meter, request.idle_s)
        windows: list[StepWindow] = []
        for number, step in enumerate(order, 1):
            windows.append(steady_window(worker, meter, step, request.window_s))
            yield WindowDone(name=_name(steps, step), number=number)
        idle_after = idle_baseline(meter, request.idle_s)
    energies = (None if idle is None else idle.energy for idle in (idle_before, idle_after))
    yield LayersFinished(
        profile=layer_profile(
            Measured(
                id=str(uuid.uuid4()),
                started_at=started_at,
                device_name=request.device_name,
                point=request.point,
                steps=steps,
                windows=tuple(windows),
                idle=idle_around(*energies),
                roof=roof,
                no_roof=no_roof,
                simulated=meter.sysroot.simulated,
                total=meter.total,
                no_power=request.no_power,
                window_s=request.window_s,
                seed=request.seed,
                drift=request.drifted(),
            )
        )
    )


def shuffled(step_count: int, seed: int) -> list[int]:
    """Return the numbers of all steps, and ``WHOLE`` so often as it is measured, in an order that the seed makes."""
    order = [*range(step_count), *[WHOLE] * WHOLE_WINDOWS]
    random.Random(seed).shuffle(order)  # noqa: S311 - an order, not a secret
    return order


def _load(request: LayersRequest) -> LoadLayers:
    workload = request.point.workload
    return LoadLayers(
        model=workload.model,
        batch_size=workload.batch_size,
        threads=request.point.threads,
        sysroot=str(request.meter.sysroot.base),
        seed=request.seed,
        processor=workload.processor,
        optimizer=workload.optimizer,
    )


def _started(request: LayersRequest, layer_count: int, window_count: int) -> LayersStarted:
    each_s = request.window_s + 4 * request.meter.margin_s + _BETWEEN_S
    idle_s = 2 * (request.idle_s + 2 * request.meter.margin_s) if request.meter.total is not None else 0.0
    around_s = idle_s + (0.0 if request.meter.sysroot.simulated else _CEILINGS_S)
    return LayersStarted(
        layer_count=layer_count,
        window_count=window_count,
        expected_s=around_s + window_count * each_s,
        longest_s=around_s + MOST_WINDOWS * window_count * each_s,
    )


def _no_roof(request: LayersRequest) -> str:
    """Return why there is no roof to measure; nothing where there is one."""
    if request.meter.sysroot.simulated:
        return NO_ROOF_SIMULATED
    return NO_ROOF_GPU if request.point.workload.processor is Processor.GPU else ""


def _roof(worker: Worker) -> Roof:
    found = worker.ask(FindCeilings(), _CEILINGS_S, Roofs)
    return Roof(peak_gflops=found.peak_gflops, memory_gb_per_s=found.memory_gb_per_s)


def _name(steps: Steps, step: int) -> str:
    return "the whole" if step == WHOLE else steps.labels[step]
