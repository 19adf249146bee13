"""Energy of the parts of a step: intervals hold the truth, and what sensors cannot tell apart has no figure."""

from __future__ import annotations

import math

import numpy as np
import pytest

from powerlab.domain.budget import half_width, of_metric
from powerlab.domain.power import RailQuantity, Trace
from powerlab.measure.energy.of_parts import FEWEST_PERIODS, PartEnergy, part_energies
from powerlab.measure.percentiles.latency import TimedInferences
from tests.measure.true_power import Reads, Sensor, TruePower, rail_of

NAMES = ("forward", "backward", "update")
PERIOD_S = 0.01


def steps(rng: np.random.Generator, lasts_s: tuple[float, ...], count: int) -> TimedInferences:
    """Return steps whose parts follow each other without a pause, 1 % longer or shorter each."""
    parts_ns = np.round(1e9 * np.array(lasts_s) * rng.normal(1.0, 0.01, (count, len(lasts_s)))).astype(np.int64)
    ends_ns = 1_000_000_000 + np.cumsum(parts_ns.sum(axis=1))
    return TimedInferences(
        start_ns=np.concatenate(([1_000_000_000], ends_ns[:-1])),
        end_ns=ends_ns,
        part_ns=dict(zip(NAMES, parts_ns.T, strict=False)),
    )


def power_of(timed: TimedInferences, watts: tuple[float, ...]) -> TruePower:
    parts_s = np.stack(list(timed.part_ns.values()), axis=1).ravel() / 1e9
    edges_s = 1.0 + np.concatenate(([0.0], np.cumsum(parts_s)))
    return TruePower.steps(
        (0.0, *edges_s.tolist(), float(edges_s[-1]) + 1.0), (3.0, *np.tile(watts, timed.count).tolist(), 3.0)
    )


def seen(rng: np.random.Generator, quantity: RailQuantity, power: TruePower, end_ns: int, **stated: float) -> Trace:
    """Return what a sensor with errors inside its statement showed, read once in each of its periods or more often."""
    counts = quantity is RailQuantity.ENERGY
    rail = rail_of(
        quantity,
        resolution=1e-3,
        relative_error=0.01,
        update_period_s=PERIOD_S,
        offset=0.0 if counts else 0.02,
        **stated,
    )
    sensor = Sensor(
        rail=rail,
        refresh_s=PERIOD_S * rng.uniform(0.9, 1.0),
        phase=rng.uniform(),
        window_s=0.0 if counts else PERIOD_S * rng.uniform(0.1, 1.0),
        gain=rng.uniform(-0.01, 0.01),
        offset_w=0.0 if counts else rng.uniform(-0.02, 0.02),
    )
    apart_ns = round(1e9 * PERIOD_S * rng.uniform(0.2, 1.0))
    return Reads(time_ns=np.arange(500_000_000, end_ns + 500_000_000, apart_ns)).file_trace(sensor, power)


def found_of(traces: list[Trace], timed: TimedInferences) -> dict[str, PartEnergy]:
    return {one.name: one for one in part_energies(traces, timed)}


@pytest.mark.parametrize("quantity", [RailQuantity.POWER, RailQuantity.ENERGY])
def test_intervals_hold_the_truth_and_tell_parts_apart(quantity):
    inside, relative = [], []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        lasts_s = tuple(rng.uniform(0.06, 0.3, 3))
        watts = tuple(rng.uniform(4.0, 20.0, 3))
        timed = steps(rng, lasts_s, int(rng.integers(4, 25)))
        found = found_of([seen(rng, quantity, power_of(timed, watts), int(timed.end_ns[-1]))], timed)
        assert set(found) == set(NAMES)
        for name, power_w in zip(NAMES, watts, strict=True):
            truth_j = power_w * float(timed.part_ns[name].mean()) / 1e9
            half_j = half_width(found[name].parts)
            inside.append(abs(found[name].energy_j - truth_j) <= half_j)
            relative.append(half_j / truth_j)
    assert np.mean(inside) >= 0.93
    assert np.median(relative) < 0.12


def test_the_parts_of_steps_without_pauses_add_up_to_the_whole():
    rng = np.random.default_rng(1)
    timed = steps(rng, (0.1, 0.2, 0.05), 10)
    power = power_of(timed, (10.0, 14.0, 6.0))
    trace = Reads(time_ns=np.arange(500_000_000, int(timed.end_ns[-1]) + 500_000_000, 1_000_000)).file_trace(
        Sensor(rail=rail_of(RailQuantity.POWER, update_period_s=0.001)), power
    )
    found = found_of([trace], timed)
    whole_j = power.energy_j(timed.window_ns) / timed.count
    assert math.fsum(one.energy_j for one in found.values()) == pytest.approx(whole_j, rel=0.01)


def test_a_part_that_is_too_short_for_the_slowest_sensor_has_no_figure():
    rng = np.random.default_rng(2)
    timed = steps(rng, (0.1, 0.2, 0.9 * FEWEST_PERIODS * PERIOD_S), 10)
    power, end_ns = power_of(timed, (10.0, 14.0, 6.0)), int(timed.end_ns[-1])
    fast, slow = (Reads(time_ns=np.arange(0, end_ns + 10**9, apart_ns)) for apart_ns in (10**6, 3 * 10**7))
    assert set(found_of([seen(rng, RailQuantity.POWER, power, end_ns)], timed)) == {"forward", "backward"}
    sensor = Sensor(rail=rail_of(RailQuantity.POWER))
    assert set(found_of([fast.file_trace(sensor, power)], timed)) == set(NAMES)
    assert set(found_of([fast.file_trace(sensor, power), slow.file_trace(sensor, power)], timed)) == {"backward"}


def test_a_sensor_that_looks_part_of_the_time_and_queries_without_parts_give_nothing():
    rng = np.random.default_rng(3)
    timed = steps(rng, (0.1, 0.2, 0.1), 10)
    power, end_ns = power_of(timed, (10.0, 14.0, 6.0)), int(timed.end_ns[-1])
    assert not found_of([seen(rng, RailQuantity.ENERGY, power, end_ns, seen_share=0.25)], timed)
    plain = TimedInferences(start_ns=timed.start_ns, end_ns=timed.end_ns)
    assert not found_of([seen(rng, RailQuantity.POWER, power, end_ns)], plain)


def test_a_figure_s_interval_is_what_its_budget_makes_of_it():
    rng = np.random.default_rng(4)
    timed = steps(rng, (0.1, 0.2, 0.1), 10)
    found = found_of([seen(rng, RailQuantity.POWER, power_of(timed, (9.0, 14.0, 6.0)), int(timed.end_ns[-1]))], timed)
    metric, lines = found["backward"].metric(), list(found["backward"].budget())
    assert metric.name == "backward_energy_j"
    assert metric.high - metric.value == pytest.approx(half_width(of_metric(lines, metric.name)))
