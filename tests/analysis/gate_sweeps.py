"""Sweeps of a device that differs from day to day: the truth of a gate's tests."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from powerlab.domain.device_state import DeviceState
from powerlab.domain.run import Conditions, Run
from powerlab.domain.sweep import Point
from tests.analysis.paired_runs import point, sweep

POINT = point(1)
RATE, POWER_W = 100.0, 10.0


def series(
    count: int,
    *,
    seed: int = 0,
    between: float = 0.005,
    within: float = 0.005,
    loss: float = 0.0,
    points: Sequence[Point] = (POINT,),
    name: str = "sweep",
    repeats: int = 3,
    conditions: Mapping[str, str] | None = None,
) -> list[list[Run]]:
    """Return the runs of each of several sweeps, days apart.

    Args:
        count: sweeps.
        seed: of the scatter.
        between: relative standard deviation of the rate from sweep to sweep, shared by a sweep's points.
        within: relative standard deviation from repeat to repeat.
        loss: part of the rate that is missing in all of them.
        points: what they measure.
        name: beginning of their identifiers.
        repeats: of each point.
        conditions: the kernel and versions of powerlab and engine that they were measured with.
    """
    chance = random.Random(seed)
    found = []
    for number in range(count):
        rate = RATE * (1 - loss) * (1 + chance.gauss(0, between))
        runs = sweep(
            dict.fromkeys(points, (rate, POWER_W)),
            repeats=repeats,
            seed=chance.getrandbits(32),
            scatter=within,
            sweep_id=f"{name}-{number}",
        )
        started = f"2026-{1 + number // 28:02}-{1 + number % 28:02}T00:00:00+00:00"
        known = None if conditions is None else _conditions(conditions)
        found.append([replace(run, started_at=started, conditions=known) for run in runs])
    return found


def _conditions(words: Mapping[str, str]) -> Conditions:
    return Conditions(
        sample_period_s=0.01,
        measured_with=words.get("powerlab", "0.1.0"),
        engine_version=words.get("engine", "1"),
        device_state=DeviceState(kernel=words.get("kernel", "5.10"), l4t_release=words.get("l4t", "")),
    )
