"""The answer to a question, as records that the command line prints and the API returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.operating_point.bounds import Bound
from powerlab.analysis.operating_point.candidates import Held
from powerlab.analysis.verdict import Decision
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.sweep import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedPoint:
    """A point with what it is ranked by.

    Attributes:
        point_id: the same in every sweep.
        point: threads, power mode, and the workload.
        figure: the goal's metric; J/img at the arrival rate includes idling.
        ratio: the best point's figure over this one's; None for the best point, and where there is none.
    """

    point_id: str
    point: Point
    figure: Metric
    ratio: Ratio | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPoint:
    """A point that would be better than the best one, if its open bounds turned out to be kept."""

    rated: RatedPoint
    held: tuple[Held, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundCost:
    """What a bound costs.

    Attributes:
        bound: the bound.
        without: the best point without it; None where that is no other.
    """

    bound: Bound
    without: RatedPoint | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AtRate:
    """The best point at one arrival rate.

    Attributes:
        rate_img_per_s: images that arrive in a second.
        rated: the point that takes the least J/img there, idling included.
        power: its mean power there, idling included.
        hours: on the battery; None without one. Its ends are None together.
        hours_low: lower end of its 95 % interval.
        hours_high: upper end.
        tied: how many points are tied with it, or cannot be told from it.
    """

    rate_img_per_s: float
    rated: RatedPoint
    power: Metric
    hours: float | None
    hours_low: float | None
    hours_high: float | None
    tied: int


class Cause(StrEnum):
    """Why another point takes the least energy from a rate on."""

    CROSSOVER = "crossover"
    CAPACITY = "capacity"
    BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An arrival rate at which another point becomes the one that takes the least energy.

    Attributes:
        rate_img_per_s: where that is.
        low: lower end of its 95 % interval; None where it is open, or the cause is no crossover.
        high: upper end.
        below: the point that takes the least below that rate.
        above: the one above it.
        cause: the lines of both cross; or the point below keeps up no further; or from there on a batch of the point
            above is collected within the latency bound.
        racing_below: for a crossover, whether the faster of both takes less below it, so that racing to idle pays
            there; else it pays above.
    """

    rate_img_per_s: float
    low: float | None
    high: float | None
    below: Point
    above: Point
    cause: Cause
    racing_below: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The operating point for one kind of work; figures of one provenance.

    Attributes:
        work: the model and how it is fed, in words.
        goal: what the point is best at.
        metric: the metric that says so.
        provenance: of that metric.
        scope: what the power covers, in words; empty without power.
        best: the point; None where no point keeps all bounds for sure.
        decision: winner, tied, or not enough data; None without a best point.
        statement: the decision, or why there is no point, in a sentence.
        held: the best point's bounds.
        tied: points that are tied with it, the best first.
        beaten: how many other points keep the bounds and are surely worse.
        open_points: points that may keep the bounds and would then be better, the best first.
        costs: what each bound costs.
        rates: the best point at other arrival rates.
        changes: where that changes.
    """

    work: str
    goal: str
    metric: str
    provenance: Provenance
    scope: str
    best: RatedPoint | None
    decision: Decision | None
    statement: str
    held: tuple[Held, ...] = ()
    tied: tuple[RatedPoint, ...] = ()
    beaten: int = 0
    open_points: tuple[OpenPoint, ...] = ()
    costs: tuple[BoundCost, ...] = ()
    rates: tuple[AtRate, ...] = ()
    changes: tuple[Change, ...] = ()
