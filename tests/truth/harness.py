"""A machine in virtual time whose true energy is known, seen through sensors as powerlab sees them.

    machine = draw_machine(seed)                    # what it draws, its sensors, and their errors
    recording = machine.record(seed)                # one run of it: traces, window, and the true energy
    recording.energy()                              # what powerlab says of it
    recording.held()                                # whether its interval holds the truth: in 95 of 100 settings

No file is read and nothing sleeps. Every error is drawn from the distribution that its rail states: gain, offset and
age from rectangles, a calibrated lag from a normal distribution. A machine keeps its sensors' errors from run to run,
as real ones do; ``record`` draws a new load and new moments of reading, so that two sets of runs of one machine, or of
two machines, are what a comparison sees (:func:`two_sets`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from powerlab.domain.budget import added_with
from powerlab.domain.power import Rail, TotalFormula, Trace
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point
from powerlab.measure.energy.total import TotalEnergy, energy_budget, energy_metrics, total_energy
from powerlab.measure.validity import Evidence
from tests.truth.loads import SHAPES, Floats, TrueLoad, draw_load
from tests.truth.sensors import ENERGY, POWER, Reads, TrueSensor

FOCUSES = ("everything", "gain", "offset", "quantisation", "sampling", "edge")
"""What is wrong with a machine's sensors: everything, or one thing more than all else."""
CLEAN = "clean"
"""Sensors as good as a calibrated meter's: half a per cent of gain error, a fine step, a thousandth of offset."""
STANDARD_S = 60.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Recording:
    """One run: what was recorded, and what is true.

    Attributes:
        traces: one a rail.
        window_ns: the timed part.
        load_ns: when the load began.
        truth_j: the true energy of all rails in the window.
        total: all rails.
        sample_period_s: the planned time between two samples.
        load: what was true.
        sensors: what the traces were read with, in the same order.
    """

    traces: tuple[Trace, ...]
    window_ns: tuple[int, int]
    load_ns: int
    truth_j: float
    total: TotalFormula
    sample_period_s: float
    load: TrueLoad
    sensors: tuple[TrueSensor, ...]

    def held(self) -> bool:
        """Return whether the stated 95 % interval holds the truth, but for what floats round."""
        energy = self.energy()
        return abs(energy.energy_j - self.truth_j) <= energy.half_width_j + 1e-9 * self.truth_j

    def relative_error(self) -> float:
        """Return how far the figure is off, as a share of the truth."""
        return (self.energy().energy_j - self.truth_j) / self.truth_j

    def energy(self) -> TotalEnergy:
        """Return what powerlab says of it."""
        return total_energy(self.total, self.traces, self.window_ns)

    def evidence(self, **found: object) -> Evidence:
        """Return what the validity rules look at, with what else was found."""
        return Evidence(  # type: ignore[arg-type]
            window_ns=self.window_ns,
            inference_count=100,
            total=self.total,
            traces=self.traces,
            sample_period_s=self.sample_period_s,
            load_ns=self.load_ns,
            **found,
        )


@dataclass(frozen=True, kw_only=True)
class Machine:
    """A machine with its sensors.

    Attributes:
        shape: what its load looks like, one of :data:`tests.truth.loads.SHAPES`.
        load_seed: decides how much power that load takes, and how long its inferences last.
        idle_w: what it draws without load.
        window_s: how long a run is timed.
        sample_period_s: the planned time between two samples.
        jitter: how much a sample's moment scatters, in sample periods.
        lost: the share of reads that fail.
        read_s: how long a read takes.
        sensors: one a rail.
    """

    shape: str
    load_seed: int
    idle_w: float
    window_s: float
    sample_period_s: float
    jitter: float
    lost: float
    read_s: float
    sensors: tuple[TrueSensor, ...]

    @property
    def margin_s(self) -> float:
        """How long powerlab records before and after a window, as its meter has it."""
        slowest_s = max(sensor.rail.update_period_s for sensor in self.sensors)
        return min(2.0, max(0.1, 3 * self.sample_period_s, 2 * slowest_s))

    def record(self, seed: int, factor: float = 1.0) -> Recording:
        """Return one run.

        Args:
            seed: of the load and of the moments of reading.
            factor: the machine draws so many times its power.
        """
        rng = np.random.default_rng(seed)
        load = draw_load(
            np.random.default_rng(self.load_seed), rng, self.shape, self.idle_w * factor, self.window_s, self.margin_s
        )
        until_s = load.window_s[1] + self.margin_s
        traces = tuple(
            replace(sensor, seed=int(rng.integers(2**32))).trace(load, reads)
            for sensor, reads in zip(self.sensors, self._reads(rng, until_s), strict=True)
        )
        start_ns, end_ns = (round(one * 1e9) for one in load.window_s)
        return Recording(
            traces=traces,
            window_ns=(start_ns, end_ns),
            load_ns=round(load.begins_s * 1e9),
            truth_j=sum(sensor.truth_j(load) for sensor in self.sensors),
            total=TotalFormula(rails=tuple(sensor.rail.key for sensor in self.sensors), scope="all rails"),
            sample_period_s=self.sample_period_s,
            load=load,
            sensors=self.sensors,
        )

    def _reads(self, rng: np.random.Generator, until_s: float) -> Sequence[Reads]:
        """Rails of a source are read one after the other, and each source by a thread of its own; a few reads fail."""
        planned = np.arange(0.0, until_s + self.sample_period_s, self.sample_period_s)
        stamps: dict[str, Floats] = {}
        found = []
        for number, sensor in enumerate(self.sensors):
            if sensor.rail.source not in stamps:
                late = np.abs(rng.normal(0.0, self.jitter * self.sample_period_s, planned.size))
                first_s = self.read_s / 2 + (self.sample_period_s * rng.uniform() if stamps else 0.0)
                stamps[sensor.rail.source] = planned + first_s + np.minimum(late, 0.4 * self.sample_period_s)
            time_s = stamps[sensor.rail.source] + number * self.read_s
            reads = Reads(time_s=time_s, read_s=self.read_s, off=rng.uniform(-1, 1, time_s.size))
            lost = rng.uniform(size=time_s.size) < self.lost
            lost[:2] = lost[-2:] = False
            found.append(reads.without(lost))
        return found


def draw_machine(seed: int, focus: str = "everything", *, window_s: float | None = None) -> Machine:
    """Draw a machine: its load's shape, its window, and one to four rails of one or two sources."""
    rng = np.random.default_rng((seed, (*FOCUSES, CLEAN).index(focus)))
    shape = str(rng.choice(SHAPES))
    sources = int(rng.choice([1, 1, 2]))
    idle_w = float(np.exp(rng.uniform(np.log(2.0), np.log(60.0))))
    length_s = window_s or float(rng.choice([5.0, 15.0, STANDARD_S]))
    period_s = float(rng.choice([0.01, 0.01, 0.02, 0.1]))
    if focus == "sampling":
        shape, period_s = str(rng.choice(["periodic", "bursts", "phase-change"])), float(rng.choice([0.02, 0.05, 0.1]))
    sensors = [
        sensor
        for number in range(sources)
        for sensor in _source(rng, f"source{number}", focus, idle_w / sources, period_s, length_s)
    ]
    return Machine(
        shape=shape,
        load_seed=seed,
        idle_w=idle_w,
        window_s=length_s,
        sample_period_s=period_s,
        jitter=float(rng.choice([0.002, 0.02, 0.1])),
        lost=float(rng.choice([0.0, 0.0, 0.01])),
        read_s=float(rng.choice([2e-6, 1e-4, 5e-4])),
        sensors=tuple(sensors),
    )


_GAINS = {"gain": (0.01, 0.05, 0.1), "everything": (0.0025, 0.015, 0.05), CLEAN: (0.001, 0.005)}
_OFFSETS = {"offset": (0.02,), "everything": (0.0, 0.002, 0.01), CLEAN: (0.0, 0.001)}
_STEPS = {"everything": (0.0, 0.01, 0.03), CLEAN: (0.0, 0.001)}
"""Gain errors by focus; offsets and steps in units of the idle power."""


def _source(  # noqa: PLR0917 - what a source is drawn from
    rng: np.random.Generator, name: str, focus: str, idle_w: float, period_s: float, window_s: float
) -> list[TrueSensor]:
    """Draw a source: its rails share their gain, their refreshing and their delay."""
    kind = str(rng.choice(["hold", "hold", "mean", "counter", "filter"]))
    update_s = float(rng.choice([0.0, 0.001, 0.02, 0.1]))
    if focus == "edge":
        kind = str(rng.choice(["hold", "counter", "counter"]))
        update_s = float(rng.choice([0.02, 0.1]))
    if focus == "sampling":
        kind, update_s = str(rng.choice(["hold", "hold", "hold", "filter"])), float(rng.choice([0.0, 0.0, 0.02]))
    if focus == "quantisation":
        kind = "hold"
    update_s = min(update_s, window_s / 25)
    lag_s, stated_s, error_s = _lag(rng, update_s)
    kind, refresh_s, delay_s = _made_of(rng, kind, update_s, lag_s)
    gain = float(rng.choice(_GAINS.get(focus, (0.0,))))
    offset_w = idle_w * float(rng.choice(_OFFSETS.get(focus, (0.0,))))
    step_w = idle_w * float(
        rng.uniform(0.05, 0.3) if focus == "quantisation" else rng.choice(_STEPS.get(focus, (0.0,)))
    )
    shares = rng.dirichlet(np.ones(int(rng.choice([1, 1, 2, 3])))) if kind != "filter" else np.ones(1)
    true_gain, phase = gain * rng.uniform(-1, 1), rng.uniform()
    counts = kind == "counter"
    rails = [
        Rail(
            source=name,
            name=f"rail{number}",
            quantity=ENERGY if counts else POWER,
            resolution=float(rng.choice([6.1e-5, 1e-3])) if counts else step_w,
            relative_error=gain,
            update_period_s=update_s,
            provenance=Provenance.SIMULATED,
            offset=0.0 if counts else float(offset_w * share),
            lag_s=stated_s,
            lag_error_s=error_s,
        )
        for number, share in enumerate(shares)
    ]
    return [
        TrueSensor(
            rail=rail,
            share=float(share),
            kind=kind,
            refresh_s=refresh_s,
            phase=phase,
            delay_s=delay_s,
            gain=true_gain,
            offset_w=rail.offset * rng.uniform(-1, 1),
            noise_w=float(share) * idle_w * float(rng.choice([0.001, 0.003, 0.01])) if focus != "quantisation" else 0.0,
            seed=0,
        )
        for rail, share in zip(rails, shares, strict=True)
    ]


def _lag(rng: np.random.Generator, update_s: float) -> tuple[float, float, float]:
    """Return the true lag, the stated one and its stated error; of half of the sensors it was calibrated."""
    lag_s = 1.5 * update_s * rng.uniform()
    if not update_s or rng.uniform() < 0.5:
        return lag_s, 0.0, 0.0
    error_s = update_s * float(rng.uniform(0.02, 0.2))
    return lag_s, max(0.0, float(rng.normal(lag_s, error_s))), error_s


def _made_of(rng: np.random.Generator, kind: str, update_s: float, lag_s: float) -> tuple[str, float, float]:
    """Return kind, refresh period and delay of a sensor with that lag: one may be renewed oftener than it states."""
    renewed_s = update_s * float(rng.uniform(0.95, 1.0))  # no sensor's clock is the sampler's
    if kind == "filter":
        return kind, min(renewed_s, lag_s), max(0.0, lag_s - min(renewed_s, lag_s) / 2)
    if kind == "mean" and lag_s >= renewed_s:
        return kind, renewed_s, lag_s - renewed_s
    refresh_s = min(renewed_s, 2 * lag_s)
    return "hold" if kind == "mean" else kind, refresh_s, lag_s - refresh_s / 2


def dominating(energy: TotalEnergy) -> str:
    """Return what makes the larger part of an energy's uncertainty, one of :data:`CLASSES`."""
    sums: dict[tuple[str, str], float] = {}
    for number, part in enumerate(energy.parts):
        group = added_with(part) or (str(number), part.effect)
        sums[group] = sums.get(group, 0.0) + part.standard_uncertainty
    variance: dict[str, float] = {}
    for (_, effect), uncertainty_j in sums.items():
        name = _CLASS_OF[effect]
        variance[name] = variance.get(name, 0.0) + uncertainty_j**2
    return max(variance, key=variance.__getitem__)


CLASSES = ("gain", "offset", "quantisation", "sampling", "edge")
_CLASS_OF = {
    "gain": "gain",
    "offset": "offset",
    "quantisation": "quantisation",
    "rounding": "quantisation",
    "sampling": "sampling",
    "gap": "sampling",
    "edge": "edge",
    "lag": "edge",
}


def two_sets(seed: int, repeats: int = 3, scatter: float = 0.01) -> tuple[list[Recording], list[Recording]]:
    """Return runs of two points that are the same: one machine and load, whose power scatters from run to run alike."""
    machine = draw_machine(seed, window_s=5.0)
    rng = np.random.default_rng((seed, 1))
    runs = [
        machine.record(int(rng.integers(2**32)), factor=float(rng.lognormal(0.0, scatter))) for _ in range(2 * repeats)
    ]
    return runs[:repeats], runs[repeats:]


def run_of(recording: Recording, point: Point, repeat: int) -> Run:
    """Return a run as it would be stored, with figures of power and energy alone; an image is inferred every 10 ms."""
    energy, images = recording.energy(), 1 + round(100 * recording.energy().duration_s)
    return Run(
        id=f"{point.threads}-{repeat}",
        sweep_id="truth",
        point=point,
        repeat=repeat,
        started_at="2026-11-21T09:30:00+00:00",
        window_ns=recording.window_ns,
        inference_count=images,
        verdict=Verdict.VALID,
        findings=(),
        metrics=energy_metrics(energy, None, images),
        total=recording.total,
        budget=energy_budget(energy, None, images),
    )
