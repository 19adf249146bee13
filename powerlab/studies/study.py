"""A published experiment in words and numbers, read from its TOML file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Processor


class Threads(StrEnum):
    """Thread counts that depend on the device."""

    ALL = "all"
    DOUBLING = "doubling"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanTemplate:
    """A sweep as far as it does not depend on the device.

    Attributes:
        models: names of networks; those that nobody has here are left out and named.
        batch_sizes: images per inference.
        quick_batch_sizes: what ``--quick`` runs instead; empty for the same.
        threads: ``all`` cores, ``doubling`` counts up to all, or counts.
        modes: power modes, or ``all``.
        engines: engines, or ``all`` that are installed.
        precisions: number formats; those that an engine does not offer are left out and named.
        same_cores: run every point twice: with its cores left to powerlab, and with the very same cores named.
        repeats: runs of each point; 0 takes those of the level.
        processor: what computes; where there is no graphics processor, that part is left out and said.
        optimizers: where models are trained, how; none where they infer.
        slices: parts that a batch is cut into.
        queues: of a graphics processor, over which slices are spread; those it lacks are left out and named.
    """

    models: tuple[str, ...]
    batch_sizes: tuple[int, ...] = (1,)
    quick_batch_sizes: tuple[int, ...] = ()
    threads: Threads | tuple[int, ...] = Threads.ALL
    modes: tuple[str, ...] = ("current",)
    engines: tuple[str, ...] = ("builtin",)
    precisions: tuple[str, ...] = ("fp32",)
    same_cores: bool = False
    repeats: int = 0
    processor: Processor = Processor.CPU
    optimizers: tuple[str, ...] = ()
    slices: tuple[int, ...] = (1,)
    queues: tuple[int, ...] = (1,)

    @property
    def trains(self) -> bool:
        """Whether models are trained."""
        return bool(self.optimizers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A row of somebody's table.

    Attributes:
        system: the device, and which part of it computed.
        software: what ran the network.
        conditions: how it was run, as far as it differs from a single stream of images on all cores.
        covers: what the watts cover; empty where there are none.
        figures: the figures, by metric.
    """

    system: str
    software: str = ""
    conditions: str = ""
    covers: str = ""
    figures: Mapping[str, float]

    def metric(self, name: str) -> Metric | None:
        """Return a figure; nobody published its interval."""
        value = self.figures.get(name)
        return None if value is None else Metric(name=name, value=value, provenance=Provenance.PUBLISHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Published rows, and which points of ours stand beside them.

    Attributes:
        title: what all of them ran.
        models: the models whose points belong here.
        least_batch: the smallest batch size of such a point.
        most_batch: the largest one; 0 for any.
        trains: whether such a point trains its model.
        published: the rows; none where a study has no figures of its own.
    """

    title: str
    models: tuple[str, ...]
    least_batch: int = 1
    most_batch: int = 0
    trains: bool = False
    published: tuple[Published, ...] = ()

    def holds(self, point: Point, models: Mapping[str, str] | None = None) -> bool:
        """Whether a point belongs to the case; ``models`` says which files stand for which networks."""
        workload = point.workload
        if workload.batch_size < self.least_batch or 0 < self.most_batch < workload.batch_size:
            return False
        if workload.trains != self.trains:
            return False
        names = [models.get(name, name) for name in self.models] if models else self.models
        return workload.model in names


@dataclass(frozen=True, slots=True, kw_only=True)
class NotRepeated:
    """Something of the experiment that is not repeated, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A published experiment.

    Attributes:
        name: what ``powerlab study`` calls it.
        title: one line.
        asks: what the experiment asked, in a few sentences.
        source: the citation of the published figures.
        metrics: the columns of its table.
        plans: the sweeps that repeat it.
        cases: its table.
        not_repeated: what powerlab does not repeat anywhere.
        compared: a dimension along which our own points are compared; empty for none.
        boards: the boards that the published experiment ran on; none where it is about no board in particular.
    """

    name: str
    title: str
    asks: str
    source: str
    metrics: tuple[str, ...]
    plans: tuple[PlanTemplate, ...]
    cases: tuple[Case, ...]
    not_repeated: tuple[NotRepeated, ...] = ()
    compared: str = ""
    boards: tuple[str, ...] = ()

    @property
    def publishes(self) -> bool:
        """Whether published figures stand in its table."""
        return any(case.published for case in self.cases)

    def is_about(self, board: str) -> bool:
        """Whether figures of a board stand beside the published ones, and not apart from them."""
        return not self.boards or board in self.boards

    def holds(self, point: Point) -> bool:
        """Whether a point stands in one of the cases."""
        return any(case.holds(point) for case in self.cases)

    def asked_by(self, points: Sequence[Point]) -> bool:
        """Whether a sweep of these points repeats the study: some belong to it, and where it runs all twice, they do.

        Any sweep of the same networks will do; nobody needs to have called it a study.
        """
        twice = any(plan.same_cores for plan in self.plans)
        return any(map(self.holds, points)) and (not twice or len({point.cores for point in points}) > 1)

    def __post_init__(self) -> None:
        rows = [row for case in self.cases for row in case.published]
        for name in (*self.metrics, *(name for row in rows for name in row.figures)):
            if name not in METRICS:
                raise ValueError(f"the study {self.name} has a figure {name!r}, which is not a metric")
