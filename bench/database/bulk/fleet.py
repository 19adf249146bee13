"""A made-up fleet with the past of a real one: devices and models come one after another, and some are rare."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.device_state import Clock, DeviceState, Fan
from powerlab.domain.mode import CURRENT_MODE, PowerMode, Setting
from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe, TotalFormula
from powerlab.domain.quantity import POWER_FIGURES, Metric, Provenance
from powerlab.domain.run import Conditions, Contribution, EffectKind, Finding, Run, Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import Description

START = datetime(2025, 9, 1, tzinfo=UTC)
DAYS = 440
"""Some fourteen months, as dashboards look at them."""
THREADS, BATCHES = (1, 2, 4, 8), (1, 8)
MODES = ("MAXN", "MODE_15W", "MODE_30W", "powersave", "performance")
MODELS = ("resnet50", "mobilenetv2", "vgg16", "alexnet", *(f"network-{number:02}" for number in range(56)))
RAIL_NAMES = ("VDD_GPU", "VDD_CPU")
_FIGURES = {
    "latency_p50_ms": 30.0, "latency_p90_ms": 33.0, "latency_p99_ms": 39.0, "throughput_img_per_s": 31.0,
    "power_w": 14.0, "idle_power_w": 6.0, "energy_per_image_j": 0.45, "energy_above_idle_per_image_j": 0.25,
    "efficiency_img_per_s_per_w": 2.2, "start_temperature_c": 41.0, "end_temperature_c": 44.0,
    "sampling_core_percent": 0.6,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Board:
    """A device of the fleet; its agent speaks for the first time after ``first`` of all the time."""

    id: str
    description: Description
    first: float

    @property
    def provenance(self) -> Provenance:
        return self.description.capabilities.sources[0].rails[0].provenance


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A sweep of the fleet's past."""

    id: str
    board: Board
    plan: SweepPlan
    at: datetime


def identifier(dice: random.Random) -> str:
    return str(uuid.UUID(int=dice.getrandbits(128), version=4))


def boards(count: int, dice: random.Random) -> list[Board]:
    """Return the devices: every fifth is a simulated board, one has an estimate for a sensor."""
    return [_board(number, 0.9 * number / count, identifier(dice)) for number in range(count)]


def _board(number: int, first: float, board_id: str) -> Board:
    simulated = number % 5 == 4
    provenance = Provenance.SIMULATED if simulated else Provenance.ESTIMATED if number == 1 else Provenance.MEASURED
    rails = tuple(
        Rail(
            source="ina3221", name=name, quantity=RailQuantity.POWER, resolution=0.008, relative_error=0.01,
            update_period_s=0.01, provenance=provenance,
        )
        for name in RAIL_NAMES
    )  # fmt: skip
    found = SourceProbe(source="ina3221", availability=Availability.AVAILABLE, detail="two rails", rails=rails)
    absent = [
        SourceProbe(source=name, availability=Availability.ABSENT, detail="no such sensor here", remedy="none is known")
        for name in ("rapl", "hwmon", "nvml", "ipmi", "battery", "tegrastats", "jtop")
    ]
    settings = tuple(Setting(knob="cpufreq", target=f"policy{core}", value="1190400") for core in range(4))
    modes = (CURRENT_MODE, *(PowerMode(name=name, settings=settings, description="a mode") for name in MODES))
    device = Device(
        name=f"board-{number:04}", board="jetson-agx-xavier", architecture="aarch64", cpu_model="Carmel",
        core_count=8, memory_bytes=32 << 30, kernel="5.10.120-tegra", simulated=simulated,
    )  # fmt: skip
    total = TotalFormula(rails=tuple(rail.key for rail in rails), scope="module rails, without the carrier board")
    able = Capabilities(sources=(found, *absent), total=total, modes=modes)
    return Board(id=board_id, first=first, description=Description(device=device, capabilities=able))


def sweeps(devices: list[Board], run_count: int, dice: random.Random) -> Iterator[Asked]:
    """Yield sweeps in the order in which they were asked for, until so many runs are planned.

    Every five-hundredth is a large one, of 600 runs instead of 24. Models come one after another and the last are
    rare, a mode with them: what is wanted may lie at the very end of everything that is stored.
    """
    planned = number = 0
    while planned < run_count:
        share = planned / run_count
        there = [board for board in devices[: int(len(devices) * share / 0.9) + 1] if board.first <= share]
        known = max(4, int(len(MODELS) * min(1.0, share * 1.05)))
        model = MODELS[min(int(dice.paretovariate(0.7)) - 1, known - 1)]
        plan = SweepPlan(models=(model,), threads=THREADS, batch_sizes=BATCHES, modes=(dice.choice(MODES[:4]),))
        if number % 2000 == 1999:
            plan = replace(plan, modes=("performance",))
        if number % 500 == 10:
            plan = replace(plan, threads=tuple(range(1, 26)), modes=MODES[:4])
        yield Asked(
            id=identifier(dice), board=dice.choice(there), plan=plan, at=START + timedelta(days=DAYS * share)
        )  # fmt: skip
        planned += len(plan.points()) * plan.repeats
        number += 1


def runs(asked: Asked, dice: random.Random) -> Iterator[Run]:
    """Yield the runs of a sweep."""
    for point in asked.plan.points():
        for repeat in range(asked.plan.repeats):
            speed = dice.lognormvariate(0, 0.5)
            verdict = dice.choices(tuple(Verdict), (90, 8, 1.5, 0.5))[0]
            found = () if verdict is Verdict.VALID else (Finding(rule="throttled", verdict=verdict, detail="1.2 GHz"),)
            failed = verdict is Verdict.FAILED
            yield Run(
                id=identifier(dice), sweep_id=asked.id, point=point, repeat=repeat, started_at=asked.at.isoformat(),
                window_ns=(0, 0) if failed else (1_000_000_007, 6_000_000_013), inference_count=158, verdict=verdict,
                findings=found, metrics=() if failed else tuple(_figures(asked.board.provenance, speed)),
                total=asked.board.description.capabilities.total, budget=BUDGET, conditions=CONDITIONS,
            )  # fmt: skip


def _figures(provenance: Provenance, speed: float) -> Iterator[Metric]:
    for name, usual in _FIGURES.items():
        value = usual * speed
        own = provenance if name in POWER_FIGURES else Provenance.MEASURED
        yield Metric(name=name, value=value, low=0.98 * value, high=1.03 * value, provenance=own)


BUDGET = tuple(
    Contribution(metric=name, origin=origin, effect=effect, kind=EffectKind.B, standard_uncertainty=0.0123456789)
    for name in ("power_w", "energy_per_image_j", "efficiency_img_per_s_per_w")
    for origin in (*(f"ina3221:{name}" for name in RAIL_NAMES), "idle")
    for effect in ("gain", "quantisation", "sampling")
)
CONDITIONS = Conditions(
    sample_period_s=0.01, load_ns=1_000_000_000, idle_before_ns=(1, 2), idle_after_ns=(3, 4), measured_with="0.1.0",
    lively={f"ina3221:{name}": 9.87 for name in RAIL_NAMES},
    device_state=DeviceState(
        kernel="5.10.120-tegra", kernel_build="#1 SMP PREEMPT", l4t_release="R35.4.1", drivers=("nvidia 35.4.1",),
        cpu_clocks=tuple(Clock(name=f"policy{core}", governor="schedutil", low_hz=1, high_hz=2) for core in range(4)),
        device_clocks=tuple(Clock(name=f"{core}.gv11b", low_hz=1, high_hz=2) for core in range(3)),
        fans=(Fan(name="pwmfan 1", speed_rpm=1200),),
    ),
)  # fmt: skip
