"""Runs of a sweep whose truth is known: points with a true power and rate, blocks, scatter, and one sensor's errors."""

from __future__ import annotations

import random
from collections.abc import Mapping

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind, Run, Verdict
from powerlab.domain.statistics import NORMAL_95
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload

RAIL = "ina3221:VDD_IN"


def point(threads: int = 1, **workload: object) -> Point:
    return Point(workload=Workload(model="resnet50", batch_size=1, **workload), threads=threads, mode="current")


def sweep(
    truth: Mapping[Point, tuple[float, float]],
    *,
    repeats: int = 3,
    seed: int = 0,
    scatter: float = 0.01,
    blocks: float = 0.0,
    gain: float = 0.0,
    gain_bound: float = 0.015,
    offset_w: float = 0.0,
    offset_bound_w: float = 0.0,
    budget: bool = True,
    sweep_id: str = "sweep",
    provenance: Provenance = Provenance.MEASURED,
) -> list[Run]:
    """Return the runs of every point with its true (img/s, W).

    Args:
        truth: what is measured.
        repeats: runs of each point.
        seed: of the scatter.
        scatter: relative standard deviation from run to run.
        blocks: relative standard deviation from block to block, which all points of a block share.
        gain: relative error of the sensor in all of these runs.
        gain_bound: what the sensor's maker promises of it.
        offset_w: what the sensor adds to every reading.
        offset_bound_w: what its maker promises of that.
        budget: whether the runs carry the lines of their uncertainty.
        sweep_id: of all runs.
        provenance: of their power.
    """
    chance = random.Random(seed)
    made = []
    for repeat in range(repeats):
        block = 1 + chance.gauss(0, blocks)
        for place, (rate, power_w) in truth.items():
            seen_rate = rate * block * (1 + chance.gauss(0, scatter))
            true_w = power_w * block * (1 + chance.gauss(0, scatter))
            seen_w = true_w * (1 + gain) + offset_w
            made.append(
                _run(place, repeat, seen_rate, seen_w, (gain_bound, offset_bound_w), budget, sweep_id, provenance)
            )
    return made


def _run(  # noqa: PLR0917
    place: Point,
    repeat: int,
    rate: float,
    power_w: float,
    bounds: tuple[float, float],
    budget: bool,
    sweep_id: str,
    provenance: Provenance,
) -> Run:
    lines = {"gain": bounds[0] * power_w / 3**0.5, "offset": bounds[1] / 3**0.5}
    relative = sum(value**2 for value in lines.values()) ** 0.5 / power_w * NORMAL_95
    values = {
        "latency_p50_ms": (1000 / rate, 0.0, Provenance.MEASURED),
        "throughput_img_per_s": (rate, 0.0, Provenance.MEASURED),
        "power_w": (power_w, relative, provenance),
        "energy_per_image_j": (power_w / rate, relative, provenance),
        "efficiency_img_per_s_per_w": (rate / power_w, relative, provenance),
    }
    return Run(
        id=f"{sweep_id}-{place.id}-{repeat}",
        sweep_id=sweep_id,
        point=place,
        repeat=repeat,
        started_at="2026-01-01T00:00:00+00:00",
        window_ns=(1, 2),
        inference_count=100,
        verdict=Verdict.VALID,
        findings=(),
        metrics=tuple(
            Metric(name=name, value=value, low=value * (1 - half), high=value * (1 + half), provenance=word)
            for name, (value, half, word) in values.items()
        ),
        total=TotalFormula(rails=(RAIL,), scope="the module"),
        budget=tuple(
            Contribution(
                metric=name,
                origin=RAIL,
                effect=effect,
                kind=EffectKind.B,
                standard_uncertainty=values[name][0] * value / power_w,
            )
            for name in ("power_w", "energy_per_image_j", "efficiency_img_per_s_per_w")
            for effect, value in lines.items()
            if value > 0
        )
        if budget
        else (),
    )
