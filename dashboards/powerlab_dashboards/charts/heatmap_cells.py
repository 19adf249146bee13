"""The cells of one heatmap: colours, printed figures, and a reason where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab_dashboards.charts.base import plain
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.theme import Theme
from powerlab_dashboards.charts.words import why_missing
from powerlab_dashboards.format import count, shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.places import point_words

Cells = Mapping[tuple[str, str], PointSummary]
"""A panel's summaries by their values in the horizontal and the vertical dimension."""
_ROW_PX = 52
_LOW_ROW_PX = 30
_MANY_ROWS = 10
_ROOM_FOR_SPREAD_PX = 64
_ROOM_FOR_VALUE_PX = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Where the cells of every panel are.

    Attributes:
        columns: values of the horizontal dimension.
        rows: values of the vertical one.
        cell_px: about how wide a cell is.
    """

    columns: Sequence[str]
    rows: Sequence[str]
    cell_px: float

    @property
    def spreads(self) -> bool:
        """Whether there is room for intervals below the figures."""
        return self.cell_px >= _ROOM_FOR_SPREAD_PX and len(self.rows) <= _MANY_ROWS

    @property
    def row_px(self) -> int:
        """How high a row is."""
        return _ROW_PX if self.spreads else _LOW_ROW_PX

    @property
    def values(self) -> bool:
        """Whether there is room for figures."""
        return self.cell_px >= _ROOM_FOR_VALUE_PX


def heatmap_trace(theme: Theme, cells: Cells, space: Space, metric: str, choice: Choice) -> dict[str, Any]:
    """Return a panel's trace; a point that the reader's bounds exclude has no colour."""
    values: list[list[float | None]] = []
    texts: list[list[str]] = []
    custom: list[list[list[str]]] = []
    for row in space.rows:
        found = [cells.get((column, row)) for column in space.columns]
        values.append([_value(summary, metric, choice) for summary in found])
        texts.append(
            [_text(summary, metric, space) if _value(summary, metric, choice) is not None else "" for summary in found]
        )
        custom.append([_custom(summary, metric, choice) for summary in found])
    return {
        "type": "heatmap",
        "x": list(range(len(space.columns))),
        "y": list(range(len(space.rows))),
        "z": values,
        "text": texts,
        "texttemplate": "%{text}",
        "textfont": {"size": 12, "color": theme.ink},
        "customdata": custom,
        "hovertemplate": "%{customdata[0]}<extra></extra>",
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
    }  # fmt: skip


def cell_notes(
    cells: Cells, space: Space, metric: str, choice: Choice, *, suffix: str, colour: str
) -> list[dict[str, Any]]:
    """Return what stands in the cells without colour: why there is no figure, or the figure that is out of bounds."""
    notes = []
    for place, row in enumerate(space.rows):
        for column, value in enumerate(space.columns):
            summary = cells.get((value, row))
            if _value(summary, metric, choice) is not None:
                continue
            text = why_missing(summary, metric) or f"({_text(summary, metric, space)})"
            notes.append(
                {"text": text, "x": column, "y": place, "xref": f"x{suffix}", "yref": f"y{suffix}",
                 "showarrow": False, "font": {"size": 11, "color": colour}}
            )  # fmt: skip
    return notes


def outline(
    theme: Theme, cells: Cells, space: Space, metric: str, suffix: str, *, best: float | None
) -> list[dict[str, Any]]:
    """Return a frame around the cells that have the best figure."""
    return [
        {
            "type": "rect", "xref": f"x{suffix}", "yref": f"y{suffix}", "line": {"color": theme.ink, "width": 1.5},
            "x0": column - 0.5, "x1": column + 0.5, "y0": place - 0.5, "y1": place + 0.5,
        }
        for place, row in enumerate(space.rows)
        for column, value in enumerate(space.columns)
        if (summary := cells.get((value, row))) and (found := summary.metric(metric)) and found.value == best
    ]  # fmt: skip


def _value(summary: PointSummary | None, metric: str, choice: Choice) -> float | None:
    if summary is None or summary.point.id in choice.barred:
        return None
    found = summary.metric(metric)
    return None if found is None else found.value


def _text(summary: PointSummary | None, metric: str, space: Space) -> str:
    found = summary.metric(metric) if summary else None
    if found is None or not space.values:
        return ""
    text = shown(found)
    return f"<b>{text.value}</b><br>{text.spread}" if space.spreads else text.value


def _custom(summary: PointSummary | None, metric: str, choice: Choice) -> list[str]:
    """Return what a cell says when pointed at, and the address of its runs."""
    found = summary.metric(metric) if summary else None
    if summary is None or found is None:
        return ["", ""]
    text, why = shown(found), choice.barred.get(summary.point.id)
    said = [
        f"<b>{text.sentence}</b> {_(text.provenance)}",
        text.interval,
        plain(point_words(summary.point)),
        _("%(valid)s of %(runs)s valid", valid=summary.valid_count, runs=count(summary.run_count, "run")),
        *([_("outside the bounds: %(why)s", why=plain(why))] if why else []),
    ]
    return ["<br>".join(said), choice.address(summary.point.id)]
