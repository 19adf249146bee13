"""A device, a plan and runs, for every test of the server's side."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.mode import CURRENT_MODE, PowerMode, Setting
from powerlab.domain.power import (
    Availability,
    Rail,
    RailQuantity,
    SourceProbe,
    TotalFormula,
    Trace,
)
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Finding, Run, Verdict
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import WorkloadKind


@dataclass
class Clock:
    """A clock that goes when it is told to."""

    now: datetime = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


RAIL = Rail(
    source="ina3221",
    name="VDD_GPU",
    quantity=RailQuantity.POWER,
    resolution=0.008,
    relative_error=0.01,
    update_period_s=0.1,
    provenance=Provenance.MEASURED,
)
COUNTER = Rail(
    source="rapl",
    name="package-0",
    quantity=RailQuantity.ENERGY,
    resolution=6.1e-5,
    relative_error=0.05,
    update_period_s=0.001,
    provenance=Provenance.MEASURED,
)
TOTAL = TotalFormula(rails=(RAIL.key,), scope="module rails, without the carrier board")
SLOW = PowerMode(
    name="SLOW",
    settings=(Setting(knob="cpufreq", target="policy0", value="800000"),),
    online_cores=2,
    description="capped",
)
REBOOT = PowerMode(name="REBOOT", requires_reboot=True)


def device(name: str = "board-1", cores: int = 4) -> Device:
    return Device(
        name=name,
        board="generic",
        architecture="aarch64",
        cpu_model="Cortex-A78AE",
        core_count=cores,
        memory_bytes=8 << 30,
        kernel="6.1.0",
        simulated=False,
    )


def capabilities() -> Capabilities:
    found = SourceProbe(source="ina3221", availability=Availability.AVAILABLE, detail="one rail", rails=(RAIL,))
    absent = SourceProbe(source="rapl", availability=Availability.ABSENT, detail="no counters")
    return Capabilities(
        sources=(found, absent),
        total=TOTAL,
        modes=(CURRENT_MODE, SLOW, REBOOT),
        workloads=tuple(WorkloadKind),
        recomputes=True,
        trains_on_gpu=True,
    )


PLAN = SweepPlan(models=("resnet50",), threads=(1, 2), batch_sizes=(1, 4), modes=("current", "SLOW"), duration_s=0.1)


def make_run(sweep_id: str, point: Point, repeat: int, speed: float = 31.7) -> Run:
    def metric(name: str, value: float) -> Metric:
        return Metric(name=name, value=value, low=value * 0.98, high=value * 1.03, provenance=Provenance.MEASURED)

    return Run(
        id=str(uuid.uuid4()),
        sweep_id=sweep_id,
        point=point,
        repeat=repeat,
        started_at="2026-01-02T03:04:05.678901+00:00",
        window_ns=(1_000_000_007, 6_000_000_013),
        inference_count=158,
        verdict=Verdict.FLAGGED,
        findings=(Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="1.2 GHz of 2.2 GHz"),),
        metrics=(
            metric("throughput_img_per_s", speed),
            Metric(name="latency_p50_ms", value=1000 / speed, provenance=Provenance.MEASURED),
            metric("power_w", 7.1 + 0.1),
            metric("efficiency_img_per_s_per_w", speed / (7.1 + 0.1)),
        ),
        total=TOTAL,
    )


def runs_of(sweep_id: str, plan: SweepPlan = PLAN) -> list[Run]:
    return [make_run(sweep_id, point, repeat) for point in plan.points() for repeat in range(plan.repeats)]


def make_trace(rail: Rail = RAIL, count: int = 1000, seed: int = 0) -> Trace:
    random = np.random.default_rng(seed)
    return Trace(
        rail=rail,
        time_ns=np.cumsum(random.integers(1_000_000, 20_000_000, count), dtype=np.int64),
        value=random.normal(7.0, 0.5, count),
        read_cost_ns=12_345,
    )
