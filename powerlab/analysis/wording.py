"""Ratios in words: a difference is claimed only where the 95 % interval of the ratio excludes 1."""

from __future__ import annotations

from powerlab.analysis.comparison import Ratio, margin
from powerlab.analysis.rounding import interval_decimals, lopsided, significant_decimals

_DIGITS = 3


def lead_words(ratio: Ratio | None) -> str:
    """Return what can be said of the best point and the next best: ``it beats the next best by 12.1 % ± 3.0 %``."""
    if ratio is None:
        return "it cannot be compared with the next best, because a ratio takes figures above 0"
    value, low, high = margin(ratio)
    if low is None or high is None:
        return (
            f"its ratio to the next best is {_number(ratio.value)}, and how sure that is cannot be said, because an "
            "interval takes two repeats of both"
        )
    if low > 0:
        return f"it beats the next best by {percent_words(value, low, high)}"
    return f"it cannot be told from the next best (ratio {ratio_words(ratio)})"


def verdict_words(ratio: Ratio, *, claimed: bool) -> str:
    """Return what a ratio says of the first point and the second: ``12.1 % ± 3.0 % better``.

    Args:
        ratio: the first over the second.
        claimed: whether a difference may be claimed, all comparisons of the table considered.
    """
    value, low, high = margin(ratio)
    if low is None or high is None:
        return "cannot be said"
    if not claimed:
        return "not sure among so many" if ratio.differs else "cannot be told apart"
    if value > 0:
        return f"{percent_words(value, low, high)} better"
    return f"{percent_words(-value, -high, -low)} worse"


def percent_words(value: float, low: float, high: float) -> str:
    """Return a margin with its interval in percent: ``12.1 % ± 3.0 %``, or both ends where its sides differ much."""
    below, above = 100 * (value - low), 100 * (high - value)
    places = interval_decimals(max(below, above))
    if places is None:
        return f"{_number(100 * value)} %"
    if lopsided(below, above):
        return f"{100 * value:.{places}f} % ({100 * low:.{places}f} % to {100 * high:.{places}f} %)"
    return f"{100 * value:.{places}f} % ± {max(below, above):.{places}f} %"


def ratio_words(ratio: Ratio) -> str:
    """Return ``1.012, 0.974 to 1.051``; the ratio alone where it has no interval."""
    if ratio.low is None or ratio.high is None:
        return _number(ratio.value)
    places = interval_decimals(max(ratio.value - ratio.low, ratio.high - ratio.value))
    if places is None:
        return _number(ratio.value)
    return f"{ratio.value:.{places}f}, {ratio.low:.{places}f} to {ratio.high:.{places}f}"


def _number(value: float) -> str:
    return f"{value:.{significant_decimals(value, _DIGITS)}f}"
