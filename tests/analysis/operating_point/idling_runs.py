"""Runs on paper of points that idle between images: a true rate, power and idle power, seen by one sensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind, Run
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from tests.analysis.paired_runs import RAIL, sweep


def place(mode: str = "MAXN", threads: int = 1, batch: int = 1) -> Point:
    return Point(workload=Workload(model="detector", batch_size=batch), threads=threads, mode=mode)


def idling(truth: Mapping[Point, tuple[float, float, float]], *, p99_factor: float = 1.2, **how: object) -> list[Run]:
    """Return runs of points with their true (img/s, W, idle W); ``how`` is that of :func:`sweep`."""
    made = sweep({point: (rate, power_w) for point, (rate, power_w, _) in truth.items()}, **how)
    return [_with_idle(run, truth[run.point][2], p99_factor) for run in made]


def _with_idle(run: Run, idle_w: float, p99_factor: float) -> Run:
    values = {metric.name: metric.value for metric in run.metrics}
    rate, power_w = values["throughput_img_per_s"], values["power_w"]
    share = next(
        line.standard_uncertainty / power_w for line in run.budget if (line.metric, line.effect) == ("power_w", "gain")
    )
    more = {
        "idle_power_w": (idle_w, share * idle_w),
        "energy_above_idle_per_image_j": ((power_w - idle_w) / rate, share * (power_w - idle_w) / rate),
    }
    provenance = next(metric.provenance for metric in run.metrics if metric.name == "power_w")
    latency = 1000 * run.point.workload.batch_size / rate * p99_factor
    clock = {"latency_p99_ms": latency, "peak_memory_mb": 100.0 + run.point.threads, "end_temperature_c": 50.0}
    return replace(
        run,
        metrics=(
            *run.metrics,
            *(
                Metric(name=name, value=value, low=value - 2 * u, high=value + 2 * u, provenance=provenance)
                for name, (value, u) in more.items()
            ),
            *(Metric(name=name, value=value, provenance=Provenance.MEASURED) for name, value in clock.items()),
        ),
        budget=(
            *run.budget,
            *(
                Contribution(metric=name, origin=RAIL, effect="gain", kind=EffectKind.B, standard_uncertainty=u)
                for name, (_, u) in more.items()
            ),
        ),
    )
