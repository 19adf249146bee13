"""The model of time and power: it learns power laws, knows what it does not know, and forgives a slip."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from paper_grid import PLAN, amdahl
from powerlab.search.contest import contest
from powerlab.search.space import space_of
from powerlab.search.surface import Surface

POINTS = PLAN.points()
SPACE = space_of(POINTS, {})
LATENCY = np.array([math.log(amdahl(point)[0]) for point in POINTS])
NUMBERS = [place for place, point in enumerate(POINTS) if point.mode != "governor=powersave"]


def fitted(places: list[int], seed: int = 0, scatter: float = 0.003) -> Surface:
    dice = random.Random(seed)
    return Surface(SPACE, "latency_p50_ms", places, [LATENCY[at] + scatter * dice.gauss(0.0, 1.0) for at in places])


def test_a_dozen_runs_say_most_of_a_smooth_grid():
    surface = fitted(random.Random(1).sample(NUMBERS, 14))
    assert np.abs(surface.mean - LATENCY)[NUMBERS].mean() < 0.05


@pytest.mark.parametrize("seed", range(3))
def test_the_truth_lies_within_what_the_model_thinks_possible(seed):
    places = random.Random(seed).sample(NUMBERS, 12)
    leader = min(places, key=lambda at: LATENCY[at])
    seen = fitted(places, seed).against(leader)
    spread = np.sqrt(np.maximum(seen.variance + seen.variance[leader] - 2 * seen.covariance, 0.0))
    off = np.abs((seen.mean - seen.mean[leader]) - (LATENCY - LATENCY[leader]))
    unknown = [at for at in NUMBERS if at not in places]
    assert np.mean(off[unknown] <= 2 * spread[unknown] + 1e-6) >= 0.9


def test_repeats_make_a_point_surer_and_what_was_never_seen_stays_open():
    few, many = fitted(NUMBERS[:20]), fitted([*NUMBERS[:20], *5 * [NUMBERS[0]]])
    assert many.against(0).variance[NUMBERS[0]] <= few.against(0).variance[NUMBERS[0]]
    label = next(place for place, point in enumerate(POINTS) if point.mode == "governor=powersave")
    assert few.against(0).variance[label] > 10 * few.against(0).variance[NUMBERS[10]]


def test_one_slip_of_a_run_does_not_move_its_neighbours_much():
    places = [*NUMBERS, *NUMBERS]
    values = [LATENCY[at] for at in places]
    values[7] += 0.7
    surface = Surface(SPACE, "latency_p50_ms", places, values)
    others = [at for at in NUMBERS if at != NUMBERS[7]]
    assert np.abs(surface.mean - LATENCY)[others].max() < 0.05


def test_a_contest_ranks_by_what_the_runs_say_and_the_leader_does_not_beat_itself():
    everywhere = np.arange(len(POINTS))
    surfaces = {"latency_p50_ms": fitted([*NUMBERS, *NUMBERS])}
    found = contest("latency", everywhere, np.array(NUMBERS), surfaces, 0.01)
    assert LATENCY[found.leader] <= LATENCY[NUMBERS].min() + 0.01
    assert found.chance[found.leader] == 0
    assert np.all((found.chance >= 0) & (found.chance <= 1))
    assert np.all(found.gain >= -1e-12)
    slow = [at for at in NUMBERS if LATENCY[at] > LATENCY[found.leader] + 0.2]
    assert found.chance[slow].max() < 0.01


def test_power_between_two_clocks_is_expected_below_what_a_power_law_says():
    caps = (1_000_000, 1_400_000, 2_000_000)
    plan = replace(PLAN, modes=tuple(f"cpu-max={cap}kHz" for cap in caps), threads=(4,), batch_sizes=(1,))
    space = space_of(plan.points(), {})
    lowest, between, highest = ([point.mode for point in space.points].index(mode) for mode in plan.modes)
    surface = Surface(space, "power_w", [lowest, highest] * 3, [math.log(10.0), math.log(30.0)] * 3)
    assert surface.mean[between] < (surface.mean[lowest] + surface.mean[highest]) / 2 - 0.02
