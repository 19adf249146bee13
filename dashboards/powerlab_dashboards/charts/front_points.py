"""Points of the Pareto front's scatter plot; each carries the address of its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.charts.base import plain
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.look import Look, error_bars
from powerlab_dashboards.format import count, shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.places import point_words

Placed = tuple[PointSummary, Metric, Metric]
"""A summary with its figures on the horizontal and the vertical axis."""


def point_traces(
    look: Look, members: Sequence[Placed], labels: Mapping[str, str], choice: Choice, place: dict[str, str]
) -> list[dict[str, Any]]:
    """Return the points of one panel; those that a reader's bounds exclude are grey and without intervals."""
    by_id = {entry[0].point.id: entry for entry in members}
    traces = []
    for series in look.series([entry[0] for entry in members]):
        found = [by_id[summary.point.id] for summary in series]
        free = [entry for entry in found if entry[0].point.id not in choice.barred]
        barred = [entry for entry in found if entry[0].point.id in choice.barred]
        traces += [_trace(look, free, labels, choice) | place] if free else []
        traces += [_trace(look, barred, labels, choice, grey=True) | place] if barred else []
    return traces


def _trace(
    look: Look, found: list[Placed], labels: Mapping[str, str], choice: Choice, *, grey: bool = False
) -> dict[str, Any]:
    first = found[0][0].point
    colour = look.theme.line if grey else look.colour(first)
    bars = {"error_x": error_bars([x for _, x, _ in found], colour)}
    bars |= {"error_y": error_bars([y for _, _, y in found], colour)}
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": look.name(first),
        "legendgroup": look.group(first),
        "showlegend": False,
        "x": [x.value for _, x, _ in found],
        "y": [y.value for _, _, y in found],
        **({} if grey else bars),
        "text": [labels.get(summary.point.id, "") for summary, _, _ in found],
        "textposition": "top left",
        "textfont": {"size": 11, "color": look.theme.muted},
        "cliponaxis": False,
        "marker": {
            "size": 7 if grey else 9,
            "color": colour,
            "line": {"width": 1.5, "color": colour},
            "symbol": [look.symbol(summary.point) + _hollow(x.provenance) for summary, x, _ in found],
        },
        "customdata": [[hover(*entry, choice), choice.address(entry[0].point.id)] for entry in found],
        "hovertemplate": "%{customdata[0]}<extra></extra>",
    }


def _hollow(provenance: Provenance) -> str:
    return "" if provenance is Provenance.MEASURED else "-open"


def hover(summary: PointSummary, x: Metric, y: Metric, choice: Choice) -> str:
    """Return what a point says when pointed at: where it is, its figures, and why it cannot be chosen."""
    figures = [y, x]
    efficiency = summary.metric("efficiency_img_per_s_per_w")
    figures += [efficiency] if efficiency else []
    why = choice.barred.get(summary.point.id)
    lines = [
        f"<b>{plain(point_words(summary.point))}</b>",
        *(f"{shown(figure).sentence} {_(figure.provenance.value)}" for figure in figures),
        _("%(valid)s of %(runs)s valid", valid=summary.valid_count, runs=count(summary.run_count, "run")),
        *([_("outside the bounds: %(why)s", why=plain(why))] if why else []),
    ]
    return "<br>".join(lines)
