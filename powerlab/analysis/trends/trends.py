"""Series of a point's metric over sweeps, with their changes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import fmean, variance

from powerlab.analysis.gate.loss import to_part, upper_quantile
from powerlab.analysis.gate.samples import Place, Sample, by_place, sample
from powerlab.analysis.trends.change_points import LEVEL, change_points, fewest_values
from powerlab.analysis.trends.versions import Difference, differences, versions
from powerlab.domain.quantity import METRICS, Provenance
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point

_TAIL = 0.025


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendValue:
    """What one sweep says.

    Attributes:
        sweep_id: the sweep.
        started_at: when its first run of the point began: UTC, ISO 8601.
        value: geometric mean of the valid repeats, in the metric's unit.
        repeats: how many those are.
        low: lower end of the 95 % interval of the repeats' scatter, by Student's t; None with a single one.
        high: upper end of the interval; None together with ``low``.
        versions: what it was measured with.
    """

    sweep_id: str
    started_at: str
    value: float
    repeats: int
    low: float | None = None
    high: float | None = None
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the mean between two sweeps that follow each other.

    Attributes:
        last_before: the last sweep before it.
        first_after: the first sweep after it.
        ratio: the mean after over the mean before, up to the changes beside it.
        low: lower end of the ratio's 95 % interval. The place was chosen for its depth, so it is a little narrow.
        high: upper end of the interval.
        loss: the part by which it became worse; negative where it became better.
        level: the error level at which it was found.
        differences: what was changed between the two sweeps.
    """

    last_before: str
    first_after: str
    ratio: float
    low: float
    high: float
    loss: float
    level: float
    differences: tuple[Difference, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A metric of a point on a device, over its sweeps.

    Attributes:
        device: the device's name.
        point: as the newest sweep ran it.
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        provenance: what all figures are.
        values: one for each sweep, the oldest first.
        changes: the oldest first.
        fewest_values: sweeps that it takes to find any change; with fewer, none can be found.
    """

    device: str
    point: Point
    metric: str
    provenance: Provenance
    values: tuple[TrendValue, ...]
    changes: tuple[Change, ...] = ()
    fewest_values: int = 0


@dataclass(slots=True)
class _Series:
    point: Point
    samples: list[tuple[Sample, TrendValue]] = field(default_factory=list)


def trends(sweeps: Iterable[tuple[str, Sequence[Run]]], names: Sequence[str]) -> tuple[Trend, ...]:
    """Return the series of every device, point and metric, and their changes.

    That one of them shows a change where there is none has a probability of at most :data:`LEVEL`, over all of them.

    Args:
        sweeps: the device's name and the runs of each sweep.
        names: the metrics.

    Raises:
        PowerlabError: a point's repeats in one sweep are of several provenances.
    """
    found: dict[tuple[str, Place, str, Provenance], _Series] = {}
    for device, runs in sorted(sweeps, key=lambda one: min((run.started_at for run in one[1]), default="")):
        for place, repeats in by_place(runs).items():
            conditions = versions(repeats)
            for name in names:
                made = sample(repeats, name)
                if made is None:
                    continue
                series = found.setdefault((device, place, name, made.provenance), _Series(repeats[0].point))
                series.point = repeats[0].point
                series.samples.append((made, _value(made, repeats, conditions)))
    # A series too short for a change at any level cannot raise a false alarm, and so takes no part of the probability.
    long_enough = sum(len(series.samples) >= fewest_values(LEVEL) for series in found.values())
    level = LEVEL / max(1, long_enough)
    return tuple(
        _trend(device, name, provenance, series, level) for (device, _, name, provenance), series in found.items()
    )


def _value(made: Sample, repeats: Sequence[Run], conditions: Mapping[str, str]) -> TrendValue:
    low = high = None
    if made.variance is not None:
        reach = upper_quantile(_TAIL, made.count - 1) * math.sqrt(made.variance / made.count)
        low, high = math.exp(made.logarithm - reach), math.exp(made.logarithm + reach)
    return TrendValue(
        sweep_id=made.sweep_id,
        started_at=min(run.started_at for run in repeats),
        value=made.value,
        repeats=made.count,
        low=low,
        high=high,
        versions=conditions,
    )


def _trend(device: str, name: str, provenance: Provenance, series: _Series, level: float) -> Trend:
    values = tuple(value for _, value in series.samples)
    logarithms = [one.logarithm for one, _ in series.samples]
    cuts = change_points(logarithms, level)
    ends = [0, *(cut.index for cut in cuts), len(values)]
    parts = [logarithms[start:end] for start, end in pairwise(ends)]
    changes = []
    for cut, before, after in zip(cuts, parts, parts[1:], strict=False):
        last, first = values[cut.index - 1], values[cut.index]
        change = replace(
            _change(name, before, after),
            last_before=last.sweep_id,
            first_after=first.sweep_id,
            level=cut.level,
            differences=differences(last.versions, first.versions),
        )
        changes.append(change)
    return Trend(
        device=device,
        point=series.point,
        metric=name,
        provenance=provenance,
        values=values,
        changes=tuple(changes),
        fewest_values=fewest_values(level),
    )


def _change(name: str, before: Sequence[float], after: Sequence[float]) -> Change:
    """Return a change's size with its interval (Welch, Biometrika 34, 1947; degrees of freedom rounded down)."""
    size = fmean(after) - fmean(before)
    parts = [variance(side) / len(side) for side in (before, after)]
    reach = 0.0
    if sum(parts) > 0:
        shares = [part / sum(parts) for part in parts]
        degrees = 1 / sum(share**2 / (len(side) - 1) for share, side in zip(shares, (before, after), strict=True))
        reach = upper_quantile(_TAIL, max(1, math.floor(degrees + 1e-9))) * math.sqrt(sum(parts))
    return Change(
        last_before="",
        first_after="",
        ratio=math.exp(size),
        low=math.exp(size - reach),
        high=math.exp(size + reach),
        loss=to_part(name, -size if METRICS[name].higher_is_better else size),
        level=1.0,
    )
