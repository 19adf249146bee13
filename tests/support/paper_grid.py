"""Grids on paper: points whose time and power follow from a formula, and runs that scatter around it."""

from __future__ import annotations

import random
from collections.abc import Callable

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point, SweepPlan

CLOCKS = (600, 1000, 1500, 2000)
PLAN = SweepPlan(
    models=("m",),
    threads=(1, 2, 4, 8),
    batch_sizes=(1, 2, 4, 8),
    modes=("current", *(f"cpu-max={mhz}000kHz" for mhz in CLOCKS), "governor=powersave"),
)
TOP_GHZ = 2.4

Truth = Callable[[Point], tuple[float, float]]


def amdahl(point: Point) -> tuple[float, float]:
    """Latency in ms and power in W: a serial share, a call, and cores that switch V^2 f (V linear in f)."""
    ghz = 0.4 if point.mode == "governor=powersave" else TOP_GHZ
    if point.mode.startswith("cpu-max"):
        ghz = float(point.mode.removeprefix("cpu-max=").removesuffix("kHz")) / 1e6
    batch = point.workload.batch_size
    latency_ms = (0.5 + 20.0 * batch * (0.08 + 0.92 / point.threads)) / ghz
    return latency_ms, 3.0 + 0.7 * point.threads * ghz * (0.5 + 0.25 * ghz) ** 2


def run_of(
    point: Point,
    repeat: int,
    truth: Truth = amdahl,
    *,
    dice: random.Random | None = None,
    scatter: float = 0.0,
    power: bool = True,
) -> Run:
    """A run; a scatter of 0 gives the truth itself."""
    noise = [1.0 + scatter * (dice or random).gauss(0.0, 1.0) for _ in range(2)] if scatter else [1.0, 1.0]
    latency_ms, power_w = truth(point)
    latency_ms, power_w = latency_ms * noise[0], power_w * noise[1]
    throughput = 1e3 * point.workload.batch_size / latency_ms
    figures = {"latency_p50_ms": latency_ms, "throughput_img_per_s": throughput}
    if power:
        figures |= {"power_w": power_w, "efficiency_img_per_s_per_w": throughput / power_w}
    return Run(
        id=f"{point.id}-{repeat}",
        sweep_id="s",
        point=point,
        repeat=repeat,
        started_at="2026-01-01T00:00:00+00:00",
        window_ns=(1, 2),
        inference_count=100,
        verdict=Verdict.VALID,
        findings=(),
        metrics=tuple(
            Metric(name=name, value=value, provenance=Provenance.SIMULATED) for name, value in figures.items()
        ),
        total=None,
    )


def figure(point: Point, goal: str, truth: Truth = amdahl) -> float:
    """How good a point truly is; more is better."""
    latency_ms, power_w = truth(point)
    if goal == "latency":
        return 1 / latency_ms
    throughput = point.workload.batch_size / latency_ms
    return throughput if goal == "throughput" else throughput / power_w
