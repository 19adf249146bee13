"""Sets of runs beside each other: sweeps, devices, engines, models, modes or versions, point by point and as a whole.

A point of one set is compared with the point of the baseline that is the same but for the dimensions in which the sets
are meant to differ. As a whole, a set is the geometric mean of its points, block by block: a block of a sweep holds all
points once, so what it does to all of them is one observation, and blocks that two sets share are pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from powerlab.analysis.blocks import Place, blocks_of
from powerlab.analysis.comparison import Ratio, compare, holm
from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.analysis.matches import Match, Side, all_but, claimed
from powerlab.analysis.run_selection import narrowed
from powerlab.analysis.summary import summarise
from powerlab.analysis.verdict import Standing, judged, lacking
from powerlab.analysis.wording import counted
from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Run
from powerlab.domain.sweep import Point

_Places = Mapping[Place, Sequence[Run]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSet:
    """Runs that belong together.

    Attributes:
        label: what the user calls them.
        runs: all of them.
        devices: names of the devices that made them, and whether those are simulated.
    """

    label: str
    runs: tuple[Run, ...]
    devices: frozenset[tuple[str, bool]]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstBaseline:
    """A set beside the baseline by one metric.

    Attributes:
        label: the set.
        whole: the set over the baseline as a whole, over the points that both have; None where there is no ratio.
        claimed: whether that difference may be claimed, so that all such claims about this metric hold together.
        blocks: the runs behind that ratio, of the set and of the baseline, each the mean of a block.
        matches: point by point.
    """

    label: str
    whole: Ratio | None
    claimed: bool
    blocks: tuple[Sequence[Run], Sequence[Run]]
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SetComparison:
    """Sets beside each other by one metric.

    Attributes:
        metric: a key of :data:`powerlab.domain.quantity.METRICS`.
        against: every set but the first, which is the baseline.
        labels: the sets that all points of the decision are in, the best first; empty where they have none in common.
        place_count: points that all sets have in common, over which the winner is sought.
        standing: how the best stands to the others; None where there is nothing to decide.
        lacking: by the identifier of a sweep, valid repeats that its points lack for that decision.
    """

    metric: str
    against: tuple[AgainstBaseline, ...]
    labels: tuple[str, ...]
    place_count: int
    standing: Standing | None
    lacking: Mapping[str, int]


def compare_sets(sets: Sequence[RunSet], name: str, ignored: Sequence[str] = ()) -> SetComparison:
    """Compare two or more sets by one metric; the first is the baseline.

    Args:
        sets: at least two.
        name: the metric.
        ignored: dimensions in which points may differ and still match.

    Raises:
        PowerlabError: a dimension is not known, several points of a set match the same point of another, or two sets
            have a run in common.
    """
    kept = all_but(ignored)
    by_place = [_by_place(one, kept, ignored) for one in sets]
    _check_apart(sets)
    rest = [
        (one.label, places, one.devices == sets[0].devices and len(one.devices) == 1)
        for one, places in zip(sets[1:], by_place[1:], strict=True)
    ]
    points = [_matches(name, places, by_place[0], one_device=same) for _, places, same in rest]
    blocks = [_blocks(name, places, by_place[0]) for _, places, _ in rest]
    wholes = [compare(*both, name, one_device=same) for both, (_, _, same) in zip(blocks, rest, strict=True)]
    all_points = iter(claimed([match for matches in points for match in matches]))
    made = holm([None if whole is None else whole.level for whole in wholes])
    labels, place_count, standing, lacks = _decided(sets, by_place, name)
    return SetComparison(
        metric=name,
        against=tuple(
            AgainstBaseline(
                label=label, whole=whole, claimed=claim, blocks=both, matches=tuple(next(all_points) for _ in matches)
            )
            for (label, _, _), whole, claim, both, matches in zip(rest, wholes, made, blocks, points, strict=True)
        ),
        labels=labels,
        place_count=place_count,
        standing=standing,
        lacking=lacks,
    )


def _check_apart(sets: Sequence[RunSet]) -> None:
    """Refuse sets that share runs: a run says nothing of its difference from itself, and intervals would be too narrow.

    Raises:
        PowerlabError: two of them have a run in common.
    """
    for one, other in combinations(sets, 2):
        theirs = {run.id: run for run in other.runs}
        shared = sum(theirs.get(run.id) == run for run in one.runs)
        if shared:
            are = "is" if shared == 1 else "are"
            raise PowerlabError(
                f"{counted(shared, 'run')} of {one.label} {are} in {other.label}, too; compare sets that have no run "
                "in common."
            )


def common_places(sets: Sequence[RunSet], ignored: Sequence[str] = ()) -> int:
    """Return how many points of the baseline at least one other set has."""
    kept = all_but(ignored)
    baseline, *others = ({kept(run.point) for run in one.runs} for one in sets)
    return len(baseline & set().union(*others))


def _by_place(one: RunSet, kept: Callable[[Point], Place], ignored: Sequence[str]) -> dict[Place, list[Run]]:
    found: dict[Place, list[Run]] = {}
    for run in one.runs:
        found.setdefault(kept(run.point), []).append(run)
    for runs in found.values():
        if len({run.point for run in runs}) > 1:
            raise PowerlabError(
                f"without {' and '.join(ignored)} several points of {one.label} are alike; select fewer of them, such "
                f"as {narrowed(one.label, _telling(runs, ignored))}."
            )
    return found


def _telling(runs: Sequence[Run], ignored: Sequence[str]) -> str:
    """Return the first of some dimensions in which the points of runs differ."""
    readers = {dimension.title: dimension.read for dimension in DIMENSIONS}
    return next(title for title in ignored if len({readers[title](run.point) for run in runs}) > 1)


def _matches(name: str, ones: _Places, others: _Places, *, one_device: bool) -> list[Match]:
    """Return every point that both have, in the order of the second."""
    return [_match(name, ones[place], runs, one_device=one_device) for place, runs in others.items() if place in ones]


def _match(name: str, ones: Sequence[Run], others: Sequence[Run], *, one_device: bool) -> Match:
    one, other = _side(ones, name), _side(others, name)
    return Match(metric=name, one=one, other=other, ratio=compare(ones, others, name, one_device=one_device))


def _side(runs: Sequence[Run], name: str) -> Side:
    (summary,) = summarise(runs)
    return Side(point=summary.point, runs=tuple(runs), metric=summary.metric(name))


def _blocks(name: str, ones: _Places, others: _Places) -> tuple[Sequence[Run], Sequence[Run]]:
    """Return the blocks of two sets over the points of which both have a figure."""
    common = [place for place in others if place in ones]
    places = [place for place in common if _figured(ones[place], name) and _figured(others[place], name)]
    one, other = (blocks_of({place: those[place] for place in places}, name) for those in (ones, others))
    return one, other


def _figured(runs: Sequence[Run], name: str) -> bool:
    return any(run.metric(name) is not None for run in runs)


def _decided(
    sets: Sequence[RunSet], by_place: Sequence[_Places], name: str
) -> tuple[tuple[str, ...], int, Standing | None, Mapping[str, int]]:
    """Return the sets, the best first, over how many points, how the best stands to the others, and what they lack."""
    common = [place for place in by_place[0] if all(place in other for other in by_place[1:])]
    common = [place for place in common if all(_figured(places[place], name) for places in by_place)]
    blocks = [blocks_of({place: places[place] for place in common}, name) for places in by_place]
    if not common or any(not runs for runs in blocks):
        return (), 0, None, {}
    sign = -1.0 if METRICS[name].higher_is_better else 1.0
    order = sorted(range(len(sets)), key=lambda place: sign * _middle(blocks[place], name))
    best, *rivals = order
    ratios = [
        compare(blocks[best], blocks[rival], name, one_device=sets[best].devices == sets[rival].devices)
        for rival in rivals
    ]
    lacks = lacking((places[place] for places in by_place for place in common), name)
    standing = judged(ratios, max(lacks.values(), default=0))
    return tuple(sets[place].label for place in order), len(common), standing, lacks


def _middle(runs: Sequence[Run], name: str) -> float:
    return median(metric.value for run in runs if (metric := run.metric(name)) is not None)
