"""Latency percentiles and throughput of one measurement window, with distribution-free intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import Rail, RailQuantity, Trace
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.statistics import COVERAGE, mean_half_width
from powerlab.measure.percentiles.binomial import binomial_cdf

PERCENTILES = {
    "latency_p50_ms": 0.50,
    "latency_p90_ms": 0.90,
    "latency_p95_ms": 0.95,
    "latency_p99_ms": 0.99,
    "latency_p99_9_ms": 0.999,
}
BATCH_COUNT = 20
"""Consecutive queries are put together into this many batches; batch means hide their correlation."""
MIN_PER_BATCH = 2


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimedInferences:
    """Start and end of every query of a timed window: int64 CLOCK_MONOTONIC ns, shape (n,), n >= 1, in order.

    A query is one inference; in the multi-stream scenario it is as many as eight images take. It starts when it is
    issued, which is when the last one was answered; in the server scenario when it arrives, whether or not anybody is
    ready for it.

    ``part_ns`` holds what the parts of each query took in ns, shape (n,) a part, in the order in which they follow each
    other from its start; none where it has none.
    """

    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    part_ns: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)

    @property
    def window_ns(self) -> tuple[int, int]:
        """From the first start to the last end."""
        return int(self.start_ns[0]), int(self.end_ns[-1])

    @property
    def count(self) -> int:
        """How many queries there are."""
        return int(self.start_ns.size)

    @property
    def ordered_ms(self) -> NDArray[np.float64]:
        """The latencies in ms, in rising order."""
        return np.sort(self.end_ns - self.start_ns) / 1e6


_WHOLE = "latency"


def latency_trace(timed: TimedInferences, provenance: Provenance) -> Trace:
    """Return every latency in s at the time of its start, so that a run's figures can be worked out again."""
    return _trace(_WHOLE, timed.start_ns, timed.end_ns - timed.start_ns, provenance)


def part_traces(timed: TimedInferences, provenance: Provenance) -> Iterator[Trace]:
    """Yield how long each part of the queries took, in s, at the time of its start."""
    begin_ns = timed.start_ns
    for name, ns in timed.part_ns.items():
        yield _trace(name, begin_ns, ns, provenance)
        begin_ns = begin_ns + ns


def is_latency(trace: Trace) -> bool:
    """Tell whether a trace holds latencies of whole queries."""
    return trace.rail.quantity is RailQuantity.LATENCY and trace.rail.name == _WHOLE


def _trace(name: str, start_ns: NDArray[np.int64], ns: NDArray[np.int64], provenance: Provenance) -> Trace:
    rail = Rail(
        source="worker",
        name=name,
        quantity=RailQuantity.LATENCY,
        resolution=1e-9,
        relative_error=0.0,
        update_period_s=0.0,
        provenance=provenance,
    )
    return Trace(rail=rail, time_ns=start_ns, value=ns / 1e9)


def from_trace(trace: Trace, parts: Sequence[Trace] = ()) -> TimedInferences:
    """Return the times that :func:`latency_trace` and :func:`part_traces` made traces of, to the nanosecond."""
    ordered = sorted(parts, key=lambda one: int(one.time_ns[0]))
    return TimedInferences(
        start_ns=trace.time_ns,
        end_ns=trace.time_ns + _ns(trace),
        part_ns={one.rail.name: _ns(one) for one in ordered},
    )


def _ns(trace: Trace) -> NDArray[np.int64]:
    return np.round(trace.value * 1e9).astype(np.int64)


def percentile_rank(count: int, fraction: float) -> int:
    """Return the 1-based nearest rank of a percentile among ``count`` ordered values."""
    return max(1, math.ceil(fraction * count))


def percentile_ms(timed: TimedInferences, fraction: float) -> float:
    """Return a percentile of the latencies in ms, by nearest rank."""
    ordered_ms = np.sort(timed.end_ns - timed.start_ns) / 1e6
    return float(ordered_ms[percentile_rank(timed.count, fraction) - 1])


def interval_ranks(count: int, fraction: float, coverage: float = COVERAGE) -> tuple[int, int] | None:
    """Return the 1-based ranks of the order statistics that enclose a percentile with the coverage at least.

    The number of values below the true percentile is binomial whatever the distribution (David and Nagaraja, Order
    Statistics, section 7.1), for independent values. None where so few values cannot enclose it.
    """
    tail = (1 - coverage) / 2
    cdf = binomial_cdf(count, fraction)
    low = int(np.searchsorted(cdf, tail, side="right"))
    high = int(np.searchsorted(cdf, 1 - tail, side="left")) + 1
    return (low, high) if low >= 1 and high <= count else None


def latency_metrics(timed: TimedInferences, provenance: Provenance) -> tuple[Metric, ...]:
    """Return the latency percentiles in ms by nearest rank, with order-statistic intervals where the count allows."""
    ordered_ms = timed.ordered_ms
    metrics = []
    for name, fraction in PERCENTILES.items():
        ranks = interval_ranks(timed.count, fraction)
        metrics.append(
            Metric(
                name=name,
                value=float(ordered_ms[percentile_rank(timed.count, fraction) - 1]),
                low=None if ranks is None else float(ordered_ms[ranks[0] - 1]),
                high=None if ranks is None else float(ordered_ms[ranks[1] - 1]),
                provenance=provenance,
            )
        )
    return tuple(metrics)


def part_metrics(timed: TimedInferences, provenance: Provenance) -> Iterator[Metric]:
    """Yield the median of each part of a query in ms."""
    for name, ns in timed.part_ns.items():
        yield Metric(name=f"{name}_p50_ms", value=float(np.median(ns)) / 1e6, provenance=provenance)


def throughput_metric(timed: TimedInferences, images_per_query: int, provenance: Provenance) -> Metric:
    """Return images per second over the window; the interval comes from the means of consecutive batches."""
    start_ns, end_ns = timed.window_ns
    seconds_each = (end_ns - start_ns) / 1e9 / timed.count
    value = images_per_query / seconds_each
    half_width = _seconds_half_width(timed)
    if half_width is None or half_width >= seconds_each:
        return Metric(name="throughput_img_per_s", value=value, provenance=provenance)
    return Metric(
        name="throughput_img_per_s",
        value=value,
        low=images_per_query / (seconds_each + half_width),
        high=images_per_query / (seconds_each - half_width),
        provenance=provenance,
    )


def _seconds_half_width(timed: TimedInferences) -> float | None:
    """Return the 95 % half-width of the mean time from one query to the next, pauses included."""
    edges_ns = np.append(timed.start_ns, timed.end_ns[-1])
    batches = min(BATCH_COUNT, timed.count // MIN_PER_BATCH)
    if batches < MIN_PER_BATCH:
        return None
    cuts = np.linspace(0, timed.count, batches + 1).astype(int)
    means_s = np.diff(edges_ns[cuts]) / np.diff(cuts) / 1e9
    return mean_half_width(means_s.tolist())
