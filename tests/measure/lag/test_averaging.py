"""The averaging window that a step load shows, against sensors whose window is known."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from powerlab.domain.power import RailQuantity, Trace
from powerlab.measure.lag.averaging import Averaging, averaging_of
from tests.measure.stepped_sensors import TICK_NS, Steps, rail_of, record

FULL = {"update_period_s": 0.1, "averaging_s": 0.1, "noise_relative": 0.002}
PART_TIME = {**FULL, "averaging_s": 0.025}
SECOND = {**FULL, "averaging_s": 1.0}


def found(sensor, level_s: float, counts: bool = False, seed: int = 4) -> Averaging | None:
    steps = Steps.draw(level_s, 8, seed)
    trace = record(sensor, steps.power_w, steps.until_ns, seed)
    if counts:
        new = np.concatenate(([True], np.diff(trace.value) != 0))
        each_j = np.where(new, trace.value * sensor["update_period_s"], 0.0)
        trace = replace(trace, rail=replace(trace.rail, quantity=RailQuantity.ENERGY), value=np.cumsum(each_j))
    return averaging_of(trace, steps.edges_ns, steps.until_ns)


@pytest.mark.parametrize("counts", [False, True], ids=["power", "counter"])
@pytest.mark.parametrize(
    ("sensor", "level_s"), [(FULL, 1.0), (PART_TIME, 1.0), (SECOND, 2.5)], ids=["100", "25", "1000"]
)
def test_the_window_is_found_within_what_is_said_of_it(sensor, level_s, counts):
    window = found(sensor, level_s, counts)
    assert window is not None
    assert abs(window.window_s - sensor["averaging_s"]) <= 3 * window.error_s + 0.005
    assert window.error_s < 0.03


def test_it_is_said_to_be_unsure_where_no_value_came_while_the_line_climbed():
    windows = [found(PART_TIME, 1.0, seed=seed) for seed in range(20)]
    assert all(window and abs(window.window_s - 0.025) <= 3 * window.error_s for window in windows)
    assert max(window.error_s for window in windows if window) > 0.01


@pytest.mark.parametrize("seed", [11, 20, 49, 52, 67, 76])
def test_a_load_that_a_busy_machine_switches_late_makes_it_less_sure(seed):
    chance = random.Random(seed)
    steps = Steps.draw(2.5, 4, seed)
    late_ns = [round(min(chance.expovariate(1 / 0.015), 0.08) * 1e9) // TICK_NS * TICK_NS for _ in steps.edges_ns]
    switched = replace(steps, edges_ns=tuple(np.add(steps.edges_ns, late_ns)))
    trace = record(PART_TIME, switched.power_w, steps.until_ns, seed)
    window = averaging_of(trace, steps.edges_ns, steps.until_ns)
    assert window is not None
    assert abs(window.window_s - 0.025) <= 3 * window.error_s


def clearly_part_time(sensor, seed: int) -> bool:
    window = found(sensor, 1.0, counts=True, seed=seed)
    assert window
    return window.window_s + 2 * window.error_s < 0.8 * sensor["update_period_s"]


def test_part_time_counters_are_mostly_told_and_no_other_is_taken_for_one():
    assert sum(clearly_part_time(PART_TIME, seed) for seed in range(10)) >= 8
    assert not any(clearly_part_time(FULL, seed) for seed in range(10))


def test_values_that_come_faster_than_they_are_read_tell_nothing():
    assert found({"update_period_s": 0.001}, 0.5) is None


def test_a_rail_that_stands_still_tells_nothing():
    time_ns = np.arange(0, 2_000_000_000, 5_000_000, dtype=np.int64)
    trace = Trace(rail=rail_of(FULL), time_ns=time_ns, value=np.full(time_ns.size, 7.0))
    assert averaging_of(trace, [500_000_000, 1_000_000_000], 1_500_000_000) is None
