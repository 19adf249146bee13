"""The best point at other arrival rates, and where it changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from powerlab.analysis.operating_point.arrivals import ENERGY, at_rate, collecting_ms
from powerlab.analysis.operating_point.candidates import candidates
from powerlab.analysis.operating_point.choice import choose
from powerlab.analysis.operating_point.crossover import Interval, crossover_interval
from powerlab.analysis.operating_point.envelope import PowerLine, envelope
from powerlab.analysis.operating_point.question import Question
from powerlab.analysis.operating_point.records import AtRate, Cause, Change, RatedPoint
from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.quantity import Metric
from powerlab.domain.run import Run

_STEPS = (1, 2, 5)
_MOST_ROWS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadPoint:
    """A point that keeps the bounds at some arrival rates, with its line and its runs as they were measured."""

    summary: PointSummary
    runs: Sequence[Run]
    line: PowerLine

    @classmethod
    def of(cls, summary: PointSummary, runs: Sequence[Run], question: Question) -> LoadPoint | None:
        """Return it; None where it keeps the bounds at no rate, or has no idle power."""
        idle, above = summary.metric("idle_power_w"), summary.metric("energy_above_idle_per_image_j")
        throughput = summary.metric("throughput_img_per_s")
        if idle is None or above is None or throughput is None:
            return None
        busy = Question(bounds=tuple(bound for bound in question.bounds if bound.name != "p99"))
        (candidate,) = candidates([summary], {summary.point: runs}, busy)
        least = _least_rate(summary, question)
        if not candidate.kept or least is None:
            return None
        most = throughput.value if throughput.low is None else throughput.low
        line = PowerLine(idle_w=idle.value, above_idle_j=above.value, from_rate=least, to_rate=most)
        return cls(summary=summary, runs=runs, line=line)


def _least_rate(summary: PointSummary, question: Question) -> float | None:
    """Return the least arrival rate at which a batch is collected within the latency bound; None where at none."""
    bound = next((one for one in question.bounds if one.name == "p99"), None)
    if bound is None:
        return 0.0
    latency = summary.metric("latency_p99_ms")
    if latency is None or latency.high is None or latency.high > bound.limit:
        return None
    waited_at_one = collecting_ms(summary.point, 1.0)
    left_ms = bound.limit - latency.high
    if waited_at_one == 0:
        return 0.0
    return waited_at_one / left_ms if left_ms > 0 else None


def best_at_rates(points: Sequence[LoadPoint], question: Question) -> tuple[AtRate, ...]:
    """Return the best point at round arrival rates up to what the fastest point keeps up with, and at the one asked."""
    most = max((point.line.to_rate for point in points), default=0.0)
    asked = {bound.limit for bound in question.bounds if bound.name == "throughput"} | {question.rate_img_per_s or most}
    rates = sorted({*_round_rates(most), *(rate for rate in asked if 0 < rate <= most)})
    return tuple(row for rate in rates if (row := _best_at(points, rate, question)) is not None)


def _round_rates(most: float) -> Iterator[float]:
    """Yield the highest rates of 1, 2, 5, 10... below a highest rate."""
    if not 0 < most < math.inf:
        return
    power = math.floor(math.log10(most))
    steps = [step * 10.0**exponent for exponent in range(power - 2, power + 1) for step in _STEPS]
    yield from [rate for rate in steps if rate < most][-_MOST_ROWS:]


def _best_at(points: Sequence[LoadPoint], rate: float, question: Question) -> AtRate | None:
    able = [point for point in points if point.line.holds(rate)]
    seen = {point.summary.point: at_rate(point.runs, rate) for point in able}
    summaries = [summary for runs in seen.values() for summary in summarise(runs)]
    choice = choose(summaries, seen, ENERGY)
    if choice is None:
        return None
    rated = RatedPoint(point_id=choice.best.point.id, point=choice.best.point, figure=choice.figure)
    power = _times(choice.figure, rate)
    hours = [
        None if question.battery_wh is None or not watts else question.battery_wh / watts
        for watts in (power.value, power.high, power.low)
    ]
    return AtRate(
        rate_img_per_s=rate,
        rated=rated,
        power=power,
        hours=hours[0],
        hours_low=None if None in hours else hours[1],
        hours_high=None if None in hours else hours[2],
        tied=len(choice.rivals),
    )


def _times(energy: Metric, rate: float) -> Metric:
    ends = [None if end is None else end * rate for end in (energy.low, energy.high)]
    return Metric(name="power_w", value=energy.value * rate, low=ends[0], high=ends[1], provenance=energy.provenance)


def changes(points: Sequence[LoadPoint]) -> tuple[Change, ...]:
    """Return the arrival rates at which another point becomes the one that takes the least energy."""
    return tuple(
        _change(points[one.line], points[other.line], other.from_rate)
        for one, other in pairwise(envelope([point.line for point in points]))
        if one.line != other.line and one.to_rate == other.from_rate
    )


def _change(below: LoadPoint, above: LoadPoint, rate: float) -> Change:
    ends = (max(below.line.from_rate, above.line.from_rate), min(below.line.to_rate, above.line.to_rate))
    found, cause = Interval(low=None, high=None), Cause.CAPACITY if rate == below.line.to_rate else Cause.BATCH
    if ends[0] < rate < ends[1]:
        found, cause = crossover_interval(below.runs, above.runs, rate, ends[1]), Cause.CROSSOVER
    return Change(
        rate_img_per_s=rate,
        low=found.low,
        high=found.high,
        below=below.summary.point,
        above=above.summary.point,
        cause=cause,
        racing_below=below.line.to_rate > above.line.to_rate,
    )
