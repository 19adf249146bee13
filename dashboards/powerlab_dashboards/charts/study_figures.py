"""Published figures beside ours: a bar for each system, named at its foot, published ones hollow."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab.reports.text import figure_text
from powerlab.studies.study import Study
from powerlab.studies.table import Row
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.look import error_bars
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

MOST_OWN = 16
"""Our own rows in a chart, at most; the table has all of them."""
_ROW_PX, _NARROW_ROW_PX = 34, 46
_GAP = 0.04
_STACK_GAP_PX = 96
_NAME_WIDTH, _NARROW_NAME_WIDTH = 44, 24
_PROVENANCES = (Provenance.PUBLISHED, Provenance.MEASURED, Provenance.ESTIMATED, Provenance.SIMULATED)


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyCase:
    """One part of a study's table."""

    study: Study
    rows: Sequence[Row]


def build(case: StudyCase, view: View) -> Figure | NoChart:
    """Return a panel for each metric that some row has; all panels have the same systems in the same order."""
    rows = _chosen(case)
    places = [place for place in range(len(case.study.metrics)) if any(row.figures[place] is not None for row in rows)]
    if not places:
        return NoChart(_("There are no figures to draw yet."))
    theme = view.theme
    names = [_name(row, view) for row in rows]
    there = [
        one for one in _PROVENANCES if any(one is metric.provenance for row in rows for metric in row.figures if metric)
    ]
    keys = [_key(one, theme) for one in there]
    legend, legend_px = legend_above([key["name"] for key in keys], narrow=view.narrow)
    margin = {"l": 8, "r": 28, "t": legend_px + 12, "b": 56}
    panel_px = (_NARROW_ROW_PX if view.narrow else _ROW_PX) * len(rows) + 8
    inner_px = panel_px * len(places) + _STACK_GAP_PX * (len(places) - 1) if view.narrow else panel_px
    figure: dict[str, Any] = layout(
        theme, height=inner_px + margin["t"] + margin["b"], margin=margin, showlegend=True, legend=legend,
        hovermode="closest", barmode="overlay", bargap=0.35,
    )  # fmt: skip
    data: list[dict[str, Any]] = list(keys)
    for number, place in enumerate(places):
        suffix = "" if number == 0 else str(number + 1)
        kind = METRICS[case.study.metrics[place]]
        data += _bars(rows, place, theme, {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
        x_domain, y_domain = _domains(number, len(places), inner_px, panel_px, narrow=view.narrow)
        figure[f"xaxis{suffix}"] = axis(
            theme, f"{_(kind.title)}, {kind.unit}", domain=x_domain, anchor=f"y{suffix}", rangemode="tozero", nticks=5
        )
        named = number == 0 or view.narrow
        figure[f"yaxis{suffix}"] = axis(
            theme, "", domain=y_domain, anchor=f"x{suffix}", range=[len(rows) - 0.5, -0.5], showgrid=False,
            tickmode="array", tickvals=list(range(len(rows))), ticktext=names if named else [""] * len(rows),
            tickfont={"size": 12, "color": theme.ink},
        )  # fmt: skip
    return {"data": data, "layout": figure}


def _chosen(case: StudyCase) -> list[Row]:
    """Return the published rows, and of ours the best by the first metric that they have, best first."""
    published = [row for row in case.rows if not row.sweep_id]
    own = [row for row in case.rows if row.sweep_id and any(row.figures)]
    place = next((place for place in range(len(case.study.metrics)) if any(row.figures[place] for row in own)), 0)
    sign = -1.0 if METRICS[case.study.metrics[place]].higher_is_better else 1.0

    def rank(row: Row) -> float:
        metric = row.figures[place]
        return float("inf") if metric is None else sign * metric.value

    return [*published, *sorted(own, key=rank)[:MOST_OWN]]


def _bars(rows: Sequence[Row], place: int, theme: Theme, axes: dict[str, str]) -> list[dict[str, Any]]:
    found: dict[Provenance, list[tuple[int, Row, Metric]]] = {}
    for number, row in enumerate(rows):
        metric = row.figures[place]
        if metric is not None:
            found.setdefault(metric.provenance, []).append((number, row, metric))
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": _(provenance.value),
            "legendgroup": provenance.value,
            "showlegend": False,
            "x": [metric.value for _number, _row, metric in members],
            "y": [number for number, _row, _metric in members],
            "width": 0.6,
            "error_x": error_bars([metric for _number, _row, metric in members], theme.ink),
            "marker": _look(provenance, theme),
            "hovertext": [
                f"<b>{plain(row.system)}</b><br>{plain(row.software)}<br>{plain(row.conditions)}<br>"
                f"{figure_text(metric).plain} {METRICS[metric.name].unit} {_(provenance.value)}"
                for _number, row, metric in members
            ],
            "hoverinfo": "text",
            **axes,
        }
        for provenance, members in found.items()
    ]


def _look(provenance: Provenance, theme: Theme) -> dict[str, Any]:
    """Return a hollow bar for published figures, a full one for measured ones, and a pale one for the others."""
    number = 1 if provenance is Provenance.PUBLISHED else 0
    filled = {Provenance.MEASURED: theme.colour(0), Provenance.PUBLISHED: theme.surface}
    return {
        "color": filled.get(provenance, theme.sequential[2]),
        "line": {"color": theme.colour(number), "width": 1.5},
    }


def _key(provenance: Provenance, theme: Theme) -> dict[str, Any]:
    return {"type": "bar", "orientation": "h", "x": [None], "y": [None], "name": _(provenance.value),
            "legendgroup": provenance.value, "marker": _look(provenance, theme)}  # fmt: skip


def _name(row: Row, view: View) -> str:
    """Return the system and its software, and below it the conditions, cut where they are long."""
    width = _NARROW_NAME_WIDTH if view.narrow else _NAME_WIDTH
    software = row.software.removeprefix("powerlab, ")
    conditions = row.conditions.partition(";")[0]
    whole = [software, row.system] if view.narrow else [row.system, software]
    first = textwrap.shorten(", ".join(one for one in whole if one != "–"), width, placeholder="…")
    second = _ending(conditions if conditions != "–" else "", width)
    return f"{plain(first)}<br><span style='font-size:11px'>{plain(second)}</span>" if second else plain(first)


def _ending(conditions: str, width: int) -> str:
    """Return as many of the last conditions as fit: rows differ in these."""
    parts = conditions.split(", ")
    while len(parts) > 1 and len(", ".join(parts)) > width:
        parts = parts[1:]
    return textwrap.shorten(", ".join(parts), width, placeholder="…")


def _domains(number: int, count: int, inner_px: int, panel_px: int, *, narrow: bool) -> tuple[list[float], list[float]]:
    if narrow:
        top = 1 - number * (panel_px + _STACK_GAP_PX) / inner_px
        return [0, 1], [max(0.0, top - panel_px / inner_px), top]
    width = (1 - _GAP * (count - 1)) / count
    left = number * (width + _GAP)
    return [left, min(1.0, left + width)], [0, 1]


CHART = Chart(
    name="study-figures",
    title=mark("Published figures and ours"),
    caption=mark(
        "A bar for each system. Hollow bars are published figures, which have no intervals; ours have 95 % intervals. "
        "They stand side by side and are never combined."
    ),
    build=build,
)
