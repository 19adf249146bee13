"""Simulated sensors under a load whose every edge is known, without a clock: a minute takes some milliseconds."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from powerlab.boards.simulator.sensor import Sensor
from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Provenance

TICK_NS = 1_000_000
READ_NS = 5_000_000

SENSORS: dict[str, Mapping[str, float]] = {
    "nvidia-grace": {"update_period_s": 0.05, "averaging_s": 0.05, "noise_relative": 0.004, "step_w": 0.001},
    "apm-xgene": {"update_period_s": 0.02, "averaging_s": 0.02, "noise_relative": 0.004},
    "nvml instant": {"update_period_s": 0.1, "averaging_s": 0.1, "noise_relative": 0.004},
    "nvml average": {"update_period_s": 0.1, "averaging_s": 1.0, "noise_relative": 0.001},
    "ina3221, filtered": {"update_period_s": 0.01, "lag_s": 0.03, "noise_relative": 0.01, "step_w": 0.4},
    "ina3221, averaging": {"update_period_s": 0.04, "averaging_s": 0.04, "noise_relative": 0.01, "step_w": 0.24},
    "ipmi": {"update_period_s": 1.0, "averaging_s": 1.0, "noise_relative": 0.003, "step_w": 1.0},
}
"""The sensors of several boards, as their descriptions have them, and two that filter or average as an INA3221 may."""


def true_lag_s(sensor: Mapping[str, float]) -> float:
    """The mean delay: the filter, half of what is averaged, and half of the time until the next value."""
    return sensor.get("lag_s", 0.0) + sensor.get("averaging_s", 0.0) / 2 + sensor["update_period_s"] / 2


def rail_of(sensor: Mapping[str, float], name: str = "rail") -> Rail:
    return Rail(
        source="hwmon",
        name=name,
        quantity=RailQuantity.POWER,
        resolution=sensor.get("step_w", 0.0),
        relative_error=0.0,
        update_period_s=sensor["update_period_s"],
        provenance=Provenance.SIMULATED,
    )


def record(sensor: Mapping[str, float], power_w: Callable[[int], float], until_ns: int, seed: int = 0) -> Trace:
    """Read a sensor of a power, which is given for the ns since the recording's start."""
    noise, model = random.Random(seed), Sensor(**sensor)
    phase_ns = noise.randrange(1, 2_000) * TICK_NS
    shown, time_ns, value = 0.0, [], []
    for now_ns in range(-phase_ns, until_ns + TICK_NS, TICK_NS):
        seen = model.observe(now_ns, power_w(now_ns - TICK_NS // 2), noise)
        shown = shown if seen is None else seen
        if now_ns >= 0 and now_ns % READ_NS == 0:
            time_ns.append(now_ns)
            value.append(shown)
    return Trace(rail=rail_of(sensor), time_ns=np.array(time_ns), value=np.array(value))


@dataclass(frozen=True)
class Steps:
    """A load that goes on and off, its edges on the ticks' borders."""

    edges_ns: tuple[int, ...]
    until_ns: int
    low_w: float = 20.0
    high_w: float = 60.0

    @classmethod
    def draw(cls, level_s: float, cycles: int, seed: int, low_w: float = 20.0, high_w: float = 60.0) -> Steps:
        chance = random.Random(seed)
        bounds, now_ns = [], 0
        for _ in range(2 * cycles + 1):
            now_ns += round(level_s * (1 + 0.5 * chance.random()) * 1e9) // TICK_NS * TICK_NS
            bounds.append(now_ns)
        return cls(tuple(bounds[:-1]), bounds[-1], low_w, high_w)

    def power_w(self, moment_ns: int) -> float:
        return self.high_w if bisect_left(self.edges_ns, moment_ns) % 2 else self.low_w
