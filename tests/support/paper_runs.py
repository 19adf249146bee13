"""Runs and meters on paper, for tests of what a sweep makes of them."""

from __future__ import annotations

from powerlab.domain.power import Rail, RailQuantity, TotalFormula
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.measure.recording.rails import Meter
from powerlab.sysroot import Sysroot


def rail(source: str, name: str, relative_error: float) -> Rail:
    return Rail(
        source=source,
        name=name,
        quantity=RailQuantity.POWER,
        resolution=0.0,
        relative_error=relative_error,
        update_period_s=0.0,
        provenance=Provenance.MEASURED,
    )


def meter_of(*rails: Rail) -> Meter:
    total = TotalFormula(rails=tuple(one.key for one in rails), scope="all") if rails else None
    return Meter(sysroot=Sysroot(), total=total, rails=rails, sample_period_s=0.01)


def runs_of(point: Point, *values: float, spread: float = 0.001, verdict: Verdict = Verdict.VALID) -> list[Run]:
    return [
        Run(
            id=f"{point.id}-{index}",
            sweep_id="s",
            point=point,
            repeat=index,
            started_at="2026-01-01T00:00:00+00:00",
            window_ns=(1, 2),
            inference_count=100,
            verdict=verdict,
            findings=(),
            metrics=(
                Metric(
                    name="efficiency_img_per_s_per_w",
                    value=value,
                    low=value * (1 - spread),
                    high=value * (1 + spread),
                    provenance=Provenance.MEASURED,
                ),
            ),
            total=None,
        )
        for index, value in enumerate(values)
    ]
