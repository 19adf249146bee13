"""Sentences on the arrival rates at which another operating point takes the least energy."""

from __future__ import annotations

from collections.abc import Callable

from powerlab.analysis.operating_point.records import Cause, Change
from powerlab.cli.output.sweep_table import format_number
from powerlab.domain.sweep import Point

_DIGITS = 3


def change_words(change: Change, named: Callable[[Point], str]) -> str:
    """Return what changes at a rate, and for a crossover on which side racing to idle pays.

    A crossover of points that differ significantly at no rate is none to speak of: the sentence is empty.

    Args:
        change: where another point begins to take the least energy.
        named: says a point in words.
    """
    below, above = named(change.below), named(change.above)
    rate = f"{format_number(change.rate_img_per_s, _DIGITS)} img/s"
    if change.cause is Cause.CAPACITY:
        return f"Up to {rate}, {below} takes the least energy; it cannot keep up with more, and {above} follows."
    if change.cause is Cause.BATCH:
        return f"From {rate} on, where its batch fills in time, {above} takes the least energy; below that, {below}."
    if change.low is None and change.high is None:
        return ""
    faster, side = (below, "below") if change.racing_below else (above, "above")
    return (
        f"Below {rate} ({_interval(change)}), {below} takes less energy, above it {above}. Racing to idle pays {side} "
        f"that rate: {faster} is the faster of the two."
    )


def _interval(change: Change) -> str:
    """Return the interval in words, open ends too."""
    low, high = (None if end is None else format_number(end, _DIGITS) for end in (change.low, change.high))
    if low is None:
        return f"95 % CI up to {high}"
    return f"95 % CI {low} or more" if high is None else f"95 % CI {low}–{high}"
