"""Sweeps as a board might have given them, from a seed: for tests, and for looking at pages while working on them."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

import numpy as np

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.mode import CURRENT_MODE, ModeOrigin, PowerMode, Setting
from powerlab.domain.power import Availability, Rail, RailQuantity, SourceProbe, TotalFormula, Trace
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.run import Contribution, EffectKind, Finding, Run, Verdict
from powerlab.domain.sweep import Point, SweepPlan

WINDOW_NS = (1_000_000_000_000, 1_003_000_000_000)
MODE_SPEED = {"MAXN": 1.0, "MODE_15W": 0.58, "MODE_10W": 0.36, "current": 1.0}
MODEL_SPEED = {"resnet50": 9.0, "mobilenetv2": 62.0, "alexnet": 31.0}


@dataclass(frozen=True, kw_only=True)
class Bench:
    """A device with what it can do and the rails that are sampled on it."""

    device: Device
    capabilities: Capabilities

    @property
    def rails(self) -> tuple[Rail, ...]:
        """Every rail of every source that is there."""
        return tuple(rail for probe in self.capabilities.sources for rail in probe.rails)

    @property
    def provenance(self) -> Provenance:
        """Where its power figures come from."""
        return self.rails[0].provenance


def xavier(name: str = "xavier-sim") -> Bench:
    """Return a simulated board: three INA3221 rails that read power, added up."""
    rails = tuple(
        Rail(
            source="ina3221", name=rail, quantity=RailQuantity.POWER, resolution=0.001, relative_error=0.01,
            update_period_s=0.0, provenance=Provenance.SIMULATED,
        )
        for rail in ("CPU", "GPU", "SOC")
    )  # fmt: skip
    modes = (
        CURRENT_MODE,
        _mode("MAXN", "every core at its highest clock", 8),
        _mode("MODE_15W", "four cores, capped clocks", 4),
        _mode("MODE_10W", "two cores, capped clocks", 2),
    )
    return Bench(
        device=_device(name, board="jetson-agx-xavier", simulated=True),
        capabilities=Capabilities(
            sources=(
                SourceProbe(source="ina3221", availability=Availability.AVAILABLE, detail="three rails", rails=rails),
                SourceProbe(source="rapl", availability=Availability.ABSENT, detail="no powercap folder"),
            ),
            total=TotalFormula(
                rails=tuple(rail.key for rail in rails), scope="module rails, without the carrier board"
            ),
            modes=modes,
        ),
    )


def laptop(name: str = "bench-1") -> Bench:
    """Return a host with one RAPL energy counter."""
    rail = Rail(
        source="rapl", name="package-0", quantity=RailQuantity.ENERGY, resolution=6.1e-5, relative_error=0.0,
        update_period_s=0.001, provenance=Provenance.MEASURED,
    )  # fmt: skip
    return Bench(
        device=_device(name, board="generic", simulated=False),
        capabilities=Capabilities(
            sources=(
                SourceProbe(source="rapl", availability=Availability.AVAILABLE, detail="one package", rails=(rail,)),
            ),
            total=TotalFormula(rails=(rail.key,), scope="processor package, without memory and board", proposed=True),
            modes=(CURRENT_MODE,),
        ),
    )


def bare(name: str = "no-sensors") -> Bench:
    """Return a host on which no power can be read, with a remedy."""
    return Bench(
        device=_device(name, board="generic", simulated=False),
        capabilities=Capabilities(
            sources=(
                SourceProbe(
                    source="rapl",
                    availability=Availability.DENIED,
                    detail="energy_uj may be read by root only",
                    remedy="run: sudo chmod a+r /sys/class/powercap/intel-rapl:0/energy_uj",
                ),
            ),
            total=None,
            modes=(CURRENT_MODE,),
        ),
    )


def plan(**changes: object) -> SweepPlan:
    """Return a plan of 2 x 3 x 2 points on a simulated board, unless told otherwise."""
    values: dict[str, object] = {
        "models": ("resnet50",),
        "threads": (1, 2),
        "batch_sizes": (1, 4),
        "modes": ("MAXN", "MODE_15W", "MODE_10W"),
        "repeats": 3,
        "seed": 7,
    }
    return SweepPlan(**(values | changes))  # type: ignore[arg-type]


def runs(bench: Bench, sweep_plan: SweepPlan, sweep_id: str, seed: int = 1) -> list[Run]:
    """Return every run of a plan, all valid; without a total no power metric is there."""
    rng = np.random.default_rng(seed)
    return [
        run(bench, point, sweep_id, repeat, rng)
        for point in sweep_plan.points()
        for repeat in range(sweep_plan.repeats)
    ]


def run(bench: Bench, point: Point, sweep_id: str, repeat: int, rng: np.random.Generator) -> Run:
    """Return one run whose figures hang together: power x energy per image x throughput."""
    throughput = true_throughput(point) * (1 + 0.004 * float(rng.standard_normal()))
    latency_ms = 1000 * point.workload.batch_size / throughput
    simulated = Provenance.SIMULATED if bench.device.simulated else Provenance.MEASURED
    figures = [
        ("latency_p50_ms", latency_ms, 0.004, simulated),
        ("latency_p90_ms", latency_ms * 1.03, 0.008, simulated),
        ("latency_p99_ms", latency_ms * 1.11, 0.03, simulated),
        ("throughput_img_per_s", throughput, 0.004, simulated),
    ]
    if bench.capabilities.total is not None:
        power = true_power(point) * (1 + 0.01 * float(rng.standard_normal()))
        figures += [
            ("power_w", power, 0.015, bench.provenance),
            ("idle_power_w", 3.1, 0.015, bench.provenance),
            ("energy_per_image_j", power / throughput, 0.017, bench.provenance),
            ("energy_above_idle_per_image_j", (power - 3.1) / throughput, 0.03, bench.provenance),
            ("efficiency_img_per_s_per_w", throughput / power, 0.017, bench.provenance),
        ]
    return Run(
        id=run_id(sweep_id, point, repeat),
        sweep_id=sweep_id,
        point=point,
        repeat=repeat,
        started_at="2026-11-21T09:30:00+00:00",
        window_ns=WINDOW_NS,
        inference_count=round(3 * throughput / point.workload.batch_size),
        verdict=Verdict.VALID,
        findings=(),
        metrics=tuple(
            Metric(name=name, value=value, low=value * (1 - part), high=value * (1 + part), provenance=provenance)
            for name, value, part, provenance in figures
        ),
        total=bench.capabilities.total,
        budget=budget(bench, figures[4:]),
    )


def budget(bench: Bench, figures: list[tuple[str, float, float, Provenance]]) -> tuple[Contribution, ...]:
    """Return lines for every figure of power and energy: mostly the rails' gain, and what the baselines drifted."""
    if bench.capabilities.total is None:
        return ()
    rails = bench.capabilities.total.rails
    effects = [(rail, "gain", 0.5 / len(rails)) for rail in rails] + [(rails[0], "sampling", 0.2)]
    return tuple(
        Contribution(
            metric=name,
            origin=origin,
            effect=effect,
            kind=EffectKind.A if effect == "sampling" else EffectKind.B,
            standard_uncertainty=value * part * share,
        )
        for name, value, part, _ in figures
        for origin, effect, share in [*effects, *([("idle", "drift", 0.1)] if "idle" in name else [])]
    )


def failed(point: Point, sweep_id: str, repeat: int = 0, detail: str = "the worker was killed by signal 9") -> Run:
    """Return a run that gave nothing."""
    return Run(
        id=run_id(sweep_id, point, repeat),
        sweep_id=sweep_id,
        point=point,
        repeat=repeat,
        started_at="2026-11-21T09:31:00+00:00",
        window_ns=(0, 0),
        inference_count=0,
        verdict=Verdict.FAILED,
        findings=(Finding(rule="worker", verdict=Verdict.FAILED, detail=detail),),
        metrics=(),
        total=None,
    )


def run_id(sweep_id: str, point: Point, repeat: int) -> str:
    """Return the identifier of a run, always the same for the same run."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{sweep_id} {point.id} {repeat}"))


def traces(bench: Bench, of: Run, seed: int = 2, period_s: float = 0.01) -> list[Trace]:
    """Return half a second of idle, the window and half a second of idle on every rail of the device."""
    rng = np.random.default_rng(seed)
    start, end = of.window_ns
    time_ns = np.arange(start - 500_000_000, end + 500_000_000, int(period_s * 1e9), dtype=np.int64)
    busy = (time_ns >= start) & (time_ns < end)
    weights = [1 + 0.3 * index for index in range(len(bench.rails))]
    found = []
    for index, rail in enumerate(bench.rails):
        power = np.where(busy, true_power(of.point), 3.1) * weights[index] / sum(weights)
        power = np.abs(power * (1 + 0.03 * rng.standard_normal(len(time_ns))))
        counter = np.cumsum(power * period_s)
        value = power if rail.quantity is RailQuantity.POWER else counter
        found.append(Trace(rail=rail, time_ns=time_ns + 40_000 * index, value=value, read_cost_ns=21_000))
    return found


def true_throughput(point: Point) -> float:
    """Return the img/s this point has on the imagined board."""
    speed = MODEL_SPEED.get(point.workload.model, 9.0) * MODE_SPEED.get(point.mode, 0.8)
    return float(speed * point.threads**0.9 * (1 + 0.12 * np.log2(point.workload.batch_size)))


def true_power(point: Point) -> float:
    """Return the W this point draws on the imagined board: idle, and more than in proportion to the clock."""
    return float(3.1 + 5.4 * MODE_SPEED.get(point.mode, 0.8) ** 1.9 * point.threads**0.8)


def _mode(name: str, description: str, cores: int) -> PowerMode:
    setting = Setting(knob="nvpmodel", target="board", value=name)
    return PowerMode(
        name=name, settings=(setting,), origin=ModeOrigin.VENDOR, online_cores=cores, description=description
    )


def _device(name: str, *, board: str, simulated: bool) -> Device:
    return Device(
        name=name, board=board, architecture="aarch64", cpu_model="Carmel", core_count=16,
        memory_bytes=32 * 2**30, kernel="4.9.253-tegra", simulated=simulated,
    )  # fmt: skip
