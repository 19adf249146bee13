"""What goes wrong while a run is recorded, done to a good recording: each fault gives the evidence of a faulty run.

Moments and sizes are drawn. A sensor that stops is only to be told from a steady load where noise moved its readings
before the sweep: those faults happen to lively sensors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import POWER_QUANTITIES, RailQuantity, Trace
from powerlab.measure.evidence import Evidence
from powerlab.power.base import FileChannel
from powerlab.power.sampling.recorder import file_trace
from tests.truth.harness import Machine, Recording, draw_machine

Rng = np.random.Generator
Fault = Callable[[Recording, Rng], Evidence]
LEAST_SHARE = 0.03
"""A fault that hides less than this of a window may pass: what it hides is in the interval."""


def lively_machine(seed: int, quantity: RailQuantity) -> Machine:
    """Return a machine whose sensors flicker, all of one quantity, and whose window is long enough to see that."""
    for attempt in range(10_000):
        machine = draw_machine(seed * 10_000 + attempt, "everything", window_s=15.0)
        moving = all(
            (sensor.noise_w > 2 * sensor.rail.resolution and sensor.noise_w > 0) or sensor.kind == "counter"
            for sensor in machine.sensors
        )
        if moving and all(sensor.rail.quantity is quantity for sensor in machine.sensors):
            return machine
    raise AssertionError("no such machine was drawn")


def lively_of(recording: Recording) -> Mapping[str, float]:
    """Return how often a second each rail changed, as watching it before the sweep would have shown."""
    return {
        trace.rail.key: float(np.count_nonzero(np.diff(trace.value)) / np.ptp(trace.time_ns) * 1e9)
        for trace in recording.traces
    }


def _span(recording: Recording, rng: Rng, least: float = LEAST_SHARE, most: float = 0.5) -> tuple[int, int]:
    """Draw a stretch of the window."""
    start_ns, end_ns = recording.window_ns
    length_ns = round((end_ns - start_ns) * rng.uniform(least, most))
    from_ns = int(rng.integers(start_ns, end_ns - length_ns))
    return from_ns, from_ns + length_ns


def _change(recording: Recording, rng: Rng, change: Callable[[Trace], Trace], **found: object) -> Evidence:
    """Return the evidence with one rail's trace changed."""
    which = int(rng.integers(len(recording.traces)))
    traces = tuple(change(one) if index == which else one for index, one in enumerate(recording.traces))
    return replace(recording, traces=traces).evidence(lively=lively_of(recording), **found)


def _keep(trace: Trace, kept: NDArray[np.bool_]) -> Trace:
    return replace(trace, time_ns=trace.time_ns[kept], value=trace.value[kept])


def stuck(recording: Recording, rng: Rng) -> Evidence:
    """A sensor shows one value for a while, at least two seconds; a counter over the window's end."""
    from_ns, until_ns = _span(recording, rng, least=0.2, most=0.8)

    def change(trace: Trace) -> Trace:
        counts = trace.rail.quantity is RailQuantity.ENERGY
        still = (trace.time_ns >= from_ns) & (counts | (trace.time_ns <= until_ns))
        return replace(trace, value=np.where(still, trace.value[np.flatnonzero(still)[0]], trace.value))

    return _change(recording, rng, change)


def stuck_from_the_start(recording: Recording, rng: Rng) -> Evidence:
    """Every rail shows what it showed before the load."""
    traces = tuple(replace(one, value=np.full(one.value.shape, one.value[0])) for one in recording.traces)
    return replace(recording, traces=traces).evidence()


def gap(recording: Recording, rng: Rng) -> Evidence:
    """Nothing is read for a while."""
    from_ns, until_ns = _span(recording, rng)
    return _change(recording, rng, lambda one: _keep(one, (one.time_ns < from_ns) | (one.time_ns > until_ns)))


def ended_early(recording: Recording, rng: Rng) -> Evidence:
    """A rail gives no more readings from some moment of the window on."""
    from_ns, _ = _span(recording, rng)
    return _change(recording, rng, lambda one: _keep(one, one.time_ns < from_ns))


def dead(recording: Recording, rng: Rng) -> Evidence:
    """A rail of the total gives not one reading."""
    which = int(rng.integers(len(recording.traces)))
    return replace(recording, traces=recording.traces[:which] + recording.traces[which + 1 :]).evidence()


def fell_to_nothing(recording: Recording, rng: Rng) -> Evidence:
    """A rail reads 0 W for a while, as one does whose chip was reset."""
    from_ns, until_ns = _span(recording, rng, least=0.2)

    def change(trace: Trace) -> Trace:
        off = (trace.time_ns >= from_ns) & (trace.time_ns <= until_ns)
        return replace(trace, value=np.where(off, 0.0, trace.value))

    return _change(recording, rng, change)


def spike(recording: Recording, rng: Rng) -> Evidence:
    """One reading has a wrong high bit."""
    start_ns, end_ns = recording.window_ns

    def change(trace: Trace) -> Trace:
        inside = np.flatnonzero((trace.time_ns > start_ns) & (trace.time_ns < end_ns))
        value = trace.value.copy()
        value[int(rng.choice(inside))] += 65.536 * float(np.max(trace.value))
        return replace(trace, value=value)

    return _change(recording, rng, change)


def negative(recording: Recording, rng: Rng) -> Evidence:
    """A current sensor is connected the wrong way round."""
    return _change(recording, rng, lambda one: replace(one, value=-one.value))


def no_number(recording: Recording, rng: Rng) -> Evidence:
    """A reading is not a number."""

    def change(trace: Trace) -> Trace:
        value = trace.value.copy()
        value[int(rng.integers(value.size))] = np.nan
        return replace(trace, value=value)

    return _change(recording, rng, change)


def set_back(recording: Recording, rng: Rng) -> Evidence:
    """A counter starts again at 0 in the window; what is recorded of it ends there."""
    from_ns, _ = _span(recording, rng)
    return _change(recording, rng, lambda one: through_file(one, from_ns))


def through_file(trace: Trace, back_ns: int | None = None, wraps_at: int | None = None) -> Trace:
    """Return what the recorder makes of a counter's readings: set back at a time, or wrapping."""
    step = trace.rail.resolution
    raw = np.round(trace.value / step).astype(np.int64)
    if back_ns is not None:
        first = int(np.searchsorted(trace.time_ns, back_ns))
        raw = np.concatenate([raw[:first], raw[first:] - raw[first]])
    if wraps_at is not None:
        raw %= wraps_at
    channel = FileChannel(rail=trace.rail, paths=(), scale=step, wraps_at=wraps_at)
    cost_ns = np.full(raw.shape, trace.read_cost_ns, dtype=np.int64)
    return file_trace(channel, (trace.time_ns, raw, cost_ns, 0))[0]


def few_readings(recording: Recording, rng: Rng) -> Evidence:
    """A sensor is so slow that it gives a handful of readings."""
    count = int(rng.integers(3, 16))
    start_ns, end_ns = recording.window_ns

    def change(trace: Trace) -> Trace:
        wanted = np.linspace(start_ns - 10**7, end_ns + 10**7, count)
        return _keep(trace, np.isin(np.arange(trace.time_ns.size), np.searchsorted(trace.time_ns, wanted)))

    return _change(recording, rng, change)


def suspended(recording: Recording, rng: Rng) -> Evidence:
    """The machine slept."""
    return recording.evidence(suspended_s=float(rng.uniform(0.1, 100)))


def clock_set(recording: Recording, rng: Rng) -> Evidence:
    """Somebody set the wall clock."""
    return recording.evidence(clock_jump_s=float(rng.choice([-1, 1]) * rng.uniform(0.1, 1e5)))


def throttled(recording: Recording, rng: Rng) -> Evidence:
    """The device was slowed down."""
    return recording.evidence(throttled=("the clock of the processor was capped by its temperature",))


def drifted(recording: Recording, rng: Rng) -> Evidence:
    """Somebody changed the power mode."""
    return recording.evidence(drift="the power mode was MAXN and is 15W")


def busy(recording: Recording, rng: Rng) -> Evidence:
    """Other programs ran."""
    return recording.evidence(background_cores=float(rng.uniform(0.6, 8)))


def source_failed(recording: Recording, rng: Rng) -> Evidence:
    """The source of power ended."""
    return recording.evidence(power_failure="tegrastats ended while it was read")


def held_up(recording: Recording, rng: Rng) -> Evidence:
    """The worker was stopped for a while."""
    return recording.evidence(stalled_s=float(rng.uniform(LEAST_SHARE, 0.5)) * 15.0)


FAULTS: Mapping[str, tuple[Fault, tuple[RailQuantity, ...]]] = {
    "stuck": (stuck, POWER_QUANTITIES),
    "stuck from the start": (stuck_from_the_start, POWER_QUANTITIES),
    "gap": (gap, (RailQuantity.POWER,)),
    "ended early": (ended_early, POWER_QUANTITIES),
    "dead rail": (dead, POWER_QUANTITIES),
    "fell to nothing": (fell_to_nothing, (RailQuantity.POWER,)),
    "spike": (spike, (RailQuantity.POWER,)),
    "negative": (negative, (RailQuantity.POWER,)),
    "no number": (no_number, (RailQuantity.POWER,)),
    "counter set back": (set_back, (RailQuantity.ENERGY,)),
    "few readings": (few_readings, (RailQuantity.POWER,)),
    "suspended": (suspended, POWER_QUANTITIES),
    "clock set": (clock_set, POWER_QUANTITIES),
    "throttled": (throttled, POWER_QUANTITIES),
    "mode drifted": (drifted, POWER_QUANTITIES),
    "background load": (busy, POWER_QUANTITIES),
    "source failed": (source_failed, POWER_QUANTITIES),
    "worker held up": (held_up, POWER_QUANTITIES),
}
"""Each fault with the quantities of rails that it can happen to."""
