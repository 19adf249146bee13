"""The chart interface and the layout shared by all charts."""

from __future__ import annotations

import html
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from powerlab_dashboards.charts.theme import Theme, View

Figure = dict[str, Any]
"""A Plotly figure as JSON: ``{"data": [...], "layout": {...}}``."""

DataT = TypeVar("DataT")

_NARROW_ENTRY = 42
"""Characters of a legend's entry that a phone shows."""


@dataclass(frozen=True, slots=True)
class NoChart:
    """There is nothing to draw; ``reason`` tells the reader why in one sentence."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart(Generic[DataT]):
    """One chart.

    Attributes:
        name: part of the chart's address.
        title: its heading.
        caption: how to read it, in one or two sentences.
        build: returns the figure, or why there is none.
    """

    name: str
    title: str
    caption: str
    build: Callable[[DataT, View], Figure | NoChart]


def plain(text: str) -> str:
    """Escape ``text`` for Plotly, which interprets a subset of HTML in every label."""
    return html.escape(text, quote=False)


def layout(theme: Theme, *, height: int, **more: Any) -> dict[str, Any]:
    """Return the base layout of all charts: transparent, in the page's font, undecorated."""
    base: dict[str, Any] = {
        "height": height,
        "autosize": True,
        "margin": {"l": 64, "r": 16, "t": 32, "b": 56},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": theme.font, "size": 13, "color": theme.ink},
        "hoverlabel": {
            "bgcolor": theme.surface,
            "bordercolor": theme.line,
            "font": {"family": theme.font, "size": 13, "color": theme.ink},
            "align": "left",
        },
        "legend": {"orientation": "h", "x": 0, "y": 1, "xanchor": "left", "yanchor": "bottom"},
        "showlegend": False,
    }
    return base | more


def axis(theme: Theme, title: str, **more: Any) -> dict[str, Any]:
    """Return an axis in the theme's colours; ``title`` names the quantity and its unit."""
    base: dict[str, Any] = {
        "title": {"text": title, "font": {"color": theme.muted, "size": 12}, "standoff": 8},
        "tickfont": {"color": theme.muted, "size": 12},
        "gridcolor": theme.grid,
        "linecolor": theme.line,
        "zerolinecolor": theme.line,
        "zeroline": False,
        "showline": False,
        "automargin": True,
    }
    return base | more


def panel_title(theme: Theme, text: str, *, x: float, y: float) -> dict[str, Any]:
    """Return the heading of one small multiple; ``x`` and ``y`` are the paper coordinates of its top left corner."""
    return {
        "text": f"<b>{plain(text)}</b>",
        "x": x,
        "y": y,
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "yshift": 6,
        "showarrow": False,
        "font": {"size": 13, "color": theme.ink},
    }


def legend_above(names: Sequence[str], *, narrow: bool) -> tuple[dict[str, Any], int]:
    """Return a legend in columns above the plot, and the height in px to reserve for it in the top margin."""
    lines = [name.split("<br>") for name in names]
    entry_px = 7 * max((_characters_wide(html.unescape(line)) for own in lines for line in own), default=0) + 8
    columns = max(1, (330 if narrow else 480) // (entry_px + 40))
    legend = {
        "orientation": "h",
        "x": 0,
        "xanchor": "left",
        "y": 1,
        "yref": "container",
        "yanchor": "top",
        "entrywidth": entry_px,
        "tracegroupgap": 0,
        "font": {"size": 12},
    }
    rows = (lines[first : first + columns] for first in range(0, len(lines), columns))
    return legend, 20 * sum(max(map(len, row)) for row in rows) + 8


def folded(name: str, view: View) -> str:
    """Return a legend's entry, in several lines where a narrow screen would cut it."""
    return "<br>".join(textwrap.wrap(name, _NARROW_ENTRY, break_long_words=False)) if view.narrow else name


def _characters_wide(text: str) -> int:
    """Return the width of a text in characters; a Chinese one is as wide as two."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
