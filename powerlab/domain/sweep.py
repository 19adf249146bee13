"""A sweep: the plan a user writes, and the points it expands to."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, fields, replace
from itertools import product

from powerlab.domain.accuracy import DEFAULT_LEAST_SQNR_DB
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE_NAME
from powerlab.domain.rigour import Rigour
from powerlab.domain.temperature import TemperatureLimits
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, Workload, WorkloadKind

SEARCH_GOALS = ("latency", "throughput", "efficiency")
"""What a search may look for the best of: the goals of every answer."""

USUAL_SEARCH_PERCENT = 1.0
"""What a search counts as better where nobody says: the usual ``search_percent`` of its plan."""
SEARCHED = ("latency_p50_ms", "throughput_img_per_s", "power_w")
"""The figures that it learns from."""
MOST_REPEATS_UNTIL = 30
"""Repeats of a point at most where they go on until an interval is narrow; half its width needs four times more."""


_FIRST_FIELDS = 5
"""Fields of a workload that every id of a point holds; those behind them came later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place in a sweep: workload x threads x power mode.

    Attributes:
        workload: the model and how it is fed.
        threads: threads that compute, over all slices; 1 on a graphics processor, where one thread hands it its work.
        mode: the power mode's name.
        spin_us: how long a thread that has nothing to do spins before it sleeps; None leaves it to the engine.
        cores: the cores the threads may use, as the kernel writes lists (``0-3,6``); empty takes the first ones.
    """

    workload: Workload
    threads: int
    mode: str
    spin_us: int | None = None
    cores: str = ""

    @property
    def id(self) -> str:
        """16 hex digits that depend on the point's content alone, so that the same point has the same id anywhere.

        What has its usual value is left out, so that a new dimension leaves the ids of stored points as they are.
        """
        w = self.workload
        parts = [w.engine, w.model, w.precision, w.scenario, w.batch_size, self.threads, self.mode]
        later = [(one.name, getattr(w, one.name), one.default) for one in fields(w)[_FIRST_FIELDS:]]
        later += [("spin_us", self.spin_us, None), ("cores", self.cores, "")]
        parts += [f"{name}={value}" for name, value, usual in later if value != usual]
        return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPlan:
    """What a user asks for: every combination is a point, and every point is run ``repeats`` times.

    Attributes:
        workload: what is done with the models.
        optimizers: how steps of training move weights; none where nothing is trained.
        models: zoo names, paths of ONNX files, or models that lie on the server (:mod:`powerlab.domain.model_name`).
        threads: thread counts of points on the cores; points on a graphics processor have one thread.
        batch_sizes: images per inference.
        modes: names of power modes; ``current`` changes nothing.
        engines: the backends that run the models.
        processors: what computes them: cores, graphics processor.
        precisions: number formats, as far as the engines offer them.
        scenarios: how queries follow each other.
        slices: parts a batch is cut into.
        recompute: whether steps of training compute activations again.
        queues: of a graphics processor, over which slices are spread; points on the cores have one, as points with
            fewer slices have.
        spin_us: how long idle threads spin; None leaves it to the engine.
        cores: lists of cores; empty takes the first ones.
        preparation: whether input preparation is inside the timed part.
        latency_bound_ms: bound of the server scenario's 99th percentile; 0 where there is no such scenario.
        rigour: the level that the times and counts below were taken from, unless they were given.
        repeats: runs of each point, at least 3, in an order shuffled by ``seed``.
        seed: makes the order of the runs repeatable.
        duration_s: length of the timed part of a run, at least; a run also holds at least ``min_inferences``.
        min_inferences: see ``duration_s``.
        until_percent: go on with a point's repeats until the 95 % interval of its img/s/W reaches no further than this
            to either side; 0 makes ``repeats`` runs and no more.
        search_percent: measure only what may beat the best so far by more than this, in an order that is chosen as
            results come, instead of every point; 0 measures every point.
        search_goals: what such a search looks for the best of, of :data:`SEARCH_GOALS`; empty is all of them.
        proposed_modes: those of ``modes`` that powerlab proposed and nobody named.
        nodes: devices that train together, each with its part of every batch.
        warm_up_s: untimed inferences before the timed part, at least.
        longest_warm_up_s: when to stop waiting for a steady state.
        idle_s: length of the idle baseline before and after each run.
        cool_down_s: how long to wait, at most, until a run starts as warm as those before it.
        sample_period_s: time between two power samples.
        least_sqnr_db: signal to quantisation noise in dB that a low precision's outputs have at least, beside fp32's;
            runs of one with less are flagged.
        max_temperature_c: a run is ended when a thermal zone of what computes is above it, in °C; None for no limit.
        start_below_temperature_c: a run begins when every such zone is below it, in °C; None takes 10 °C below
            ``max_temperature_c``, where that is given.
        longest_cooling_s: how long a run waits for that, at most, before it fails.
    """

    models: tuple[str, ...]
    threads: tuple[int, ...]
    workload: WorkloadKind = WorkloadKind.INFERENCE
    optimizers: tuple[str, ...] = ()
    batch_sizes: tuple[int, ...] = (1,)
    modes: tuple[str, ...] = (CURRENT_MODE_NAME,)
    engines: tuple[str, ...] = ("builtin",)
    processors: tuple[Processor, ...] = (Processor.CPU,)
    precisions: tuple[str, ...] = ("fp32",)
    scenarios: tuple[Scenario, ...] = (Scenario.SINGLE_STREAM,)
    slices: tuple[int, ...] = (1,)
    recompute: tuple[Recompute, ...] = (Recompute.NO,)
    queues: tuple[int, ...] = (1,)
    spin_us: tuple[int | None, ...] = (None,)
    cores: tuple[str, ...] = ("",)
    preparation: Preparation = Preparation.OUTSIDE
    latency_bound_ms: float = 0.0
    rigour: Rigour = Rigour.QUICK
    repeats: int = 3
    seed: int = 0
    duration_s: float = 5.0
    min_inferences: int = 10
    until_percent: float = 0.0
    warm_up_s: float = 1.0
    longest_warm_up_s: float = 10.0
    idle_s: float = 2.0
    cool_down_s: float = 0.0
    sample_period_s: float = 0.01
    least_sqnr_db: float = DEFAULT_LEAST_SQNR_DB
    max_temperature_c: float | None = None
    start_below_temperature_c: float | None = None
    longest_cooling_s: float = 900.0
    search_percent: float = 0.0
    search_goals: tuple[str, ...] = ()
    proposed_modes: tuple[str, ...] = ()
    nodes: int = 1

    @property
    def temperature_limits(self) -> TemperatureLimits:
        """How hot the device may get."""
        return TemperatureLimits(max_c=self.max_temperature_c, start_below_c=self.start_below_temperature_c)

    def held_to(self, limits: TemperatureLimits) -> SweepPlan:
        """Return the plan with the stricter of its own limits and those of whoever owns the device."""
        stricter = self.temperature_limits.stricter(limits)
        return replace(self, max_temperature_c=stricter.max_c, start_below_temperature_c=stricter.start_below_c)

    def with_more_repeats(self, made: int, add: int) -> SweepPlan:
        """Return the plan with so many repeats of every point beyond those that were made.

        Raises:
            PowerlabError: they are fewer than one.
        """
        if add < 1:
            raise PowerlabError(f"{add} repeats add nothing; give at least 1.")
        return replace(self, repeats=max(self.repeats, made + add))

    @property
    def goals_to_search(self) -> tuple[str, ...]:
        """What a search looks for the best of."""
        return self.search_goals or SEARCH_GOALS

    @property
    def most_repeats(self) -> int:
        """Runs of one point at most."""
        return self.repeats if self.until_percent == 0 else max(self.repeats, MOST_REPEATS_UNTIL)

    @property
    def point_count(self) -> int:
        """Number of points, counted without making them: a plan that is refused may have far too many."""
        lists = (self.models, self.engines, self.precisions, self.scenarios, self.modes, self.batch_sizes)
        each = sum(
            len(self._threads_on(processor)) * len(self._queues_of(processor, slices))
            for processor, slices in product(self.processors, self.slices)
        )
        return each * math.prod(map(len, (*lists, self.optimizers or ("",), self.recompute, self.spin_us, self.cores)))

    def _threads_on(self, processor: Processor) -> tuple[int, ...]:
        return self.threads if processor is Processor.CPU else (1,)

    def _queues_of(self, processor: Processor, slices: int) -> tuple[int, ...]:
        return (1,) if processor is Processor.CPU else tuple(one for one in self.queues if one <= slices)

    def points(self) -> tuple[Point, ...]:
        """Return every combination once, in reading order."""
        return tuple(
            Point(
                workload=Workload(
                    model=model,
                    batch_size=batch_size,
                    precision=precision,
                    scenario=scenario,
                    engine=engine,
                    slices=slices,
                    queues=queues,
                    preparation=self.preparation,
                    latency_bound_ms=self.latency_bound_ms if scenario is Scenario.SERVER else 0.0,
                    processor=processor,
                    kind=self.workload,
                    optimizer=optimizer,
                    recompute=recompute,
                    nodes=self.nodes,
                ),
                threads=threads,
                mode=mode,
                spin_us=spin_us,
                cores=cores,
            )
            for model, optimizer, engine, processor, precision, scenario, mode, batch_size, slices in product(
                self.models,
                self.optimizers or ("",),
                self.engines,
                self.processors,
                self.precisions,
                self.scenarios,
                self.modes,
                self.batch_sizes,
                self.slices,
            )
            for queues, recompute, threads, spin_us, cores in product(
                self._queues_of(processor, slices),
                self.recompute,
                self._threads_on(processor),
                self.spin_us,
                self.cores,
            )
        )
