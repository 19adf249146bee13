"""Figures of layers, their sum, and both against the whole inference, from windows of repeated steps.

A step's **power** *P* is what the board drew while the step was repeated by itself; its **time** *t* is what it took
within inferences of the whole network. Its energy in an inference is *P t*. Times of the steps add up to the whole's by
their making; whether energies do is a question to the sensors, and their ratio is the answer.

Uncertainties follow :mod:`powerlab.domain.budget`. In a sum over layers, what may be the same in every window (gain,
offset, quantisation, lag) is added, and the rest is independent. The scatter of times is that of the sum itself, so
that a slow moment of all steps counts as what it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.budget import REPEATS, half_width
from powerlab.domain.layers import Whole
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.statistics import NORMAL_95, mean_half_width
from powerlab.measure.energy.budget import Part, above, scaled
from powerlab.measure.energy.total import TotalEnergy

_LASTING = frozenset({"gain", "offset", "quantisation", "lag"})
_BATCHES = 21
_Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean and the half-width of its 95 % interval; None where there is too little to give one."""

    value: float
    half_width: float | None

    @property
    def standard_uncertainty(self) -> float:
        """Of the mean; 0 where nobody knows it."""
        return (self.half_width or 0.0) / NORMAL_95

    def metric(self, name: str, scale: float, provenance: Provenance) -> Metric:
        """Return the figure in a unit ``scale`` times smaller; no time is below 0."""
        value = self.value * scale
        if self.half_width is None:
            return Metric(name=name, value=value, provenance=provenance)
        width = self.half_width * scale
        return Metric(name=name, value=value, low=max(0.0, value - width), high=value + width, provenance=provenance)


def mean_of_series(values: _Floats) -> Mean:
    """Return the mean of a series whose neighbours may hang together: the interval comes from means of batches.

    Args:
        values: shape (n,), n >= 1, in the order in which they were observed.
    """
    batches = min(_BATCHES, values.size // 2) if values.size >= 2 * _BATCHES else values.size
    means = [float(part.mean()) for part in np.array_split(values, batches)]
    return Mean(value=float(values.mean()), half_width=mean_half_width(means))


def board_step_ns(step_ns: _Floats, inference_ns: _Floats) -> _Floats:
    """Return what the steps took of each inference: its time is shared out as thread 0 saw the steps.

    On a real machine the rest is the call itself; an inference on a simulated board is longer than the host took.

    Args:
        step_ns: as the engine saw them, shape (inferences, steps).
        inference_ns: from call to return, shape (inferences,).
    """
    return np.asarray(step_ns / step_ns.sum(axis=1, keepdims=True) * inference_ns[:, None])


def added(energies: Sequence[TotalEnergy]) -> TotalEnergy:
    """Return several windows as one: energies and times added; what may be the same in all of them is added, too."""
    return replace(
        energies[0],
        energy_j=math.fsum(energy.energy_j for energy in energies),
        duration_s=math.fsum(energy.duration_s for energy in energies),
        parts=summed(energy.parts for energy in energies),
    )


def summed(parts: Iterable[Iterable[Part]]) -> tuple[Part, ...]:
    """Return the parts of a sum of energies from different windows."""
    found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for some in parts:
        for part in some:
            found[part.origin, part.effect].append(part.standard_uncertainty)
    return tuple(
        Part(
            origin=origin,
            effect=effect,
            standard_uncertainty=math.fsum(values) if effect in _LASTING else math.hypot(*values),
        )
        for (origin, effect), values in found.items()
    )


def for_time(power: TotalEnergy, time: Mean) -> TotalEnergy:
    """Return the energy of a window's power over another time (in s), with what is not known of that time."""
    scatter = Part(origin=REPEATS, effect="time", standard_uncertainty=abs(power.power_w) * time.standard_uncertainty)
    return replace(
        power,
        energy_j=power.power_w * time.value,
        duration_s=time.value,
        parts=(*scaled(power.parts, time.value / power.duration_s), scatter),
    )


def over_idle(energy: TotalEnergy, idle: TotalEnergy) -> TotalEnergy:
    """Return an energy above what idling for as long takes."""
    during = scaled(idle.parts, energy.duration_s / idle.duration_s)
    return replace(
        energy,
        energy_j=energy.energy_j - idle.power_w * energy.duration_s,
        parts=above(energy.parts, during),
    )


def sum_of_layers(powers: Sequence[TotalEnergy], step_s: _Floats) -> TotalEnergy:
    """Return what the layers' energies in an inference add up to.

    Args:
        powers: of every step, from its own window.
        step_s: what the steps took of each inference, shape (inferences, steps).
    """
    times_s = step_s.mean(axis=0)
    scatter = mean_of_series(step_s @ np.array([power.power_w for power in powers]))
    parts = summed(
        scaled(power.parts, float(time_s) / power.duration_s) for power, time_s in zip(powers, times_s, strict=True)
    )
    timing = Part(origin=REPEATS, effect="time", standard_uncertainty=scatter.standard_uncertainty)
    return replace(powers[0], energy_j=scatter.value, duration_s=float(times_s.sum()), parts=(*parts, timing))


def energy_ratio(whole: TotalEnergy, powers: Sequence[TotalEnergy], step_s: _Floats) -> Mean:
    """Return the whole's mean power ÷ the layers' mean power, each for its share of an inference.

    One sensor reads both: what is the same for all its readings drops out, and so does how long an inference takes.

    Args:
        whole: of windows of whole inferences.
        powers: of every step, from its own window.
        step_s: what the steps took of each inference, shape (inferences, steps).
    """
    shares = step_s / step_s.sum(axis=1, keepdims=True)
    layers_w = mean_of_series(shares @ np.array([power.power_w for power in powers]))
    mean_shares = shares.mean(axis=0)
    parts_w = summed(
        scaled(power.parts, float(share) / power.duration_s) for power, share in zip(powers, mean_shares, strict=True)
    )
    relative = above(scaled(whole.parts, 1 / whole.energy_j), scaled(parts_w, 1 / layers_w.value))
    timing = Part(origin=REPEATS, effect="time", standard_uncertainty=layers_w.standard_uncertainty / layers_w.value)
    value = whole.power_w / layers_w.value
    return Mean(value=value, half_width=value * half_width((*relative, timing)))


def time_ratio(whole: Mean, alone: Sequence[Mean]) -> Mean:
    """Return the whole's time ÷ the sum of what its steps take when each is repeated alone."""
    total = math.fsum(time.value for time in alone)
    relative = math.hypot(
        whole.standard_uncertainty / whole.value, math.hypot(*(time.standard_uncertainty for time in alone)) / total
    )
    return Mean(value=whole.value / total, half_width=NORMAL_95 * relative * whole.value / total)


def metric_j(name: str, energy: TotalEnergy) -> Metric:
    """Return an energy as a figure in J; only what is above idle may be below 0."""
    width = half_width(energy.parts)
    low = energy.energy_j - width
    return Metric(
        name=name,
        value=energy.energy_j,
        low=low if name == "layer_energy_above_idle_j" else max(0.0, low),
        high=energy.energy_j + width,
        provenance=energy.provenance,
    )


def metric_w(name: str, energy: TotalEnergy) -> Metric:
    """Return a window's mean power as a figure in W."""
    width = half_width(energy.parts) / energy.duration_s
    return Metric(
        name=name,
        value=energy.power_w,
        low=max(0.0, energy.power_w - width),
        high=energy.power_w + width,
        provenance=energy.provenance,
    )


def whole_figures(
    time: Metric, energy: TotalEnergy | None, idle: TotalEnergy | None, power: TotalEnergy | None = None
) -> Whole:
    """Return the figures of an inference, or of a sum of layers.

    Args:
        time: in ms.
        energy: of one inference; None without power.
        idle: the idle baseline; None where there is none.
        power: the window that the mean power is taken from; None where there is no such window.
    """
    if energy is None:
        return Whole(time=time)
    return Whole(
        time=time,
        power=None if power is None else metric_w("layer_power_w", power),
        energy=metric_j("layer_energy_j", energy),
        above_idle=None if idle is None else metric_j("layer_energy_above_idle_j", over_idle(energy, idle)),
    )
