"""What an image takes where images arrive at a rate and the device idles, in its mode, between them.

In a second, ``rate`` images are computed, each in 1 / throughput, and the rest of the time is idle::

    J/img (rate) = J/img (busy) + idle power x (1 / rate - 1 / throughput)
                 = idle power / rate + J/img above idle

One sensor reads both powers, so its gain and its offset act on them alike and are added; all else is independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from powerlab.domain.budget import IDLE, IDLE_PREFIX, half_width, interval, of_metric
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Contribution, Run
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Scenario

ENERGY = "energy_per_image_j"
_IDLE_POWER = "idle_power_w"
_CONSTANT = frozenset({"gain", "offset"})
"""The same for every reading of a rail."""


def at_rate(runs: Iterable[Run], rate_img_per_s: float) -> tuple[Run, ...]:
    """Return the runs with their energy per image, and its budget, as they are at an arrival rate.

    A run without power or idle power, or one that cannot keep up, is left without an energy per image.
    """
    return tuple(_at_rate(run, rate_img_per_s) for run in runs)


def collecting_ms(point: Point, rate_img_per_s: float) -> float:
    """Return how long the first image of a batch waits for its last one, where images arrive one by one, evenly."""
    together = point.workload.scenario is not Scenario.SINGLE_STREAM
    return 0.0 if together else 1000 * (point.workload.batch_size - 1) / rate_img_per_s


def _at_rate(run: Run, rate: float) -> Run:
    others = tuple(metric for metric in run.metrics if metric.name != ENERGY)
    lines = tuple(line for line in run.budget if line.metric != ENERGY)
    busy, idle = run.metric(ENERGY), run.metric(_IDLE_POWER)
    throughput = run.metric("throughput_img_per_s")
    if busy is None or idle is None or throughput is None or busy.provenance is not idle.provenance:
        return replace(run, metrics=others, budget=lines)
    if throughput.value < rate:
        return replace(run, metrics=others, budget=lines)
    idle_s = 1 / rate - 1 / throughput.value
    own = tuple(_lines(of_metric(run.budget, ENERGY), of_metric(run.budget, _IDLE_POWER), idle_s))
    figure = _figure(busy, idle, idle_s, own)
    return replace(run, metrics=(*others, figure), budget=(*lines, *own))


def _figure(busy: Metric, idle: Metric, idle_s: float, lines: Sequence[Contribution]) -> Metric:
    """Return the energy; without a budget both intervals are added, as if they were wrong together."""
    value = busy.value + idle.value * idle_s
    found = replace(busy, value=value, low=None, high=None)
    if busy.low is None or busy.high is None or idle.low is None or idle.high is None:
        return found
    distance = half_width(lines) if lines else busy.high - busy.value + (idle.high - idle.value) * idle_s
    low, high = interval(ENERGY, value, distance)
    return replace(found, low=low, high=high)


def _lines(busy: Sequence[Contribution], idle: Sequence[Contribution], idle_s: float) -> Iterator[Contribution]:
    left = {(line.origin, line.effect): line.standard_uncertainty * idle_s for line in idle}
    kinds = {(line.origin, line.effect): line.kind for line in idle}
    for line in busy:
        key = (line.origin, line.effect)
        same = left.pop(key, 0.0) if line.effect in _CONSTANT else 0.0
        yield replace(line, standard_uncertainty=line.standard_uncertainty + same)
    for (origin, effect), uncertainty in left.items():
        if uncertainty > 0:
            named = effect if origin == IDLE else f"{IDLE_PREFIX}{effect}"
            kind = kinds[origin, effect]
            yield Contribution(metric=ENERGY, origin=origin, effect=named, kind=kind, standard_uncertainty=uncertainty)
