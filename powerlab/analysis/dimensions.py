"""The dimensions of a sweep, as tables and sentences name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from powerlab.domain.model_name import short
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, WorkloadKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One dimension.

    Attributes:
        title: a column's title.
        read: a point's value in words.
        usual: the value that goes without saying; None where every table says it.
        words: a phrase for sentences, with ``{}`` for the value.
        numeric: whether its values are numbers, so that distances between them mean something.
        otherwise: what sentences say in place of a missing value; empty for nothing at all.
        told: whether sentences say it of a point.
    """

    title: str
    read: Callable[[Point], str]
    usual: str | None = None
    words: str = "{}"
    numeric: bool = False
    otherwise: str = "default"
    told: Callable[[Point], bool] = lambda _point: True

    def value_words(self, point: Point) -> str:
        """Return a point's value in the words of sentences, ``2 threads``; nothing where they do not say it."""
        if not self.told(point):
            return ""
        value = self.read(point) or self.otherwise
        said = self.words.format(value) if value else ""
        return said.removesuffix("s") if said in {"1 threads", "1 slices", "1 queues", "1 devices"} else said


DIMENSIONS: tuple[Dimension, ...] = (
    Dimension(title="model", read=lambda point: short(point.workload.model)),
    Dimension(title="workload", read=lambda point: point.workload.kind.value, usual=WorkloadKind.INFERENCE.value),
    Dimension(
        title="optimizer",
        read=lambda point: point.workload.optimizer,
        usual="",
        words="optimizer {}",
        otherwise="",
    ),
    Dimension(title="engine", read=lambda point: point.workload.engine, usual="builtin"),
    Dimension(title="processor", read=lambda point: point.workload.processor.value, usual=Processor.CPU.value),
    Dimension(title="precision", read=lambda point: point.workload.precision, usual="fp32"),
    Dimension(title="scenario", read=lambda point: point.workload.scenario.value, usual=Scenario.SINGLE_STREAM.value),
    Dimension(
        title="bound ms",
        read=lambda point: f"{point.workload.latency_bound_ms:g}",
        usual="0",
        words="within {} ms",
        numeric=True,
    ),
    Dimension(
        title="preparation",
        read=lambda point: point.workload.preparation.value,
        usual=Preparation.OUTSIDE.value,
        words="preparation {}",
    ),
    Dimension(title="batch", read=lambda point: str(point.workload.batch_size), words="batch {}", numeric=True),
    Dimension(
        title="slices", read=lambda point: str(point.workload.slices), usual="1", words="{} slices", numeric=True
    ),
    Dimension(
        title="recompute",
        read=lambda point: point.workload.recompute.value,
        usual=Recompute.NO.value,
        words="recompute {}",
    ),
    Dimension(
        title="queues", read=lambda point: str(point.workload.queues), usual="1", words="{} queues", numeric=True
    ),
    Dimension(
        title="devices", read=lambda point: str(point.workload.nodes), usual="1", words="{} devices", numeric=True
    ),
    Dimension(
        title="threads",
        read=lambda point: str(point.threads),
        words="{} threads",
        numeric=True,
        told=lambda point: point.workload.processor is not Processor.GPU,  # which has no threads to choose
    ),
    Dimension(
        title="spin us",
        read=lambda point: "" if point.spin_us is None else str(point.spin_us),
        usual="",
        words="spin {} us",
        numeric=True,
    ),
    Dimension(title="cores", read=lambda point: point.cores, usual="", words="cores {}"),
    Dimension(title="mode", read=lambda point: point.mode, words="mode {}"),
)
"""Every dimension, in reading order."""


def shown(points: Iterable[Point]) -> tuple[Dimension, ...]:
    """Return the dimensions that a table of these points must show: the first ones, and those with unusual values."""
    found = list(points)
    return tuple(
        dimension
        for dimension in DIMENSIONS
        if dimension.usual is None or any(dimension.read(point) != dimension.usual for point in found)
    )


def in_words(point: Point) -> str:
    """Return a point in words: ``resnet50, batch 1, 2 threads, mode current``."""
    return ", ".join(filter(None, (dimension.value_words(point) for dimension in shown([point]))))


def varied(points: Iterable[Point]) -> tuple[Dimension, ...]:
    """Return the dimensions in which these points differ, in reading order."""
    found = list(points)
    return tuple(one for one in DIMENSIONS if len({one.read(point) for point in found}) > 1)


def values_of(dimension: Dimension, points: Iterable[Point]) -> list[str]:
    """Return the values that points have in a dimension: numbers by size, words in the order of the points."""
    found = list(dict.fromkeys(dimension.read(point) for point in points))
    return sorted(found, key=lambda value: float(value or 0)) if dimension.numeric else found


def varying(points: Iterable[Point]) -> Callable[[Point], str]:
    """Return what says a point in the words in which these points differ; all of its words where none differ."""
    dimensions = varied(points)

    def words(point: Point) -> str:
        return ", ".join(filter(None, (one.value_words(point) for one in dimensions))) or point.workload.model

    return words


def pair_words(points: Iterable[Point]) -> Callable[[Point, Point], str]:
    """Return what says two of these points as one: ``2 threads, mode MAXN against mode MODE_15W``."""
    dimensions = varied(points)

    def words(one: Point, other: Point) -> str:
        pairs = (dict.fromkeys((each.value_words(one), each.value_words(other))) for each in dimensions)
        said = (" against ".join(filter(None, pair)) for pair in pairs)
        return ", ".join(filter(None, said)) or one.workload.model

    return words
