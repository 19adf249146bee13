"""The uncertainty budget of a run: a window's energy by rail and effect, and the figures derived from it.

How lines are combined is :mod:`powerlab.domain.budget`'s rule.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from powerlab.domain.budget import IDLE, IDLE_PREFIX
from powerlab.domain.run import Contribution, EffectKind

_CONSTANT = frozenset({"gain", "offset"})
"""The same for every reading of a rail: of a difference of two readings, it is the difference's."""
_LASTING = frozenset({"gain", "offset", "quantisation", "lag"})
"""Perhaps the same in both idle baselines: their mean has it undiminished."""
_OBSERVED = frozenset({"sampling"})
"""Found from the scatter of observations; everything else is a bound that somebody states."""

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one effect makes unknown of one rail's energy.

    Attributes:
        origin: the rail's key, or ``idle``.
        effect: what it is.
        standard_uncertainty: in J.
    """

    origin: str
    effect: str
    standard_uncertainty: float


def scaled(parts: Iterable[Part], factor: float) -> tuple[Part, ...]:
    """Return the parts of so many times the energy."""
    return tuple(replace(part, standard_uncertainty=part.standard_uncertainty * factor) for part in parts)


def lines_of(metric: str, parts: Iterable[Part], factor: float) -> Iterator[Contribution]:
    """Yield the lines of a figure, which are the parts of its energy times a factor; what is 0 is no line."""
    for part in parts:
        if part.standard_uncertainty:
            yield Contribution(
                metric=metric,
                origin=part.origin,
                effect=part.effect,
                kind=EffectKind.A if part.effect.removeprefix(IDLE_PREFIX) in _OBSERVED else EffectKind.B,
                standard_uncertainty=part.standard_uncertainty * factor,
            )


def above(load: Iterable[Part], idle: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of the energy above idle, from those of both energies over equally long times.

    One sensor reads both, so what is the same for all its readings acts on the difference alone.
    """
    left = {(part.origin, part.effect): part for part in idle}
    found = []
    for part in load:
        if part.effect in _CONSTANT and (same := left.pop((part.origin, part.effect), None)) is not None:
            found.append(replace(part, standard_uncertainty=_difference(part, same)))
        else:
            found.append(part)
    found += [
        part if part.origin == IDLE else replace(part, effect=f"{IDLE_PREFIX}{part.effect}") for part in left.values()
    ]
    return tuple(found)


def _difference(one: Part, other: Part) -> float:
    """Return how far both differ; what rounding alone leaves of two equal ones is nothing."""
    if math.isclose(one.standard_uncertainty, other.standard_uncertainty, rel_tol=_ROUNDING):
        return 0.0
    return abs(one.standard_uncertainty - other.standard_uncertainty)


def mean_of(one: Iterable[Part], other: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts of the mean of two energies of the same rails over equally long times."""
    found: dict[tuple[str, str], list[Part]] = {}
    for part in (*one, *other):
        found.setdefault((part.origin, part.effect), []).append(part)
    return tuple(replace(both[0], standard_uncertainty=_mean(both)) for both in found.values())


def _mean(both: list[Part]) -> float:
    uncertainties = [part.standard_uncertainty for part in both]
    return (math.fsum(uncertainties) if both[0].effect in _LASTING else math.hypot(*uncertainties)) / 2
