"""Figures of a step on many nodes, all of them ``simulated``.

A node draws what it was seen to draw while it computes. What it draws while it waits for gradients nobody measured:
between idle power (it sleeps) and that of computing (MPI polls, as Open MPI does unasked). The middle of both stands
for it, and the interval holds both. Switches and whatever else connects the nodes are not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.analysis.scaling.simulate import SimulatedStep
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run

_SIMULATED = Provenance.SIMULATED


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledPoint:
    """What so many nodes give.

    Attributes:
        nodes: how many.
        throughput: img/s of all nodes together.
        efficiency_percent: of what as many nodes would give that never wait for each other.
        step_ms: from one step to the next.
        wait_ms: of it, what a node waits for gradients.
        power: W of all nodes; None where the run has no power or no idle baseline.
        energy_per_image: J of all nodes per image; None with it.
    """

    nodes: int
    throughput: Metric
    efficiency_percent: float
    step_ms: float
    wait_ms: float
    power: Metric | None = None
    energy_per_image: Metric | None = None


def scaled_point(run: Run, step: SimulatedStep) -> ScaledPoint:
    """Return the figures of a simulated step.

    Args:
        run: the run on one node that it was simulated from.
        step: what was simulated.
    """
    images = step.nodes * run.point.workload.images_per_query
    energy = _energy_per_image(run, step)
    return ScaledPoint(
        nodes=step.nodes,
        throughput=_throughput(step, images),
        efficiency_percent=100 * (1 - step.wait_s / step.step_s),
        step_ms=1e3 * step.step_s,
        wait_ms=1e3 * step.wait_s,
        power=None if energy is None else _scaled(energy, "power_w", images / step.step_s),
        energy_per_image=energy,
    )


def _throughput(step: SimulatedStep, images: int) -> Metric:
    value, half_s = images / step.step_s, step.half_width_s
    if half_s is None or half_s >= step.step_s:
        return Metric(name="throughput_img_per_s", value=value, provenance=_SIMULATED)
    return Metric(
        name="throughput_img_per_s",
        value=value,
        low=images / (step.step_s + half_s),
        high=images / (step.step_s - half_s),
        provenance=_SIMULATED,
    )


def _energy_per_image(run: Run, step: SimulatedStep) -> Metric | None:
    busy, idle = run.metric("power_w"), run.metric("idle_power_w")
    if busy is None or idle is None:
        return None
    lowest, highest = _ends(busy)
    asleep = min(_ends(idle)[0], lowest)
    each = run.point.workload.images_per_query
    busy_s = step.step_s - step.wait_s
    return Metric(
        name="energy_per_image_j",
        value=(busy.value * busy_s + (busy.value + min(idle.value, busy.value)) / 2 * step.wait_s) / each,
        low=(lowest * busy_s + asleep * step.wait_s) / each,
        high=highest * step.step_s / each,
        provenance=_SIMULATED,
    )


def _ends(metric: Metric) -> tuple[float, float]:
    """Return both ends of a figure's interval; the figure itself where it has none."""
    if metric.low is None or metric.high is None:
        return metric.value, metric.value
    return metric.low, metric.high


def _scaled(metric: Metric, name: str, factor: float) -> Metric:
    low, high = _ends(metric)
    return Metric(
        name=name, value=metric.value * factor, low=low * factor, high=high * factor, provenance=metric.provenance
    )
