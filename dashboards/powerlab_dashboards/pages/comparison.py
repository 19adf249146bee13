"""What a comparison of sets shows, whatever the sets are: winners, ratios, points in common, and what differed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from powerlab.analysis.dimensions import in_words, varying
from powerlab.analysis.matches import Match, Side
from powerlab.analysis.set_wording import Surroundings, corrections, headline, surroundings
from powerlab.analysis.sets import RunSet, SetComparison, common_places, compare_sets
from powerlab.analysis.unmatched import Unmatched, differing, unmatched
from powerlab.analysis.verdict import Decision
from powerlab.domain.quantity import METRICS, MetricKind

COMPARED = (
    "latency_p50_ms",
    "latency_p99_ms",
    "throughput_img_per_s",
    "power_w",
    "efficiency_img_per_s_per_w",
)
"""The metrics of a comparison, where the sets have them."""
_FIRST_CHOICES = ("efficiency_img_per_s_per_w", "throughput_img_per_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """Who is best by a metric.

    Attributes:
        title: what it is best at.
        label: the best set; empty where nothing can be compared.
        decision: winner, tied, or not enough data.
        statement: the decision in a sentence.
    """

    title: str
    label: str
    decision: Decision
    statement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonPoint:
    """A point of the baseline, and what the other sets have there, in their order; None where one lacks it."""

    name: str
    baseline: Side
    matches: tuple[Match | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """Points of one set that another one lacks."""

    label: str
    point_count: int
    points: tuple[tuple[str, Unmatched], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What the page shows.

    Attributes:
        compared: by metric.
        winners: by metric.
        surroundings: temperatures and clocks of each set and the baseline.
        corrections: ratios at equal temperature, in sentences.
        missing: what did not match, by set.
        differing: dimensions in which the sets' points differ and that are not ignored.
    """

    compared: tuple[SetComparison, ...]
    winners: tuple[Winner, ...]
    surroundings: tuple[Surroundings, ...]
    corrections: tuple[str, ...]
    missing: tuple[Missing, ...]
    differing: tuple[str, ...]

    @property
    def metrics(self) -> Mapping[str, MetricKind]:
        """The metrics that some set has, by their names."""
        return {one.metric: METRICS[one.metric] for one in self.compared}

    def first_metric(self) -> str:
        """Return the metric whose points are shown unless another is asked for; empty where there is none."""
        names = list(self.metrics)
        return next((name for name in _FIRST_CHOICES if name in names), names[0] if names else "")

    def points(self, metric: str) -> tuple[CommonPoint, ...]:
        """Return the points of the baseline that another set has too."""
        (one,) = (each for each in self.compared if each.metric == metric)
        by_point = [{match.other.point: match for match in beside.matches} for beside in one.against]
        sides = {match.other.point: match.other for beside in one.against for match in beside.matches}
        name_of = varying(sides)
        return tuple(
            CommonPoint(name=name_of(point), baseline=side, matches=tuple(found.get(point) for found in by_point))
            for point, side in sides.items()
        )


def comparison(sets: Sequence[RunSet], ignored: Sequence[str] = ()) -> Comparison:
    """Compare sets with the first of them.

    Args:
        sets: at least two.
        ignored: dimensions in which points may differ and still match.

    Raises:
        PowerlabError: a dimension is not known, or several points of a set match the same point of another.
    """
    there = {metric.name for one in sets for run in one.runs for metric in run.metrics}
    names = [name for name in COMPARED if name in there] if common_places(sets, ignored) else []
    compared = tuple(compare_sets(sets, name, ignored) for name in names)
    return Comparison(
        compared=compared,
        winners=tuple(map(_winner, compared)),
        surroundings=tuple(surroundings(sets, compared[0])) if compared else (),
        corrections=tuple(corrections(compared)),
        missing=tuple(one for other in sets[1:] for one in _missing(sets[0], other, ignored) if one.points),
        differing=tuple(
            dict.fromkeys(title for other in sets[1:] for title in differing(sets[0], other) if title not in ignored)
        ),
    )


def _winner(one: SetComparison) -> Winner:
    return Winner(
        title=METRICS[one.metric].title,
        label=one.labels[0] if one.labels else "",
        decision=Decision.NOT_ENOUGH_DATA if one.standing is None else one.standing.decision,
        statement=headline(one),
    )


def _missing(baseline: RunSet, other: RunSet, ignored: Sequence[str]) -> tuple[Missing, ...]:
    return tuple(
        Missing(
            label=one.label,
            point_count=len({run.point for run in one.runs}),
            points=tuple((in_words(each.point), each) for each in unmatched(one, against, ignored)),
        )
        for one, against in ((other, baseline), (baseline, other))
    )
