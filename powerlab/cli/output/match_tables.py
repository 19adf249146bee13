"""Comparisons of points as tables and as a document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from powerlab.analysis.dimensions import varying
from powerlab.analysis.matches import Match, Side
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.sweep_table import format_figure
from powerlab.domain.quantity import METRICS
from powerlab.domain.sweep import Point

UNPAIRED = "Some points share no repeats, so their ratio includes any drift of the device between them."
CORRECTED = "Verdicts are corrected for multiple comparisons per metric (Holm, 1979)."


def show_matches(matches: Sequence[Match], heading: tuple[str, str]) -> None:
    """Print one table per metric: both figures, their ratio, and the verdict.

    Args:
        matches: the comparisons.
        heading: column headings of the first and the second point.
    """
    console = table_console()
    name_of = varying(side.point for match in matches for side in (match.one, match.other))
    for name in dict.fromkeys(match.metric for match in matches):
        kind = METRICS[name]
        console.print(f"{kind.title} ({kind.unit}, {'higher' if kind.higher_is_better else 'lower'} is better)")
        table = plain_table(heading[0], "figure", heading[1], "figure", "ratio (95 % CI)", "verdict")
        for match in matches:
            if match.metric == name:
                table.add_row(*_row(match, name_of))
        print_neatly(console, table)
        console.print()
    for sentence in _caveats(matches):
        console.print(sentence)


def _caveats(matches: Sequence[Match]) -> list[str]:
    """Return the caveats below the tables."""
    ratios = [match.ratio for match in matches if match.ratio is not None]
    said = []
    if len(matches) > len({match.metric for match in matches}):
        said.append(CORRECTED)
    if any(not ratio.paired for ratio in ratios):
        said.append(UNPAIRED)
    return said


def _row(match: Match, name_of: Callable[[Point], str]) -> tuple[str, ...]:
    cells = [text for side in (match.one, match.other) for text in (name_of(side.point), figure_words(side))]
    if match.ratio is None:
        return (*cells, match.reason, "")
    return (*cells, ratio_words(match.ratio), verdict_words(match.ratio, claimed=match.claimed))


def figure_words(side: Side) -> str:
    """Return a figure with its provenance."""
    if side.metric is None:
        return format_figure(None)
    return f"{format_figure(side.metric)} {side.metric.provenance}"


def match_document(match: Match) -> dict[str, Any]:
    """Return a comparison as JSON-compatible values, without its runs."""
    sides = {
        title: {
            "sweep_id": side.runs[0].sweep_id,
            "point_id": side.point.id,
            "point": side.point,
            "figure": side.metric,
        }
        for title, side in (("one", match.one), ("other", match.other))
    }
    found: dict[str, Any] = msgspec.to_builtins(
        {
            "metric": match.metric,
            **sides,
            "ratio": match.ratio,
            "claimed": match.claimed,
            "statement": match.reason if match.ratio is None else verdict_words(match.ratio, claimed=match.claimed),
        }
    )
    return found
