"""The points of a plan as a model sees them: numbers on a scale of octaves, and labels.

Everything that is a ratio in physics (threads, images, clocks, limits) is taken as its binary logarithm, so that a
power law is a straight line and a distance of 1 is a factor of two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.sweep import Point
from powerlab.domain.workload import Processor, Workload
from powerlab.search.traits import Traits, traits_of

CAPACITY, THREADS, BATCH, SLICES, QUEUES, SPIN = "capacity", "threads", "batch", "slices", "queues", "spin"
_BEYOND = 1.3
"""A mode that does not state a cap is taken to lie this far above the highest one that is stated: the usual caps are
25, 50 and 75 % of the range."""
_SPIN_FLOOR_US = 10.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Space:
    """The points of a plan.

    Attributes:
        points: in the plan's order.
        names: of the numbers, one a column.
        numbers: points x names, in octaves, each column's mean taken off.
        labels: points x kinds of labels, as small integers.
    """

    points: tuple[Point, ...]
    names: tuple[str, ...]
    numbers: NDArray[np.float64]
    labels: NDArray[np.int64]

    @property
    def on_gpu(self) -> bool:
        """Whether a graphics processor computes some of the points."""
        return any(point.workload.processor is Processor.GPU for point in self.points)

    def index(self) -> dict[str, int]:
        """Return where each point is, by its id."""
        return {point.id: place for place, point in enumerate(self.points)}


def space_of(points: Sequence[Point], vendor: Mapping[str, Mapping[str, float]], core_count: int = 0) -> Space:
    """Return the space of some points.

    Args:
        points: what may be measured.
        vendor: caps of the vendor's modes by name, see :func:`powerlab.search.traits.traits_of`.
        core_count: cores of a mode that does not say how many it has; 0 where nobody knows.
    """
    traits = {name: traits_of(name, vendor) for name in dict.fromkeys(point.mode for point in points)}
    keys = sorted({key for one in traits.values() for key in one.numbers})
    uncapped = {key: _BEYOND * max(one.numbers.get(key, 0.0) for one in traits.values()) for key in keys}
    if "cores" in uncapped and core_count:
        uncapped["cores"] = float(core_count)
    rows = [_row(point, traits[point.mode], uncapped) for point in points]
    names = (CAPACITY, THREADS, BATCH, SLICES, QUEUES, SPIN, *keys)
    numbers = np.array(rows, dtype=np.float64).reshape(len(points), len(names))
    varies = np.ptp(numbers, axis=0) > 0 if len(points) else np.zeros(len(names), dtype=bool)
    kept = numbers[:, varies]
    return Space(
        points=tuple(points),
        names=tuple(name for name, one in zip(names, varies, strict=True) if one),
        numbers=kept - kept.mean(axis=0),
        labels=_labels(points, traits),
    )


def _row(point: Point, traits: Traits, uncapped: Mapping[str, float]) -> list[float]:
    load = point.workload
    limits = [traits.numbers[key] for key in ("cores", "cpu-quota") if key in traits.numbers]
    spin_us = _SPIN_FLOOR_US if point.spin_us is None else point.spin_us + _SPIN_FLOOR_US
    own = (min([point.threads, *limits]), point.threads, load.batch_size, load.slices, load.queues, spin_us)
    return [log2(value) for value in (*own, *(traits.numbers.get(key, most) for key, most in uncapped.items()))]


def _made_by(load: Workload) -> tuple[str, ...]:
    return load.engine, load.processor, load.precision, load.optimizer, load.recompute


def _labels(points: Sequence[Point], traits: Mapping[str, Traits]) -> NDArray[np.int64]:
    columns = [
        [
            point.workload.model,
            " ".join(_made_by(point.workload)),
            str(point.workload.scenario),
            point.cores,
            traits[point.mode].label,
            str(traits[point.mode].of_vendor),
            "default" if point.spin_us is None else "",
        ]
        for point in points
    ]
    found = [np.unique(column, return_inverse=True)[1] for column in zip(*columns, strict=True)]
    varying = [column for column in found if np.ptp(column) > 0]
    return np.stack(varying, axis=1) if varying else np.zeros((len(points), 0), dtype=np.int64)
