"""Which points are compared with which: the best with the rest, one sweep's with another's, or along a dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from powerlab.analysis.comparison import WITHOUT_RATIO, Ratio, compare, holm
from powerlab.analysis.dimensions import DIMENSIONS, Dimension
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS, Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A point of one sweep, with its repeats and its figure."""

    point: Point
    runs: tuple[Run, ...]
    metric: Metric | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Two points beside each other.

    Attributes:
        metric: what is compared.
        one: the first point.
        other: the second point.
        ratio: the first point's figure over the second's; None where they can only stand side by side.
        claimed: whether a difference may be claimed, so that all claims about this metric hold together.
    """

    metric: str
    one: Side
    other: Side
    ratio: Ratio | None
    claimed: bool = False

    @property
    def reason(self) -> str:
        """Why there is no ratio; empty where there is one."""
        if self.ratio is not None:
            return ""
        if self.one.metric is None or self.other.metric is None:
            return "no figure"
        words = {self.one.metric.provenance.value, self.other.metric.provenance.value}
        if len(words) > 1:
            return f"{' and '.join(sorted(words))}: side by side only"
        unit = METRICS[self.metric].unit
        return f"{unit} has no ratios" if unit in WITHOUT_RATIO else "not above 0"


def best_against_rest(runs: Sequence[Run], name: str) -> tuple[Match, ...]:
    """Compare the best point of each model with each of its other points, best first.

    Models do different work, and provenances do not mix, so each of them has a best point of its own.
    """
    groups: dict[tuple[str, str], list[Side]] = {}
    for side in _sides(runs, name):
        if side.metric is not None:
            groups.setdefault((side.point.workload.model, side.metric.provenance.value), []).append(side)
    found = []
    for sides in groups.values():
        best, *rest = _ranked(sides, name)
        found += claimed([_match(name, best, side, one_device=True) for side in rest])
    return tuple(found)


def between_sweeps(
    ones: Sequence[Run], others: Sequence[Run], name: str, *, one_device: bool, ignored: Sequence[str] = ()
) -> tuple[Match, ...]:
    """Compare the points of one sweep with those of another that are the same but for the ignored dimensions.

    Raises:
        PowerlabError: a dimension is not known, or a point has several partners without the ignored dimensions.
    """
    kept = all_but(ignored)
    partners: dict[tuple[str, ...], Side] = {}
    for side in _sides(others, name):
        place = kept(side.point)
        if place in partners:
            raise PowerlabError(
                f"without {' and '.join(ignored)} points of the second sweep are alike; ignore fewer dimensions."
            )
        partners[place] = side
    pairs = [(side, partners.get(kept(side.point))) for side in _sides(ones, name)]
    return tuple(
        claimed([_match(name, one, other, one_device=one_device) for one, other in pairs if other is not None])
    )


def along(
    runs: Sequence[Run], title: str, name: str, summaries: Sequence[PointSummary] | None = None
) -> tuple[Match, ...]:
    """Compare points that differ in one dimension alone, each with the one whose value is usual, such as fp32.

    Where the sweep has no such point, the value that was measured first takes its place.

    Args:
        runs: the runs of a sweep.
        title: the dimension.
        name: the metric.
        summaries: what :func:`summarise` makes of the runs, where somebody has it already.

    Raises:
        PowerlabError: the dimension is not known, or all points are alike in it.
    """
    kept = all_but([title])
    dimension = _dimension(title)
    read = dimension.read
    groups: dict[tuple[str, ...], list[Side]] = {}
    for side in _sides(runs, name, summaries):
        groups.setdefault(kept(side.point), []).append(side)
    values = [read(run.point) for run in runs]
    first = dimension.usual if dimension.usual in values else next(iter(values), "")
    matches = []
    for sides in groups.values():
        base = next((side for side in sides if read(side.point) == first), None)
        if base is not None:
            matches += [_match(name, side, base, one_device=True) for side in sides if side is not base]
    if not matches:
        raise PowerlabError(f"no two points of the sweep differ in {title!r} alone; name a dimension that it sweeps.")
    return tuple(claimed(matches))


def _sides(runs: Sequence[Run], name: str, summaries: Sequence[PointSummary] | None = None) -> list[Side]:
    repeats: dict[Point, list[Run]] = {}
    for run in runs:
        repeats.setdefault(run.point, []).append(run)
    return [
        Side(point=summary.point, runs=tuple(repeats[summary.point]), metric=summary.metric(name))
        for summary in (summarise(runs) if summaries is None else summaries)
    ]


def _ranked(sides: Sequence[Side], name: str) -> list[Side]:
    sign = -1.0 if METRICS[name].higher_is_better else 1.0
    return sorted(sides, key=lambda side: 0.0 if side.metric is None else sign * side.metric.value)


def _match(name: str, one: Side, other: Side, *, one_device: bool) -> Match:
    ratio = compare(one.runs, other.runs, name, one_device=one_device)
    return Match(metric=name, one=one, other=other, ratio=ratio)


def claimed(matches: Sequence[Match]) -> list[Match]:
    """Return matches with those differences claimed that hold all together (Holm)."""
    made = holm([None if match.ratio is None else match.ratio.level for match in matches])
    return [replace(match, claimed=claim) for match, claim in zip(matches, made, strict=True)]


def all_but(titles: Sequence[str]) -> Callable[[Point], tuple[str, ...]]:
    """Return a function that says a point but for some dimensions; raises PowerlabError where one is not known."""
    left_out = {_dimension(title).read for title in titles}
    kept = [one.read for one in DIMENSIONS if one.read not in left_out]
    return lambda point: tuple(read(point) for read in kept)


def _dimension(title: str) -> Dimension:
    known: Mapping[str, Dimension] = {one.title: one for one in DIMENSIONS}
    if title not in known:
        raise PowerlabError(
            f"there is no dimension {title!r}{meant(title, list(known))}; choose from: {', '.join(known)}."
        )
    return known[title]
