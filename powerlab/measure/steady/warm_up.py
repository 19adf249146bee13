"""Warm-up: untimed inferences until latency, power and temperature are steady, or the plan's limit is reached.

The worker is asked for short pieces. After the plan's least warm-up, and again whenever it has lasted a quarter longer,
each series is judged over its last half (:mod:`powerlab.measure.steady.drift`): the mean latency of the pieces, the
mean power of the total in them, and the hottest zone. It ends when all three are steady. When the longest warm-up is
over, what drifts is said in a sentence; what is undecided is not: then its noise hides a drift of that size, and the
scatter between the repeats shows it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from powerlab.domain.power import RailQuantity, TotalFormula, Trace
from powerlab.domain.rigour import least_inferences
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Workload
from powerlab.measure.energy.rail import covers
from powerlab.measure.recording.parts import joined
from powerlab.measure.recording.rails import Meter, Recording
from powerlab.measure.recording.temperature import Thermometer
from powerlab.measure.steady.drift import Answer, drift

DRIFT_PERCENT = 1.0
"""Latency and power may drift by 1 % of their mean over a run, which moves the run's mean by half of that."""
DRIFT_C = 1.0
"""The temperature may drift by 1 °C over a run: with leakage a fifth of the power, and that growing by one to two per
cent a kelvin, that is less than half a per cent of the power."""
_SHORTEST_PIECE_S, _LONGEST_PIECE_S = 0.1, 1.0
_PIECES = 10
"""Of the least warm-up."""
_GROWTH = 1.25
_JUDGED_FROM = 1 / 2


class Warming(Protocol):
    """The worker, as far as a warm-up needs it."""

    def warm_up(self, duration_s: float) -> float:
        """Run untimed inferences, at least one, and return their mean time in s."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmUp:
    """How a warm-up went.

    Attributes:
        duration_s: how long it took.
        unsteady: in sentences, what had not become steady.
        window_ns: when it began and ended, on CLOCK_MONOTONIC; None where there was none.
        inference_s: how long an inference took at the end.
        traces: power and temperatures meanwhile, ten samples a second at most; no figure is made of them.
    """

    duration_s: float = 0.0
    unsteady: tuple[str, ...] = ()
    window_ns: tuple[int, int] | None = None
    inference_s: float = 0.0
    traces: tuple[Trace, ...] = ()


@dataclass(frozen=True, slots=True)
class _Series:
    """One thing over time, and how far it may drift over a run: in ``unit``, or in % of its mean where that is %."""

    name: str
    unit: str
    time_s: Sequence[float]
    value: Sequence[float]
    limit: float


@dataclass(slots=True)
class _Pieces:
    """What was seen of each piece; times in s since the warm-up began."""

    begin_ns: int
    time_s: list[float] = field(default_factory=list)
    latency_s: list[float] = field(default_factory=list)
    power_time_s: list[float] = field(default_factory=list)
    power_w: list[float] = field(default_factory=list)
    recorded: list[tuple[Trace, ...]] = field(default_factory=list)


def warm_up(worker: Warming, meter: Meter, plan: SweepPlan, workload: Workload) -> WarmUp:
    """Warm up for at least ``plan.warm_up_s`` and at most ``plan.longest_warm_up_s``.

    A plan with ``warm_up_s`` 0 wants none: one inference is made, so that the worker knows how long they take.

    Raises:
        WorkerError: the worker died, hung or answered with garbage.
    """
    if plan.warm_up_s <= 0:
        return WarmUp(inference_s=worker.warm_up(0.0))
    piece_s = min(plan.warm_up_s, max(_SHORTEST_PIECE_S, min(_LONGEST_PIECE_S, plan.warm_up_s / _PIECES)))
    longest_s = max(plan.warm_up_s, plan.longest_warm_up_s)
    inferences = least_inferences(plan.rigour, plan.min_inferences, workload) * workload.inferences_per_query
    begin_ns, until_s = time.monotonic_ns(), plan.warm_up_s
    pieces = _Pieces(begin_ns=begin_ns)
    with Thermometer(meter.sysroot, piece_s) as thermometer:
        while True:
            _go_on(worker, meter, pieces, piece_s, begin_ns + round(until_s * 1e9))
            now_ns = time.monotonic_ns()
            passed_s = _since_s(begin_ns, now_ns)
            ahead_s = max(plan.duration_s, inferences * pieces.latency_s[-1])
            series = _series(pieces, thermometer.traces())
            answers = [(one, *_judge(one, passed_s, ahead_s)) for one in series]
            if passed_s >= longest_s or all(answer is Answer.STEADY for *_, answer in answers):
                break
            until_s = min(longest_s, _GROWTH * passed_s)
    unsteady = (_sentence(one, by, ahead_s, passed_s) for one, by, answer in answers if answer is Answer.DRIFTING)
    return WarmUp(
        duration_s=passed_s,
        unsteady=tuple(unsteady),
        window_ns=(begin_ns, now_ns),
        inference_s=pieces.latency_s[-1],
        traces=joined((*pieces.recorded, thermometer.traces())),
    )


def _go_on(worker: Warming, meter: Meter, pieces: _Pieces, piece_s: float, until_ns: int) -> None:
    """Warm up until then, by at least a piece, with power recorded; without usable power there is none."""
    ends: list[tuple[int, int]] = []
    with Recording(meter) as recording:
        while not ends or ends[-1][1] < until_ns:
            start_ns = time.monotonic_ns()
            pieces.latency_s.append(worker.warm_up(piece_s))
            ends.append((start_ns, time.monotonic_ns()))
            pieces.time_s.append(_since_s(pieces.begin_ns, sum(ends[-1]) // 2))
        traces = recording.finish()
    pieces.recorded.append(traces)
    for window_ns in ends:
        power_w = _power_w(meter.total, traces, window_ns)
        if power_w is not None:
            pieces.power_time_s.append(_since_s(pieces.begin_ns, sum(window_ns) // 2))
            pieces.power_w.append(power_w)


def _power_w(total: TotalFormula | None, traces: Sequence[Trace], window_ns: tuple[int, int]) -> float | None:
    """Return the total's mean power in a piece; None where a rail says nothing of it."""
    if total is None or len(traces) < len(total.rails):
        return None
    means = [_mean_w(trace, window_ns) for trace in traces]
    known = [mean for mean in means if mean is not None]
    return sum(known) if len(known) == len(means) else None


def _mean_w(trace: Trace, window_ns: tuple[int, int]) -> float | None:
    if trace.rail.quantity is RailQuantity.ENERGY:
        if not covers(trace, *window_ns):
            return None
        ends_ns = np.array(window_ns) - window_ns[0]
        first_j, last_j = np.interp(ends_ns, trace.time_ns - window_ns[0], trace.value)
        return float(last_j - first_j) / (float(ends_ns[1]) / 1e9)
    inside = trace.value[(trace.time_ns >= window_ns[0]) & (trace.time_ns < window_ns[1])]
    return float(inside.mean()) if inside.size else None


def _series(pieces: _Pieces, zones: Sequence[Trace]) -> Iterator[_Series]:
    """Yield what is judged; nothing of a machine without power or zones but its latency."""
    yield _Series("latency", "%", pieces.time_s, pieces.latency_s, DRIFT_PERCENT)
    if pieces.power_w:
        yield _Series("power", "%", pieces.power_time_s, pieces.power_w, DRIFT_PERCENT)
    if zones:
        hottest = max(zones, key=lambda zone: float(zone.value[-1]))
        since_s = [_since_s(pieces.begin_ns, int(time_ns)) for time_ns in hottest.time_ns]
        yield _Series(f"the temperature of {hottest.rail.name}", "°C", since_s, list(hottest.value), DRIFT_C)


def _judge(series: _Series, passed_s: float, ahead_s: float) -> tuple[float, Answer]:
    """Return how far a series goes over a run, in its unit, and the answer to whether it is steady."""
    time_s, value = np.array(series.time_s), np.array(series.value)
    late = time_s >= _JUDGED_FROM * passed_s
    time_s, value = time_s[late], value[late]
    if series.unit == "%" and value.size:
        mean = float(value.mean())
        value = value * (100 / mean) if mean > 0 else value
    found = drift(time_s, value, ahead_s)
    return found.value, found.answer(series.limit)


def _sentence(series: _Series, by: float, ahead_s: float, passed_s: float) -> str:
    return (
        f"{series.name} still {'rose' if by > 0 else 'fell'} after {passed_s:.0f} s of warm-up, by "
        f"{abs(by):.2g} {series.unit} over the {ahead_s:.3g} s of a run (limit {series.limit:g} {series.unit})"
    )


def _since_s(begin_ns: int, time_ns: int) -> float:
    return (time_ns - begin_ns) / 1e9
