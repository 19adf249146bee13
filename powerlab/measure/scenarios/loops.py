"""Query loops of the worker: one after the other, or as they arrive. Times are CLOCK_MONOTONIC, in ns."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator

import numpy as np

from powerlab.measure.worker.messages import Measure

Answer = Callable[[], object]
"""Answers one query, and returns when it is answered."""
QueryTimes = tuple["array[int]", "array[int]"]
"""Start and end of every query."""

_GAPS_AT_ONCE = 1024


def back_to_back(answer: Answer, deadline_ns: int, min_count: int) -> QueryTimes:
    """Answer queries until the time is over and the count is reached; the next starts when the last is answered."""
    clock = time.monotonic_ns
    starts, ends = array("q"), array("q")
    now = clock()
    while now < deadline_ns or len(ends) < min_count:
        starts.append(clock())
        answer()
        now = clock()
        ends.append(now)
    return starts, ends


def timed_window(answer: Answer, request: Measure) -> QueryTimes:
    """Run the timed window with the load already there before it and still there after it."""
    if request.queries_per_s > 0:
        return _as_they_arrive(answer, request)
    margin_ns, duration_ns = round(request.margin_s * 1e9), round(request.duration_s * 1e9)
    back_to_back(answer, time.monotonic_ns() + margin_ns, min_count=0)
    times = back_to_back(answer, time.monotonic_ns() + duration_ns, request.min_inferences)
    back_to_back(answer, time.monotonic_ns() + margin_ns, min_count=0)
    return times


def _as_they_arrive(answer: Answer, request: Measure) -> QueryTimes:
    """Answer queries in the order of their arrival; a query starts when it arrives, though nobody may be ready for it.

    The arrivals do not wait for the answers (an open loop): who comes while another is answered stands in a queue.
    """
    margin_ns = round(request.margin_s * 1e9)
    starts, ends = array("q"), array("q")
    from_ns = time.monotonic_ns() + margin_ns
    until_ns = from_ns + round(request.duration_s * 1e9)
    for arrival_ns in arrivals(from_ns - margin_ns, request):
        timed = arrival_ns >= from_ns and (arrival_ns < until_ns or len(starts) < request.min_inferences)
        if starts and not timed and max(arrival_ns, time.monotonic_ns()) >= ends[-1] + margin_ns:
            break
        _wait_until(arrival_ns)
        answer()
        if timed:
            starts.append(arrival_ns)
            ends.append(time.monotonic_ns())
    _wait_until(ends[-1] + margin_ns)
    return starts, ends


def arrivals(begin_ns: int, request: Measure) -> Iterator[int]:
    """Yield the times of a Poisson process without end: gaps that are exponential and independent, 1 ns at least."""
    generator = np.random.default_rng(request.arrival_seed)
    now_ns = begin_ns
    while True:
        for gap_ns in generator.exponential(1e9 / request.queries_per_s, _GAPS_AT_ONCE):
            now_ns += max(1, round(gap_ns))
            yield now_ns


def _wait_until(time_ns: int) -> None:
    left_ns = time_ns - time.monotonic_ns()
    if left_ns > 0:
        time.sleep(left_ns / 1e9)
