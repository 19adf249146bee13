"""Says why no point keeps all bounds: which bound is missed, and by how much."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from powerlab.analysis.operating_point.bounds import Fit, overshoot
from powerlab.analysis.operating_point.candidates import Candidate, Held, relative_miss
from powerlab.analysis.rounding import significant_decimals
from powerlab.domain.quantity import METRICS
from powerlab.domain.sweep import Point


def why_none(found: Sequence[Candidate], named: Callable[[Point], str]) -> str:
    """Return why no point keeps all bounds, in a sentence: what no point keeps, else the nearest point.

    Args:
        found: the points, none of which keeps all bounds for sure.
        named: says a point in words.
    """
    alone = [
        column for column in zip(*(one.held for one in found), strict=True) if not any(_kept(held) for held in column)
    ]
    if alone:
        return f"no point surely keeps every bound: {'; '.join(_best_at(column, found, named) for column in alone)}."
    nearest = min(found, key=lambda one: [max(map(relative_miss, one.held)), sum(map(relative_miss, one.held))])
    left = "; ".join(_state(held) for held in nearest.held if not _kept(held))
    return (
        "no point surely keeps all bounds together, though each bound is kept by some point; of the nearest, "
        f"{named(nearest.summary.point)}, the {left}."
    )


def _kept(held: Held) -> bool:
    return held.fit is Fit.KEPT


def _best_at(column: Sequence[Held], found: Sequence[Candidate], named: Callable[[Point], str]) -> str:
    """Return a bound that no point keeps, and the point that comes nearest to it."""
    bound = column[0].bound
    measured = [
        (relative_miss(held), overshoot(held.figure.value, bound), place)
        for place, held in enumerate(column)
        if held.figure is not None
    ]
    if not measured:
        return f"{bound.words}: no usable run has that figure"
    place = min(measured)[-1]
    return f"{_state(column[place])}; the nearest is {named(found[place].summary.point)}"


def _state(held: Held) -> str:
    """Return a bound that is not kept, by how much it is missed, or what would settle whether it is."""
    bound, figure = held.bound, held.figure
    if figure is None:
        return f"{bound.words} has no figure"
    unit = METRICS[figure.name].unit
    value = f"{_number(figure.value)} {unit}"
    if figure.low is not None and figure.high is not None:
        value += f", 95 % CI {_number(figure.low)}–{_number(figure.high)} {unit}"
    if held.fit is Fit.MISSED:
        return f"{bound.words} is missed by {_number(overshoot(figure.value, bound))} {unit} ({value})"
    settled = "no number of repeats would settle it"
    if held.repeats is not None:
        settled = f"about {held.repeats} repeats may settle it"
    return f"{bound.words} is open ({value}): {settled}"


def _number(value: float) -> str:
    return f"{value:.{significant_decimals(value, 3)}f}"
