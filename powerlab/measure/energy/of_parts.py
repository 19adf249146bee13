"""Energy of the parts of a query, such as the passes of a step of training, where sensors are fast enough for it.

A rail's curve is read at the ends of every part, later by the rail's lag, and the differences are added up over all
queries. What is uncertain, by the names of :mod:`powerlab.measure.energy.rail`:

- ``gain``, ``offset``, ``quantisation`` and ``rounding`` as there.
- ``lag`` or ``edge``: one lag for all queries, tried all over its distribution, so that what one part gains by a wrong
  lag its neighbours lose, in every query alike.
- ``edge``, too: a sensor averages over its update period, and readings are joined by straight lines. Across a step of
  the power from one part to the next each carries an eighth of a period's difference to the other side, so that parts
  seem more alike than they are. A quarter of a period is the bound for both.
- ``sampling``: the scatter of the queries.

A part that is shorter than :data:`FEWEST_PERIODS` update periods of a rail, or than so many readings, has no energy:
most of it would be a guess. Nor has any part where a sensor looks only part of the time, or where a query goes through
its parts several times, as slices of a batch do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.budget import half_width, interval
from powerlab.domain.power import RailQuantity, Trace
from powerlab.domain.quantity import Metric, Provenance, common_provenance
from powerlab.domain.run import Contribution
from powerlab.domain.statistics import NORMAL_95, mean_half_width
from powerlab.measure.energy.budget import Part, lines_of
from powerlab.measure.energy.counter_knots import knots_of
from powerlab.measure.energy.lag_correction import Lag, lag_of, lagged_energy
from powerlab.measure.energy.rail import Trapezoid, covers
from powerlab.measure.percentiles.latency import BATCH_COUNT, TimedInferences

FEWEST_PERIODS = 4.0
"""A part lasts so many update periods at least, and so many readings."""
_BLUR_PERIODS = 0.25
_SQRT3, _SQRT6 = math.sqrt(3.0), math.sqrt(6.0)
_FEWEST_QUERIES = 3

Floats = NDArray[np.float64]
Spans = Mapping[str, tuple[Floats, Floats]]
"""Begin and end of each part of all queries, in s since the window began, shape (n,), by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartEnergy:
    """What a part of a query takes on the mean.

    Attributes:
        name: of the part.
        energy_j: in a query.
        parts: what makes it uncertain, by rail and effect.
        provenance: the one that all rails share.
    """

    name: str
    energy_j: float
    parts: tuple[Part, ...]
    provenance: Provenance

    @property
    def metric_name(self) -> str:
        """The figure that it becomes."""
        return f"{self.name}_energy_j"

    def metric(self) -> Metric:
        """Return it as a figure with its 95 % interval."""
        low, high = interval(self.metric_name, self.energy_j, half_width(self.parts))
        return Metric(name=self.metric_name, value=self.energy_j, low=low, high=high, provenance=self.provenance)

    def budget(self) -> Iterator[Contribution]:
        """Yield the lines that its interval is made of."""
        return lines_of(self.metric_name, self.parts, 1.0)


def part_energies(traces: Sequence[Trace], timed: TimedInferences) -> Iterator[PartEnergy]:
    """Yield the energy of each part of a query that all rails are fast enough for.

    Args:
        traces: the rails of the total.
        timed: the queries with their parts.
    """
    whole = timed.window_ns
    if timed.count < _FEWEST_QUERIES or not all(
        covers(trace, *whole) and trace.rail.seen_share == 1 for trace in traces
    ):
        return
    spans = _spans(timed)
    slowest_s = max((_period_s(trace) for trace in traces), default=math.inf)
    rails = [(trace, _curve(trace, whole)) for trace in traces]
    for name, (begin_s, end_s) in spans.items():
        if float((end_s - begin_s).mean()) < FEWEST_PERIODS * slowest_s:
            continue
        found = [_of_rail(trace, curve, spans, name) for trace, curve in rails]
        yield PartEnergy(
            name=name,
            energy_j=math.fsum(energy_j for energy_j, _ in found),
            parts=tuple(part for _, parts in found for part in parts),
            provenance=common_provenance(trace.rail.provenance for trace in traces),
        )


def _spans(timed: TimedInferences) -> Spans:
    spans, begin_s = {}, (timed.start_ns - timed.start_ns[0]) / 1e9
    for name, ns in timed.part_ns.items():
        spans[name] = (begin_s, begin_s + ns / 1e9)
        begin_s = spans[name][1]
    return spans


def _period_s(trace: Trace) -> float:
    """Return how long a rail takes for a new value, as it says, or as it was read."""
    return max(trace.rail.update_period_s, float(np.median(np.diff(trace.time_ns))) / 1e9)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """A rail's energy over time: J up to times in s since the window began, and how late it is."""

    upto: Callable[[Floats], Floats]
    lag: Lag
    rounding_j: float = 0.0


def _curve(trace: Trace, window_ns: tuple[int, int]) -> _Curve:
    time_s = (trace.time_ns - window_ns[0]) / 1e9
    if trace.rail.quantity is RailQuantity.ENERGY:
        knots = knots_of(time_s, trace, (window_ns[1] - window_ns[0]) / 1e9)
        return _Curve(upto=knots.at, lag=knots.lag, rounding_j=knots.rounding_j)
    return _Curve(upto=Trapezoid(time_s, trace.value).upto, lag=lag_of(trace.rail, trace.read_cost_ns))


def _of_rail(trace: Trace, curve: _Curve, spans: Spans, name: str) -> tuple[float, tuple[Part, ...]]:
    """Return what a part takes of a rail in a query, in J, and what makes that uncertain."""
    begin_s, end_s = spans[name]
    count = begin_s.size

    def each_j(lag_s: float, begin_s: Floats = begin_s, end_s: Floats = end_s) -> Floats:
        return curve.upto(end_s + lag_s) - curve.upto(begin_s + lag_s)

    energy_j, late_j = lagged_energy(lambda lags_s: np.array([each_j(float(lag)).mean() for lag in lags_s]), curve.lag)
    powers_w = {
        one: float(each_j(curve.lag.mean_s, *ends).sum() / (ends[1] - ends[0]).sum()) for one, ends in spans.items()
    }
    blurred_j = (
        _BLUR_PERIODS * _period_s(trace) * sum(abs(powers_w[name] - powers_w[one]) for one in _beside(spans, name))
    )
    lasts_s, rail = float((end_s - begin_s).mean()), trace.rail
    effects = {
        "gain": rail.relative_error * abs(energy_j) / _SQRT3,
        "sampling": _scatter(each_j(curve.lag.mean_s)),
        "rounding": curve.rounding_j / _SQRT6 / math.sqrt(count),
        "edge": blurred_j / _SQRT3,
    }
    if rail.quantity is RailQuantity.POWER:
        effects |= {"offset": rail.offset * lasts_s / _SQRT3, "quantisation": rail.resolution * lasts_s / 2 / _SQRT3}
    effects[curve.lag.effect] = math.hypot(effects.get(curve.lag.effect, 0.0), late_j)
    return energy_j, tuple(
        Part(origin=rail.key, effect=effect, standard_uncertainty=found_j) for effect, found_j in effects.items()
    )


def _beside(spans: Spans, name: str) -> tuple[str, str]:
    """Return the parts before and after one; the last of a query is followed by the first of the next."""
    names = list(spans)
    at = names.index(name)
    return names[at - 1], names[(at + 1) % len(names)]


def _scatter(each_j: Floats) -> float:
    """Return the standard uncertainty of the mean of queries, from means of neighbours, which may hang together."""
    means = [float(some.mean()) for some in np.array_split(each_j, min(BATCH_COUNT, each_j.size))]
    return (mean_half_width(means) or 0.0) / NORMAL_95
