"""``stale-sensor``: a sensor keeps returning the same value.

A reading that repeats is no proof by itself: a sensor with a coarse step rightly gives one value for as long as the
load is constant, and a rail of an idle unit rightly stays at 0 W. So the rule asks for evidence that the value should
have moved, and knows three kinds:

- The rail was seen to be lively before the sweep: noise wider than its step moved its value all the time
  (:attr:`powerlab.power.sampling.update_period.Watched.lively`). Such a rail goes on flickering at every load. A
  stretch of at least a
  second in which twenty changes were due and twenty readings saw none is a stretch in which nobody measured. (Were
  the changes independent, none out of twenty would come once in e^20 times.) Like a gap it counts by its share of the
  window; a counter goes on counting through it, so that there only a stretch over an end of the window matters.
- An energy counter missed ten of its own steps and its next one did not make up for them: it had stopped counting, and
  what was used meanwhile is in no reading.
- The load started within the recording and no rail of the total ever changed. One rail alone says nothing, for it may
  feed what the load does not use; the sum of all must move. Where it does not, the sensor is stale, or its step is
  wider than the load: either way its figures say nothing about the load.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace
from powerlab.domain.run import Verdict
from powerlab.measure.evidence import Evidence
from powerlab.measure.rules.base import Judgement, by_share

STALE_S = 1.0
DUE_CHANGES = 20.0
LOST_CHANGES, LEAST_STRETCHES = 10, 20
"""A counter that misses ten of its steps, each of which is due because everything takes power, has stopped."""
CAUGHT_UP = 0.5


def stale_sensor(evidence: Evidence) -> Iterator[Judgement]:
    """A sensor that stopped says what was, not what is."""
    traces = evidence.total_traces()
    if evidence.load_ns is not None and _all_still(traces, evidence.load_ns, evidence.window_ns):
        keys = ", ".join(trace.rail.key for trace in traces)
        span_s = max(_span_s(trace) for trace in traces)
        yield (
            Verdict.VOID,
            f"not one reading of {keys} changed in {span_s:.1f} s although the load started meanwhile: the sensor is "
            "stale, or its step is wider than the load",
        )
        return
    for trace in traces:
        lost_share = _lost_s(trace, evidence.window_ns) / evidence.window_s
        if (verdict := by_share(lost_share)) is not Verdict.VALID:
            yield (
                verdict,
                f"{trace.rail.key} stood still for {lost_share:.0%} of the window and did not catch up: it stopped",
            )
            continue
        changes_per_s = evidence.lively.get(trace.rail.key, 0.0)
        share = _stale_s(trace, evidence.window_ns, changes_per_s) / evidence.window_s if changes_per_s else 0.0
        if (verdict := by_share(share)) is not Verdict.VALID:
            yield (
                verdict,
                f"{trace.rail.key} stood still for {share:.0%} of the window, while before the sweep it changed "
                f"{changes_per_s:.3g} times a second: the sensor was stale",
            )


def _all_still(traces: list[Trace], load_ns: int, window_ns: tuple[int, int]) -> bool:
    """Whether power rails alone, all read before the load and in the window, each gave one value throughout."""
    return bool(traces) and all(
        trace.rail.quantity is RailQuantity.POWER
        and trace.time_ns.size > 0
        and trace.time_ns[0] < load_ns
        and trace.time_ns[-1] >= window_ns[0]
        and bool(np.all(trace.value == trace.value[0]))
        for trace in traces
    )


def _span_s(trace: Trace) -> float:
    return float(trace.time_ns[-1] - trace.time_ns[0]) / 1e9


def _stale_s(trace: Trace, window_ns: tuple[int, int], changes_per_s: float) -> float:
    """Return how long the value stood still within the window, counting stretches that are too long for chance."""
    if trace.time_ns.size < 2:
        return 0.0
    firsts, lasts = _stretches(trace)
    starts_ns, ends_ns = trace.time_ns[firsts], trace.time_ns[lasts]
    held_s = (ends_ns - starts_ns) / 1e9
    stale = held_s >= min(STALE_S, _span_s(trace))
    # A time without readings is a gap and no repetition.
    stale &= np.minimum(held_s * changes_per_s, lasts - firsts) >= DUE_CHANGES
    if trace.rail.quantity is RailQuantity.ENERGY:
        stale &= ((starts_ns < window_ns[0]) & (ends_ns > window_ns[0])) | (ends_ns > window_ns[1])
    inside_ns = np.clip(ends_ns, *window_ns) - np.clip(starts_ns, *window_ns)
    return float(inside_ns[stale].sum()) / 1e9


def _stretches(trace: Trace) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first sample of every stretch of one value, and the first one after it, or the last of all."""
    changed = np.flatnonzero(trace.value[1:] != trace.value[:-1]) + 1
    return np.concatenate([[0], changed]), np.concatenate([changed, [trace.time_ns.size - 1]])


def _lost_s(trace: Trace, window_ns: tuple[int, int]) -> float:
    """Return how long an energy counter did not count within the window.

    One that was only not read, or not renewed, catches up with its next step. One that stopped goes on as if nothing
    had happened, or stands still to the end.
    """
    if trace.rail.quantity is not RailQuantity.ENERGY or trace.time_ns.size < 2:
        return 0.0
    firsts, lasts = _stretches(trace)
    held_s = (trace.time_ns[lasts] - trace.time_ns[firsts]) / 1e9
    if held_s.size < LEAST_STRETCHES:
        return 0.0
    long = (held_s >= LOST_CHANGES * np.median(held_s)) & (lasts - firsts >= LOST_CHANGES)
    counted_s = float(held_s[~long].sum())
    usual_w = float((trace.value[lasts] - trace.value[firsts])[~long].sum()) / counted_s if counted_s else 0.0
    power_w = (trace.value[lasts] - trace.value[firsts]) / np.maximum(held_s, 1e-9)
    lost = long & (power_w < CAUGHT_UP * usual_w)
    inside_ns = np.clip(trace.time_ns[lasts], *window_ns) - np.clip(trace.time_ns[firsts], *window_ns)
    return float(inside_ns[lost].sum()) / 1e9
