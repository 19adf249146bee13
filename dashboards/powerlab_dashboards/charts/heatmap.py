"""Any figure over any two dimensions that varied, one small multiple for each value of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from powerlab.analysis.dimensions import Dimension, values_of, varied
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS
from powerlab_dashboards.charts.axes import axes_of
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, panel_title, plain
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.heatmap_cells import Cells, Space, cell_notes, heatmap_trace, outline
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.charts.words import no_metric, provenance_words
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.places import value_words

DEFAULTS = ("efficiency_img_per_s_per_w", "throughput_img_per_s", "latency_p50_ms")
"""What it shows unless a reader chooses: the first of these that the sweep has."""
MOST_PANELS = 24
_NARROW_PX = 340
_WIDE_PX = 1280
_LEGEND_SHIFT_PX = -46
_MARGIN_PX = {"l": 16, "r": 16, "t": 36, "b": 84}


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return the heatmaps; each model's colours are spread over the range it has. A cell without a figure says why.

    A panel has the columns in which one of its points lies: a GPU has no number of threads, and a processor has one.
    """
    metric = metric_of(summaries, view.choice.metric)
    if all(summary.metric(metric) is None for summary in summaries):
        return NoChart(no_metric(summaries, metric))
    points = [summary.point for summary in summaries]
    x, y = axes_of(points, view.choice.x, view.choice.y)
    if x is None:
        return NoChart(_("Only one point was measured, so there is nothing to compare."))
    columns, rows = values_of(x, points), values_of(y, points) if y else [""]
    panels = _panels(summaries, x, y)
    drawn = dict(list(panels.items())[:MOST_PANELS])
    columns_of_panels = Grid.of(len(drawn), narrow=view.narrow, row_px=1, gap_px=1).columns
    space = Space(
        columns=columns, rows=rows, cell_px=(_NARROW_PX if view.narrow else _WIDE_PX) / columns_of_panels / len(columns)
    )
    grid = Grid.of(len(drawn), narrow=view.narrow, row_px=space.row_px * len(rows), gap_px=92)
    theme = view.theme
    legend = _legend(view, _words(summaries, metric), len(panels) - len(drawn), spread=space.spreads)
    figure_layout = layout(theme, height=grid.height_px(_MARGIN_PX), margin=_MARGIN_PX, annotations=[legend], shapes=[])
    by_model = _by_model(summaries)
    for index, alike in enumerate(by_model.values()):
        figure_layout[f"coloraxis{_suffix(index)}"] = _colours(theme, alike, metric, view)
    data: list[dict[str, Any]] = []
    for index, (title, members) in enumerate(drawn.items()):
        suffix = _suffix(index)
        (left, right), y_domain = grid.domains(index)
        cells: Cells = {(x.read(one.point), y.read(one.point) if y else ""): one for one in members}
        own_space = replace(space, columns=[column for column in columns if any(at == column for at, _row in cells)])
        x_domain = [left, left + (right - left) * len(own_space.columns) / len(columns)]
        own = _suffix(list(by_model).index(members[0].point.workload.model))
        place = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "coloraxis": f"coloraxis{own}"}
        data.append(heatmap_trace(theme, cells, own_space, metric, view.choice) | place)
        figure_layout["annotations"] += [
            *([panel_title(theme, title, x=x_domain[0], y=y_domain[1])] if title else []),
            *cell_notes(cells, own_space, metric, view.choice, suffix=suffix, colour=theme.muted),
        ]
        best = _best(by_model[members[0].point.workload.model], metric, view)
        figure_layout["shapes"] += outline(theme, cells, own_space, metric, suffix, best=best)
        figure_layout[f"xaxis{suffix}"] = axis(
            theme, _(x.title), domain=x_domain, anchor=f"y{suffix}", showgrid=False, fixedrange=True,
            tickvals=list(range(len(own_space.columns))),
            ticktext=[plain(value or _("default")) for value in own_space.columns],
            range=[-0.5, len(own_space.columns) - 0.5], ticks="",
        )  # fmt: skip
        figure_layout[f"yaxis{suffix}"] = axis(
            theme, _(y.title) if y and y.numeric and index % grid.columns == 0 else "", domain=y_domain,
            anchor=f"x{suffix}", showgrid=False, fixedrange=True,
            tickvals=list(range(len(rows))), ticktext=[plain(value or (_("default") if y else "")) for value in rows],
            range=[len(rows) - 0.5, -0.5], ticks="", ticklabelstandoff=6, showticklabels=index % grid.columns == 0,
        )  # fmt: skip
    return {"data": data, "layout": figure_layout}


def metric_of(summaries: Sequence[PointSummary], asked: str) -> str:
    """Return the metric to show: the one asked for if there is such a metric, else the first default with figures."""
    if asked in METRICS:
        return asked
    return next((name for name in DEFAULTS if any(summary.metric(name) for summary in summaries)), DEFAULTS[0])


def _panels(summaries: Sequence[PointSummary], x: Dimension, y: Dimension | None) -> dict[str, list[PointSummary]]:
    """Return the small multiples by what their points have in common, in words."""
    others = [one for one in varied(summary.point for summary in summaries) if one not in {x, y}]
    panels: dict[str, list[PointSummary]] = {}
    for summary in summaries:
        panels.setdefault(", ".join(value_words(one, summary.point) for one in others), []).append(summary)
    return panels


def _by_model(summaries: Sequence[PointSummary]) -> dict[str, list[PointSummary]]:
    models: dict[str, list[PointSummary]] = {}
    for summary in summaries:
        models.setdefault(summary.point.workload.model, []).append(summary)
    return models


def _suffix(index: int) -> str:
    """Return what Plotly puts behind an axis's name: nothing for the first, 2 for the second."""
    return "" if index == 0 else str(index + 1)


def _colours(theme: Theme, alike: Sequence[PointSummary], metric: str, view: View) -> dict[str, Any]:
    """Return a model's colour axis from its lowest to its highest figure; the better, the stronger the colour."""
    values = _free(alike, metric, view) or [0.0]
    low, high = min(values), max(values)
    return {
        "colorscale": theme.colour_scale(),
        "reversescale": not METRICS[metric].higher_is_better,
        "showscale": False,
        "cmin": low,
        "cmax": high if high > low else low + 1.0,
    }


def _best(alike: Sequence[PointSummary], metric: str, view: View) -> float | None:
    values = _free(alike, metric, view)
    if not values:
        return None
    return max(values) if METRICS[metric].higher_is_better else min(values)


def _free(alike: Sequence[PointSummary], metric: str, view: View) -> list[float]:
    """Return the figures of the points that the reader's bounds allow."""
    return [
        figure.value
        for summary in alike
        if summary.point.id not in view.choice.barred and (figure := summary.metric(metric)) is not None
    ]


def _words(summaries: Sequence[PointSummary], metric: str) -> str:
    kind = METRICS[metric]
    return f"{_(kind.title)}, {kind.unit}, {provenance_words(summaries, metric)}"


def _legend(view: View, words: str, left_out: int, *, spread: bool) -> dict[str, Any]:
    gap = "<br>" if view.narrow else " "
    halves = _("± half-width of the 95 % interval")  # not within the next line: words in an f-string are not found
    text = words + (f",{gap}{halves}" if spread else "")
    if left_out > 0:
        text += f".{gap}" + _(
            "%(count)s more panels are not drawn; choose other dimensions to see them", count=left_out
        )
    return {
        "text": text,
        "x": 0, "y": 0, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top",
        "yshift": _LEGEND_SHIFT_PX, "align": "left", "showarrow": False,
        "font": {"size": 12, "color": view.theme.muted},
    }  # fmt: skip


CHART = Chart(
    name="heatmap",
    title=mark("Heatmap"),
    caption=mark(
        "The stronger the colour, the better; colours span the range that each model has, and its best cell is "
        "outlined. A click on a cell opens the runs of that point."
    ),
    build=build,
)
