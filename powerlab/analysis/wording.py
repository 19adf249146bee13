"""Ratios in words: a difference is claimed only where the 95 % interval of the ratio excludes 1."""

from __future__ import annotations

from collections.abc import Mapping

from powerlab.analysis.comparison import Ratio, margin
from powerlab.analysis.rounding import interval_decimals, lopsided, significant_decimals
from powerlab.analysis.summary import MIN_VALID

_DIGITS = 3
_ID_DIGITS = 8


def counted(number: int, noun: str) -> str:
    """Return ``1 repeat`` or ``3 repeats``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def repeat_commands(lacking: Mapping[str, int]) -> str:
    """Return the commands that add repeats to sweeps, each in backquotes."""
    return " and ".join(f"`powerlab repeat {sweep[:_ID_DIGITS]} --add {count}`" for sweep, count in lacking.items())


def lead_words(
    ratio: Ratio | None,
    goal: str,
    rival: str,
    *,
    claimed: bool | None = None,
    rivals: int = 1,
    unbeaten: int = 1,
) -> str:
    """Return how the best point stands to its rivals: ``winner: beats 1 thread by 12.1 % ± 3.0 %``.

    Args:
        ratio: the best point's figure over that of a rival: of the best one it does not beat, else of the next best.
        goal: what they are compared by, such as ``latency``.
        rival: that rival, in the words in which the points differ.
        claimed: whether it is shown to be worse, all rivals considered; None goes by the ratio's interval alone.
        rivals: how many there are.
        unbeaten: how many of them are not shown to be worse.
    """
    if ratio is None:
        return f"not enough data: no ratio to {rival}, because a ratio takes figures above 0"
    value, low, high = margin(ratio)
    if low is None or high is None:
        return (
            f"not enough data: the {goal} ratio to {rival} is {_number(ratio.value)}, without an interval; that takes "
            f"{MIN_VALID} valid repeats of both"
        )
    wins = low > 0 if claimed is None else claimed
    if wins:
        lead = percent_words(value, low, high)
        if rivals == 1:
            return f"winner: beats {rival} by {lead}"
        others = "both others" if rivals == 2 else f"all {rivals} others"
        return f"winner: beats {others}, the next best ({rival}) by {lead}"
    more = "" if unbeaten < 2 else f" and {counted(unbeaten - 1, 'other')}"
    among = f"; not significant among {rivals} rivals" if low > 0 and rivals > 1 else ""
    return f"tied with {rival} ({goal} ratio {ratio_words(ratio)}{among}){more}"


def verdict_words(ratio: Ratio, *, claimed: bool) -> str:
    """Return what a ratio says of the first point and the second: ``12.1 % ± 3.0 % better``.

    Args:
        ratio: the first over the second.
        claimed: whether a difference may be claimed, all comparisons of the table considered.
    """
    value, low, high = margin(ratio)
    if low is None or high is None:
        return "not enough data"
    if not claimed:
        return "not significant among so many" if ratio.differs else "tied"
    if value > 0:
        return f"{percent_words(value, low, high)} better"
    return f"{percent_words(-value, -high, -low)} worse"


def percent_words(value: float, low: float, high: float) -> str:
    """Return a margin with its interval in percent: ``12.1 % ± 3.0 %``, or both ends where its sides differ much.

    An interval that excludes 0 is printed so that it does: ``5.0 % (0.04 % to 10.1 %)``, not ``5.0 % ± 5.1 %``.
    """
    below, above = 100 * (value - low), 100 * (high - value)
    places = interval_decimals(max(below, above))
    if places is None:
        return f"{_number(100 * value)} %"
    if lopsided(below, above) or (low > 0 and round(max(below, above), places) >= round(100 * value, places)):
        finer = max(places, significant_decimals(100 * low, 1)) if low > 0 else places
        return f"{100 * value:.{places}f} % ({100 * low:.{finer}f} % to {100 * high:.{places}f} %)"
    return f"{100 * value:.{places}f} % ± {max(below, above):.{places}f} %"


def ratio_words(ratio: Ratio) -> str:
    """Return ``1.012, 95 % CI 0.974–1.051``; the ratio alone where it has no interval."""
    if ratio.low is None or ratio.high is None:
        return _number(ratio.value)
    places = interval_decimals(max(ratio.value - ratio.low, ratio.high - ratio.value))
    if places is None:
        return _number(ratio.value)
    return f"{ratio.value:.{places}f}, 95 % CI {ratio.low:.{places}f}–{ratio.high:.{places}f}"


def _number(value: float) -> str:
    return f"{value:.{significant_decimals(value, _DIGITS)}f}"
