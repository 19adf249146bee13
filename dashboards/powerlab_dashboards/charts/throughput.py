"""Throughput over the threads, or over another number that varied. Needs no power sensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powerlab.analysis.dimensions import Dimension, varied
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab_dashboards.charts.axes import MODEL, by_work, numeric_axis
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, panel_title, plain
from powerlab_dashboards.charts.choice import Choice
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.look import Look, error_bars
from powerlab_dashboards.charts.theme import View
from powerlab_dashboards.charts.words import no_figures, provenance_words
from powerlab_dashboards.format import shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.places import point_words

METRIC = "throughput_img_per_s"
_PANEL_PX = 240


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return one panel per work, with one line for each series; nothing if no number varied."""
    found = [summary for summary in summaries if summary.metric(METRIC) is not None]
    if not found:
        return NoChart(no_figures(summaries))
    over = numeric_axis([summary.point for summary in found], view.choice.x)
    if over is None:
        return NoChart(_nothing_to_draw_over(found))
    theme, words = view.theme, provenance_words(summaries, METRIC)
    look = Look(theme, found, apart=(MODEL, over.title))
    data = look.keys(found)
    legend, legend_px = legend_above([key["name"] for key in data], narrow=view.narrow)
    panels = by_work(found)
    grid = Grid.of(len(panels), narrow=view.narrow, row_px=_PANEL_PX, gap_px=96)
    margin = {"l": 64, "r": 24, "t": legend_px + 36, "b": 56}
    figure_layout = layout(
        theme, height=grid.height_px(margin), margin=margin, annotations=[], showlegend=True, hovermode="closest",
        legend=legend,
    )  # fmt: skip
    values = sorted({_number(over, summary) for summary in found})
    for index, (work, members) in enumerate(panels.items()):
        suffix = "" if index == 0 else str(index + 1)
        x_domain, y_domain = grid.domains(index)
        data += _lines(look, over, members, view.choice, {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
        figure_layout["annotations"].append(panel_title(theme, work, x=x_domain[0], y=y_domain[1]))
        figure_layout[f"xaxis{suffix}"] = axis(
            theme, _(over.title), domain=x_domain, anchor=f"y{suffix}", tickvals=values, range=_range(values)
        )
        figure_layout[f"yaxis{suffix}"] = axis(
            theme, f"{_('Throughput')}, img/s ({words})", domain=y_domain, anchor=f"x{suffix}", rangemode="tozero"
        )
    return {"data": data, "layout": figure_layout}


def _nothing_to_draw_over(found: Sequence[PointSummary]) -> str:
    titles = [_(dimension.title) for dimension in varied(summary.point for summary in found)]
    if not titles:
        return _("Only one point was measured, so there is nothing to draw a line over.")
    return _("No number varied that a line could be drawn over, only: %(dimensions)s.", dimensions=", ".join(titles))


def _lines(
    look: Look, over: Dimension, members: Sequence[PointSummary], choice: Choice, place: dict[str, str]
) -> list[dict[str, Any]]:
    lines = []
    for series in look.series(members):
        series.sort(key=lambda summary: _number(over, summary))
        first = series[0].point
        metrics = [metric for summary in series if (metric := summary.metric(METRIC)) is not None]
        colour = look.colour(first)
        barred = [summary.point.id in choice.barred for summary in series]
        lines.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": look.name(first),
                "legendgroup": look.group(first),
                "showlegend": False,
                "x": [_number(over, summary) for summary in series],
                "y": [metric.value for metric in metrics],
                "error_y": error_bars(metrics, colour),
                "line": {"color": colour, "width": 1.5},
                "marker": {
                    "size": 8,
                    "color": [look.theme.line if one else colour for one in barred],
                    "symbol": look.symbol(first),
                },
                "customdata": [
                    [_hover(summary, metric), choice.address(summary.point.id)]
                    for summary, metric in zip(series, metrics, strict=True)
                ],
                "hovertemplate": "%{customdata[0]}<extra></extra>",
                **place,
            }
        )
    return lines


def _hover(summary: PointSummary, metric: Metric) -> str:
    text = shown(metric)
    return f"<b>{text.sentence}</b> {_(text.provenance)}<br>{text.interval}<br>{plain(point_words(summary.point))}"


def _number(dimension: Dimension, summary: PointSummary) -> float:
    return float(dimension.read(summary.point) or 0)


def _range(values: Sequence[float]) -> list[float]:
    return [0.0, values[-1] + max(0.5, 0.05 * values[-1])]


CHART = Chart(
    name="throughput",
    title=mark("Throughput"),
    caption=mark(
        "Over the threads, or another number that varied. A line that flattens has reached the limit of the cores or "
        "the memory. Error bars are 95 % intervals."
    ),
    build=build,
)
