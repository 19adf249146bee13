"""Combine windows of steps into a layer profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.layers import Layer, LayerProfile, Roof, Whole
from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric, Provenance, common_provenance
from powerlab.domain.run import Finding, Verdict
from powerlab.domain.sweep import Point
from powerlab.engine.training.layers import part_of
from powerlab.engine.training.parts import PARTS
from powerlab.measure.energy.total import TotalEnergy
from powerlab.measure.layers.figures import (
    Mean,
    added,
    board_step_ns,
    energy_ratio,
    for_time,
    mean_of_series,
    metric_j,
    metric_w,
    over_idle,
    sum_of_layers,
    time_ratio,
    whole_figures,
)
from powerlab.measure.layers.messages import WHOLE, Steps
from powerlab.measure.layers.window import STEADY_SHARE, StepWindow

_MS, _S = 1e-6, 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """All that a profile is made of; the names are those of :class:`LayerProfile` where it has them."""

    id: str
    started_at: str
    device_name: str
    point: Point
    steps: Steps
    windows: tuple[StepWindow, ...]
    idle: TotalEnergy | None
    roof: Roof | None
    no_roof: str
    simulated: bool
    total: TotalFormula | None
    no_power: str
    window_s: float
    seed: int
    drift: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Inferences:
    """The whole, in all its windows: each inference in ns, shape (n,), and its steps, shape (n, steps)."""

    each_ns: NDArray[np.float64]
    step_ns: NDArray[np.float64]
    energy: TotalEnergy | None


def layer_profile(measured: Measured) -> LayerProfile:
    """Return the profile of a network from one window a step and some of the whole."""
    whole = _whole([window for window in measured.windows if window.step == WHOLE])
    alone = sorted((window for window in measured.windows if window.step != WHOLE), key=lambda window: window.step)
    clock = Provenance.SIMULATED if measured.simulated else Provenance.MEASURED
    whole_time = mean_of_series(whole.each_ns)
    powers = [window.energy for window in alone if window.energy is not None]
    complete = len(powers) == len(alone)
    alone_times = [mean_of_series(window.each_ns) for window in alone]
    alone_ms = Mean(
        value=sum(time.value for time in alone_times),
        half_width=float(np.hypot.reduce([time.half_width or 0.0 for time in alone_times])),
    )
    ratio = energy_ratio(whole.energy, powers, whole.step_ns * _S) if whole.energy is not None and complete else None
    return LayerProfile(
        id=measured.id,
        started_at=measured.started_at,
        device_name=measured.device_name,
        model=measured.point.workload.model,
        batch_size=measured.point.workload.batch_size,
        threads=measured.point.threads,
        mode=measured.point.mode,
        tier=measured.steps.tier,
        seconds_per_layer=measured.window_s,
        seed=measured.seed,
        total=measured.total,
        no_power=measured.no_power or ("" if powers else "no window's power may be used; its findings say why"),
        idle_power=None if measured.idle is None else metric_w("layer_idle_power_w", measured.idle),
        whole=whole_figures(
            whole_time.metric("layer_time_ms", _MS, clock),
            None if whole.energy is None else for_time(whole.energy, _seconds(whole_time)),
            measured.idle,
            whole.energy,
        ),
        layers=_layers(measured, alone, whole, clock),
        total_of_layers=whole_figures(
            alone_ms.metric("layer_alone_ms", _MS, clock),
            sum_of_layers(powers, whole.step_ns * _S) if complete else None,
            measured.idle,
        ),
        energy_ratio=None if ratio is None else ratio.metric("whole_per_sum_energy", 1.0, powers[0].provenance),
        time_ratio=time_ratio(whole_time, alone_times).metric("whole_per_sum_time", 1.0, clock),
        roof=measured.roof,
        no_roof=measured.no_roof,
        findings=_findings(measured),
        total_of_parts=dict(_parts(measured, alone, whole, clock)),
    )


def _parts(
    measured: Measured, alone: Sequence[StepWindow], whole: _Inferences, clock: Provenance
) -> Iterator[tuple[str, Whole]]:
    """Yield what the layers of each part of a step of training add up to; nothing for an inference."""
    if not measured.point.workload.trains:
        return
    for name in PARTS:
        own = [window for window in alone if part_of(measured.steps.labels[window.step]) == name]
        powers = [window.energy for window in own if window.energy is not None]
        step_ns = whole.step_ns[:, [window.step for window in own]]
        yield (
            name,
            whole_figures(
                mean_of_series(step_ns.sum(axis=1)).metric("layer_time_ms", _MS, clock),
                sum_of_layers(powers, step_ns * _S) if own and len(powers) == len(own) else None,
                measured.idle,
            ),
        )


def _whole(windows: Sequence[StepWindow]) -> _Inferences:
    each_ns = np.concatenate([window.each_ns for window in windows])
    seen_ns = np.concatenate([window.step_ns for window in windows])
    energies = [window.energy for window in windows if window.energy is not None]
    return _Inferences(
        each_ns=each_ns,
        step_ns=board_step_ns(seen_ns, each_ns),
        energy=added(energies) if energies else None,
    )


def _layers(
    measured: Measured, alone: Sequence[StepWindow], whole: _Inferences, clock: Provenance
) -> tuple[Layer, ...]:
    middle = int(np.argsort(whole.each_ns)[whole.each_ns.size // 2])
    whole_ns = float(whole.each_ns.mean())
    whole_j = None if whole.energy is None else whole.energy.power_w * whole_ns * _S
    layers = []
    for window in alone:
        time = mean_of_series(whole.step_ns[:, window.step])
        share, energy = time.value / whole_ns, None
        if window.energy is not None:
            energy = for_time(window.energy, _seconds(time))
            share = share if whole_j is None else energy.energy_j / whole_j
        steps = measured.steps
        layers.append(
            Layer(
                index=window.step,
                name=steps.labels[window.step],
                operator=steps.operators[window.step],
                nodes=steps.nodes[window.step],
                kernel=steps.kernels[window.step],
                shape=steps.shapes[window.step],
                flops=steps.flops[window.step],
                bytes_moved=steps.bytes_moved[window.step],
                once_us=float(whole.step_ns[middle, window.step]) / 1e3,
                time=time.metric("layer_time_ms", _MS, clock),
                alone=mean_of_series(window.each_ns).metric("layer_alone_ms", _MS, clock),
                power=None if window.energy is None else metric_w("layer_power_w", window.energy),
                energy=None if energy is None else metric_j("layer_energy_j", energy),
                above_idle=_above_idle(energy, measured.idle),
                share_percent=100 * share,
                steady=window.steady,
                windows=window.windows,
                findings=window.findings,
            )
        )
    return tuple(layers)


def _above_idle(energy: TotalEnergy | None, idle: TotalEnergy | None) -> Metric | None:
    if energy is None or idle is None:
        return None
    common_provenance((energy.provenance, idle.provenance))
    return metric_j("layer_energy_above_idle_j", over_idle(energy, idle))


def _seconds(time_ns: Mean) -> Mean:
    return Mean(value=time_ns.value * _S, half_width=None if time_ns.half_width is None else time_ns.half_width * _S)


def _findings(measured: Measured) -> tuple[Finding, ...]:
    """Return what is to be said of the whole profile."""
    found = []
    if measured.drift is not None:
        found.append(Finding(rule="mode-drift", verdict=Verdict.VOID, detail=measured.drift))
    drifting = [window for window in measured.windows if not window.steady]
    if drifting:
        names = ["the whole" if one.step == WHOLE else measured.steps.labels[one.step] for one in drifting]
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        found.append(
            Finding(
                rule="steady-state",
                verdict=Verdict.FLAGGED,
                detail=f"the power of {listed} still drifted by more than {STEADY_SHARE:.0%} over the last window",
            )
        )
    return tuple(found)
