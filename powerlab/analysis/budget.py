"""An uncertainty budget for people: a table of its lines, and the main uncertainty in words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from powerlab.domain.budget import IDLE, IDLE_PREFIX, REPEATS, TOGETHER, Share, combined, of_metric, shares
from powerlab.domain.quantity import METRICS
from powerlab.domain.run import Contribution, EffectKind

SHOWN: Mapping[str, str] = {
    "power_w": "Power",
    "energy_per_image_j": "Energy per image",
    "idle_power_w": "Idle power",
    "energy_above_idle_per_image_j": "Above idle",
}
"""The figures of a table with their headings. Efficiency, an inverse, has the shares of the energy per image."""
LEAST_PERCENT = 0.1
"""Smaller shares are left out of tables."""
RULE = (
    f"Shares below {LEAST_PERCENT:g} % are left out. What the rails of one source have in common "
    f"({', '.join(sorted(TOGETHER))}) is added; everything else is combined as the root of the sum of squares. "
    "Efficiency has the shares of the energy per image."
)
"""How the lines of every table become an interval."""

_WORDS = {
    "gain": "sensor gain",
    "quantisation": "quantisation",
    "rounding": "rounding of the other readings",
    "offset": "sensor offset",
    "sampling": "power between samples",
    "in-step": "parts of a query that a part-time sensor never saw",
    "edge": "window edges between samples",
    "clock": "clock of another device",
    "lag": "sensor lag",
    "gap": "gaps in the samples",
    "drift": "drift between the idle baselines",
    "scatter": "scatter between the repeats",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A row's part of one figure's uncertainty: a standard uncertainty in the figure's unit, and its share."""

    standard_uncertainty: float
    percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One effect in every figure it is part of.

    Attributes:
        origin: a rail's key, a source, ``idle`` or ``repeats``.
        effect: in words.
        kind: how it was found.
        cells: by the metric's name.
    """

    origin: str
    effect: str
    kind: EffectKind
    cells: Mapping[str, Cell]

    @property
    def most_percent(self) -> float:
        """Its largest share."""
        return max(cell.percent for cell in self.cells.values())


def effect_in_words(effect: str) -> str:
    """Return an effect in words; one that nobody named speaks for itself."""
    bare = effect.removeprefix(IDLE_PREFIX)
    return f"{_WORDS.get(bare, bare)}{', idle' * (bare != effect)}"


def rows_by_rail(lines: Sequence[Contribution], metrics: Iterable[str] = SHOWN) -> tuple[Row, ...]:
    """Return the lines of several figures as one table, a row a rail and effect, the largest share first."""
    return _rows(lines, metrics, lambda origin: origin)


def rows_by_source(lines: Sequence[Contribution], metrics: Iterable[str] = SHOWN) -> tuple[Row, ...]:
    """Return the same table with the rails of a source put together."""
    rails: dict[str, set[str]] = {}
    for line in lines:
        rails.setdefault(_source(line.origin), set()).add(line.origin)
    return _rows(lines, metrics, lambda origin: _whose(rails[_source(origin)]))


def _source(origin: str) -> str:
    return origin.partition(":")[0]


def _whose(rails: set[str]) -> str:
    """Return ``rapl:package-0`` for a source's only rail, else ``ina3221, 6 rails``."""
    return next(iter(rails)) if len(rails) == 1 else f"{_source(min(rails))}, {len(rails)} rails"


def _rows(lines: Sequence[Contribution], metrics: Iterable[str], name: Callable[[str], str]) -> tuple[Row, ...]:
    cells: dict[tuple[str, str, EffectKind], dict[str, Cell]] = {}
    for metric in metrics:
        together: dict[tuple[str, str, EffectKind], list[Share]] = {}
        for share in shares(lines, metric):
            row = (name(share.line.origin), share.line.effect, share.line.kind)
            together.setdefault(row, []).append(share)
        for row, found in together.items():
            percent = math.fsum(share.percent for share in found)
            if percent >= LEAST_PERCENT:
                uncertainty = combined(share.line for share in found)
                cells.setdefault(row, {})[metric] = Cell(standard_uncertainty=uncertainty, percent=percent)
    made = (
        Row(origin=origin, effect=effect_in_words(effect), kind=kind, cells=by_metric)
        for (origin, effect, kind), by_metric in cells.items()
    )
    return tuple(sorted(made, key=lambda row: -row.most_percent))


def limit(lines: Sequence[Contribution], metric: str) -> str:
    """Return the largest contribution to a figure's uncertainty in words; empty without a budget."""
    found = rows_by_source(of_metric(lines, metric), [metric])
    if not found:
        return ""
    row = found[0]
    whose = "" if row.origin in {IDLE, REPEATS} else f"{row.origin}, "
    return f"{METRICS[metric].title}: main uncertainty: {row.effect} ({whose}{row.most_percent:.0f} % of the variance)."
