"""Runs on paper."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from powerlab.domain.power import TotalFormula
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload

POWER_METRICS = ("power_w", "energy_per_image_j", "efficiency_img_per_s_per_w")


@pytest.fixture(scope="session")
def make_run() -> Callable[..., Run]:
    numbers = itertools.count()

    def make(  # noqa: PLR0917
        threads: int = 1,
        latency_ms: float = 10.0,
        power_w: float | None = 10.0,
        provenance: Provenance = Provenance.MEASURED,
        findings: tuple[Finding, ...] = (),
        spread: float | None = 0.01,
        model: str = "resnet50",
    ) -> Run:
        number = next(numbers)
        values = {"latency_p50_ms": latency_ms, "throughput_img_per_s": 1000 / latency_ms}
        if power_w is not None:
            values["power_w"] = power_w
            values["efficiency_img_per_s_per_w"] = 1000 / latency_ms / power_w
        verdicts = [finding.verdict for finding in findings]
        order = [Verdict.FAILED, Verdict.VOID, Verdict.FLAGGED]
        return Run(
            id=f"run-{number}",
            sweep_id="sweep",
            point=Point(workload=Workload(model=model, batch_size=1), threads=threads, mode="current"),
            repeat=number,
            started_at="2026-01-01T00:00:00+00:00",
            window_ns=(1, 2),
            inference_count=100,
            verdict=next((verdict for verdict in order if verdict in verdicts), Verdict.VALID),
            findings=findings,
            metrics=tuple(
                Metric(
                    name=name,
                    value=value,
                    low=None if spread is None else value * (1 - spread),
                    high=None if spread is None else value * (1 + spread),
                    provenance=provenance if name in POWER_METRICS else Provenance.MEASURED,
                )
                for name, value in values.items()
            ),
            total=None if power_w is None else TotalFormula(rails=("rapl:package-0",), scope="the package"),
        )

    return make
