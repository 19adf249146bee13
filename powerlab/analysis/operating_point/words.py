"""What a bound costs, in a sentence."""

from __future__ import annotations

from powerlab.analysis.operating_point.records import BoundCost
from powerlab.analysis.wording import ratio_words, verdict_words

NO_BOUND_COSTS = "None of the bounds costs anything: without any one of them the best point is the same."
NO_OTHER_COSTS = "The other bounds cost nothing: without any one of them the best point is the same."


def cost_words(cost: BoundCost, other: str) -> str:
    """Return what a bound costs: how the best point compares with the best one without it.

    Args:
        cost: the bound and its cost.
        other: the best point without it and its figure, in words; unused where that is no other.
    """
    asked = f"Asking for {cost.bound.words}"
    if cost.without is None:
        return f"{asked} costs nothing: without it the best point is the same."
    best = f"without it the best point is {other}"
    ratio = cost.without.ratio
    if ratio is None or ratio.differs is None:
        return f"{asked} costs something, but too few runs are valid to say how much: {best}."
    if not ratio.differs:
        return f"{asked} costs nothing significant: {best} (ratio {ratio_words(ratio)})."
    return f"{asked} makes the figure {verdict_words(ratio, claimed=True)}: {best}."
