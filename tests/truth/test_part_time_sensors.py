"""Sensors that look a quarter of the time, as those of NVIDIA's A100 and H100: whether 95 % means 95 % there.

Loads are queries one after the other, each with a busy and a calm part, of 10 ms to 500 ms; some last as long as a
refresh of the sensor, or half or twice as long, so exactly that it never sees one of the parts (arXiv 2312.02741).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from powerlab.domain.power import Rail, TotalFormula, Trace
from powerlab.domain.quantity import Provenance
from powerlab.measure.energy.in_step import EFFECT, in_step_parts, looks_of
from powerlab.measure.energy.total import TotalEnergy, total_energy
from powerlab.measure.percentiles.latency import TimedInferences
from powerlab.measure.rules.in_step import MOST_MISSED
from powerlab.power.sampling.poller import READS_A_LOOK
from tests.truth.loads import LONG_S, TrueLoad
from tests.truth.sensors import ENERGY, POWER, Reads, TrueSensor

pytestmark = pytest.mark.campaign

REFRESH_S, SEEN = 0.1, 0.25
READ_EVERY_S, LATE_S = REFRESH_S / READS_A_LOOK, 0.002
"""How often the sampler reads such a rail, and how late the system lets it."""
PACES = ("any", "nearly in step", "in step")
MACHINES = 300


@dataclass(frozen=True)
class Seen:
    """A run: what powerlab says with and without the bound, and the truth."""

    energy: TotalEnergy
    bounded: TotalEnergy
    truth_j: float
    missed: float

    def held(self, energy: TotalEnergy) -> bool:
        return abs(energy.energy_j - self.truth_j) <= energy.half_width_j


def load_of(rng: np.random.Generator, period_s: float, jitter: float, window_s: float) -> tuple[TrueLoad, np.ndarray]:
    """Return a load from 1 s on, and when its queries begin; it is timed from the first query after 2 s."""
    idle_w, busy_w = rng.uniform(20, 80), rng.uniform(150, 400)
    calm_w, duty = rng.uniform(idle_w, busy_w), rng.uniform(0.2, 0.8)
    count = int((window_s + 6) / period_s) + 10
    each_s = period_s * rng.lognormal(0.0, jitter, count)
    lengths = np.column_stack((duty * each_s, (1 - duty) * each_s)).ravel()
    edges = np.concatenate(([-LONG_S, 1.0], 1.0 + np.cumsum(lengths)))
    starts = edges[1::2][:-1]
    starts = starts[(starts >= 2.0) & (starts <= 2.0 + window_s)]
    levels = np.concatenate(([idle_w], np.tile([busy_w, calm_w], count)))
    load = TrueLoad(edges_s=edges, levels_w=levels, begins_s=1.0, window_s=(float(starts[0]), float(starts[-1])))
    return load, starts


def sensor_of(rng: np.random.Generator, kind: str) -> TrueSensor:
    counts = kind.endswith("counter")
    rail = Rail(
        source="nvml",
        name="GPU0",
        quantity=ENERGY if counts else POWER,
        resolution=1e-3,
        relative_error=0.01,
        update_period_s=REFRESH_S,
        provenance=Provenance.SIMULATED,
        seen_share=SEEN,
    )
    return TrueSensor(
        rail=rail,
        share=1.0,
        kind=kind,
        refresh_s=REFRESH_S,
        phase=rng.uniform(),
        delay_s=rng.uniform(0.0, 0.05),
        gain=rng.uniform(-0.01, 0.01),
        offset_w=0.0,
        noise_w=0.0 if counts else 0.5,
        seed=int(rng.integers(2**32)),
    )


def read(load: TrueLoad, sensor: TrueSensor) -> Trace:
    stamps = np.arange(0.0, load.window_s[1] + 1.0, READ_EVERY_S)
    stamps += np.random.default_rng(sensor.seed).uniform(0.0, LATE_S, stamps.size)
    return sensor.trace(load, Reads(time_s=stamps, read_s=1e-4, off=np.zeros(stamps.size)))


def seen(seed: int, kind: str, pace: str) -> Seen:
    rng = np.random.default_rng((seed, PACES.index(pace), len(kind)))
    period_s = float(np.exp(rng.uniform(np.log(0.01), np.log(0.5))))
    jitter = rng.uniform(0.005, 0.05)
    if pace != "any":
        period_s, jitter = REFRESH_S * float(rng.choice([0.5, 1.0, 2.0])), 1e-6
    if pace == "nearly in step":
        period_s *= 1 + rng.choice([-1, 1]) * float(np.exp(rng.uniform(np.log(1e-3), np.log(3e-2))))
    load, starts = load_of(rng, period_s, jitter, float(rng.choice([5.0, 15.0])))
    trace = read(load, sensor_of(rng, kind))
    ns = np.round(starts * 1e9).astype(np.int64)
    timed = TimedInferences(start_ns=ns[:-1], end_ns=ns[1:])
    energy = total_energy(TotalFormula(rails=("nvml:GPU0",), scope="the card"), [trace], timed.window_ns)
    before = trace.time_ns < 0.9e9
    idle = replace(trace, time_ns=trace.time_ns[before], value=trace.value[before])
    parts = tuple(in_step_parts([trace], [idle], timed))
    assert [part.effect for part in parts] == [EFFECT]
    return Seen(
        energy=energy,
        bounded=replace(energy, parts=(*energy.parts, *parts)),
        truth_j=load.energy_j(*(one / 1e9 for one in timed.window_ns)),
        missed=looks_of(trace, timed).missed_share,
    )


@cache
def machines(kind: str, pace: str) -> tuple[Seen, ...]:
    return tuple(seen(seed, kind, pace) for seed in range(MACHINES))


KINDS = pytest.mark.parametrize("kind", ["part-time", "part-time-counter"])


@KINDS
@pytest.mark.parametrize("pace", ["any", "nearly in step"])
def test_the_truth_lies_in_95_of_100_intervals_of_what_is_not_void(kind, pace):
    usable = [one.held(one.bounded) for one in machines(kind, pace) if one.missed <= MOST_MISSED]
    assert len(usable) >= 0.5 * MACHINES
    assert np.mean(usable) >= 0.93


@KINDS
def test_power_is_void_where_the_load_is_in_step_with_the_sensor(kind):
    assert all(one.missed > MOST_MISSED for one in machines(kind, "in step"))


@KINDS
def test_without_it_a_load_in_step_is_misread_unnoticed(kind):
    """A check of these tests: the statistics of the readings alone know nothing of it."""
    assert np.mean([one.held(one.energy) for one in machines(kind, "in step")]) < 0.5
    nearly = [one for one in machines(kind, "nearly in step") if 0 < one.missed <= MOST_MISSED]
    assert np.mean([one.held(one.energy) for one in nearly]) < np.mean([one.held(one.bounded) for one in nearly])


@KINDS
def test_a_load_that_is_not_in_step_pays_nearly_nothing_for_the_bound(kind):
    wider = [one.bounded.half_width_j / one.energy.half_width_j for one in machines(kind, "any")]
    assert np.median(wider) < 1.1


@KINDS
def test_a_counter_that_says_that_it_sees_everything_claims_too_much(kind):
    """What a rail does not state is in no interval."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        load, starts = load_of(rng, 0.13, 0.02, 5.0)
        trace = read(load, sensor_of(rng, kind))
        silent = replace(trace, rail=replace(trace.rail, seen_share=1.0))
        window_ns = (round(starts[0] * 1e9), round(starts[-1] * 1e9))
        energy = total_energy(TotalFormula(rails=("nvml:GPU0",), scope="the card"), [silent], window_ns)
        held.append(abs(energy.energy_j - load.energy_j(*load.window_s)) <= energy.half_width_j)
    if kind == "part-time-counter":
        assert np.mean(held) < 0.9
    else:
        assert np.mean(held) >= 0.93, "samples of power have the term anyway"
