"""A load that repeats in step with a sensor that looks only part of the time: what the sensor missed.

Some sensors are blind most of the time: those of NVIDIA's A100 and H100 average 25 ms of every 100 ms, and their energy
counter adds up these averages (Yang, Adamek and Armour, *Part-time Power Measurements*, arXiv 2312.02741). If a query
takes 100 ms, too, every reading shows the same part of a query, and no statistics of the readings says what the others
took. But when queries began is known, and so is which part of its query each reading saw. Sorted by that, readings are
samples of one query: the trapezoid over it is what an even look would have read, because the mean of a moving average
is the mean of what it averages. Its distance from the plain mean is what uneven looks make of the power. Between two
neighbours a gap is left, in which that average, over the part ℓ of a query that a reading sees, departs from the
straight line by a mean of at most g / 4ℓ times the range of the power, in a gap of g queries, and never by more than
the range: a bound. The distance is what a correction would be; it is not applied and counts as a standard uncertainty.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import hypot, sqrt

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace
from powerlab.measure.energy.budget import Part
from powerlab.measure.percentiles.latency import TimedInferences

EFFECT = "in-step"
_WIDE = 6.0
"""Of so many times the mean gap, random moments leave one in some hundred: wider ones are no chance."""
_FEWEST_QUERIES, _FEWEST_LOOKS = 4, 4
_MOST_READS_APART = 2.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Looks:
    """How a rail's readings lie over a query.

    Attributes:
        missed_share: the share of a query that no reading saw, in gaps too wide for chance.
        uneven_w: how far the mean power of an even look is from the readings' own.
        gaps: root of the sum of squares of what gaps may hide, as a share of the range of the power.
    """

    missed_share: float = 0.0
    uneven_w: float = 0.0
    gaps: float = 0.0


def in_step_parts(traces: Iterable[Trace], idle: Sequence[Trace], timed: TimedInferences) -> Iterator[Part]:
    """Yield a part of the budget for each rail that looks part of the time, in J of the timed window.

    Args:
        traces: the rails of the total in the run.
        idle: what was recorded without load: the power within a query is not below it.
        timed: when queries began and ended.
    """
    found = list(traces)
    window_s = (timed.window_ns[1] - timed.window_ns[0]) / 1e9
    for key, looks in _looks(found, timed):
        range_w = _range_w([one for one in (*found, *idle) if one.rail.key == key])
        unsure_w = hypot(looks.uneven_w, looks.gaps * range_w / sqrt(3))
        yield Part(origin=key, effect=EFFECT, standard_uncertainty=unsure_w * window_s)


def missed_shares(traces: Iterable[Trace], timed: TimedInferences) -> dict[str, float]:
    """Return by key, of the rails that look part of the time, the share of a query that they missed."""
    return {key: looks.missed_share for key, looks in _looks(traces, timed)}


def _looks(traces: Iterable[Trace], timed: TimedInferences) -> Iterator[tuple[str, Looks]]:
    for trace in traces:
        if trace.rail.seen_share < 1 and timed.count >= _FEWEST_QUERIES:
            yield trace.rail.key, looks_of(trace, timed)


def looks_of(trace: Trace, timed: TimedInferences) -> Looks:
    """Lay the readings of a rail over the queries that they saw parts of."""
    at_s, value_w = _new_values(trace)
    at_s = at_s - timed.start_ns[0] / 1e9
    starts_s = (timed.start_ns - timed.start_ns[0]) / 1e9
    number = np.arange(starts_s.size, dtype=float)
    seen_s = trace.rail.seen_share * trace.rail.update_period_s
    inside = (at_s - seen_s >= 0) & (at_s <= starts_s[-1])
    begins, ends = (np.interp(one, starts_s, number) for one in (at_s[inside] - seen_s, at_s[inside]))
    if ends.size < _FEWEST_LOOKS:
        return Looks()
    place = ((begins + ends) / 2) % 1.0
    order = np.argsort(place)
    place, seen_w = place[order], value_w[inside][order]
    gap = np.diff(place, append=place[0] + 1.0)
    even_w = float(np.sum(gap * (seen_w + np.roll(seen_w, -1)) / 2))
    length = float(np.median(ends - begins))
    wide = gap > max(length, _WIDE / gap.size)
    return Looks(
        missed_share=float(np.sum(gap[wide] - length)),
        uneven_w=abs(even_w - float(seen_w.mean())),
        gaps=float(np.sqrt(np.sum(np.minimum(gap**2 / (4 * length), gap) ** 2))),
    )


def _new_values(trace: Trace) -> tuple[Floats, Floats]:
    """Return when new values came, in s, and the power in W that each shows; how old they are shifts all alike."""
    time_s = trace.time_ns / 1e9
    new = np.concatenate(([False], np.diff(trace.value) != 0))
    at_s, value = time_s[new], trace.value[new]
    if at_s.size < 2:
        return at_s[1:], value[1:]
    period_s = trace.rail.update_period_s
    periods = np.maximum(1.0, np.round(np.diff(at_s) / period_s))
    at_s = _regular(at_s, periods, float(np.median(np.diff(time_s))))
    if trace.rail.quantity is RailQuantity.POWER:
        return at_s, value
    return at_s[1:], np.diff(value) / (periods * period_s)


def _regular(at_s: Floats, periods: Floats, read_s: float) -> Floats:
    """Return evenly spaced moments in the place of those at which a read happened to see new values.

    A value is seen up to a read's distance after it came. Such chance would spread the readings of a load in step over
    parts of the query that they never saw. Where the moments are no even ones but for that, they stay as they are.
    """
    number = np.concatenate(([0.0], np.cumsum(periods)))
    even_s: Floats = np.asarray(np.polyval(np.polyfit(number, at_s, 1), number), dtype=np.float64)
    return even_s if np.ptp(at_s - even_s) <= _MOST_READS_APART * read_s else at_s


def _range_w(traces: Sequence[Trace]) -> float:
    """Return the range of the power that was seen."""
    seen = np.concatenate([_new_values(trace)[1] for trace in traces])
    return float(seen.max() - seen.min()) if seen.size else 0.0
