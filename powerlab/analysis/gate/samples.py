"""What each sweep says of a point's metric: the mean of its repeats, on a logarithm."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.analysis.summary import sound_runs
from powerlab.domain.quantity import Provenance, common_provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point

Place = tuple[str, ...]
"""What makes a point the same in two sweeps: its dimensions, and of its model the name without the digest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sweep's figure of one metric at one point.

    Attributes:
        sweep_id: the sweep.
        logarithm: the mean of the logarithms of its valid repeats' figures.
        variance: of those logarithms between the repeats; None where there is only one.
        count: valid repeats.
        provenance: what the figure is.
    """

    sweep_id: str
    logarithm: float
    variance: float | None
    count: int
    provenance: Provenance

    @property
    def value(self) -> float:
        """The geometric mean of the repeats, in the metric's unit."""
        return math.exp(self.logarithm)


def model_name(word: str) -> str:
    """Return a model's name without the digest that says which version of it is meant."""
    return word.partition("@sha256:")[0]


def place_of(point: Point) -> Place:
    """Return what the same point has in every sweep, whichever version of its model they measured."""
    return (model_name(point.workload.model), *(one.read(point) for one in DIMENSIONS if one.title != "model"))


def by_place(runs: Iterable[Run]) -> Mapping[Place, Sequence[Run]]:
    """Return a sweep's runs by their point, in the order in which the points first appear.

    Where a sweep compares versions of one model, each is a place of its own, with the digest.
    """
    points: dict[Point, list[Run]] = {}
    for run in runs:
        points.setdefault(run.point, []).append(run)
    alike = Counter(map(place_of, points))
    return {
        place if alike[place := place_of(point)] == 1 else (point.workload.model, *place[1:]): repeats
        for point, repeats in points.items()
    }


def sample(runs: Sequence[Run], name: str) -> Sample | None:
    """Return what the runs of one point in one sweep say of a metric.

    Returns:
        The sample; None where no valid run has the metric, or a figure is not above 0 and so has no ratio.

    Raises:
        PowerlabError: the figures are of several provenances.
    """
    figures = [metric for run in sound_runs(runs, name) if (metric := run.metric(name)) is not None]
    if not figures or min(metric.value for metric in figures) <= 0:
        return None
    logarithms = [math.log(metric.value) for metric in figures]
    mean, others = fmean(logarithms), len(logarithms) - 1
    return Sample(
        sweep_id=runs[0].sweep_id,
        logarithm=mean,
        variance=math.fsum((one - mean) ** 2 for one in logarithms) / others if others else None,
        count=len(logarithms),
        provenance=common_provenance(metric.provenance for metric in figures),
    )
