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
    said = f"The bound {cost.bound.words} costs"
    if cost.without is None:
        return f"{said} nothing: without it the best point is the same."
    best = f"without it the best is {other}"
    ratio = cost.without.ratio
    if ratio is None or ratio.differs is None:
        return f"{said} something: {best}."
    if not ratio.differs:
        return f"{said} nothing significant: {best} (ratio {ratio_words(ratio)})."
    return f"{said}: {best}; with it the figure is {verdict_words(ratio, claimed=True)}."
