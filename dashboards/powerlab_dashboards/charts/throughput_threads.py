"""Throughput by thread count in each power mode. Needs no power sensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, panel_title, plain
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.look import Look, error_bars
from powerlab_dashboards.charts.theme import View
from powerlab_dashboards.charts.words import no_figures, provenance_words
from powerlab_dashboards.format import count, model_label, shown

METRIC = "throughput_img_per_s"
_PANEL_PX = 220


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return one panel per model, with one line per power mode and batch size."""
    found = [(summary, metric) for summary in summaries if (metric := summary.metric(METRIC)) is not None]
    if not found:
        return NoChart(no_figures(summaries))
    theme, words = view.theme, provenance_words(summaries, METRIC)
    models = list(dict.fromkeys(summary.point.workload.model for summary, _ in found))
    threads = sorted({summary.point.threads for summary, _ in found})
    look = Look(theme, [summary for summary, _ in found])
    data = look.keys()
    legend, legend_px = legend_above([key["name"] for key in data], narrow=view.narrow)
    grid = Grid.of(len(models), narrow=view.narrow, row_px=_PANEL_PX, gap_px=96)
    margin = {"l": 64, "r": 24, "t": legend_px + 36, "b": 56}
    figure_layout = layout(
        theme, height=grid.height_px(margin), margin=margin, annotations=[], showlegend=True, hovermode="closest",
        legend=legend,
    )  # fmt: skip
    for index, model in enumerate(models):
        suffix = "" if index == 0 else str(index + 1)
        x_domain, y_domain = grid.domains(index)
        members = [entry for entry in found if entry[0].point.workload.model == model]
        data += _lines(look, members, {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"})
        figure_layout["annotations"].append(panel_title(theme, model_label(model), x=x_domain[0], y=y_domain[1]))
        figure_layout[f"xaxis{suffix}"] = axis(
            theme, "threads", domain=x_domain, anchor=f"y{suffix}", tickvals=threads, range=_range(threads)
        )
        figure_layout[f"yaxis{suffix}"] = axis(
            theme, f"throughput, img/s ({words})", domain=y_domain, anchor=f"x{suffix}", rangemode="tozero"
        )
    return {"data": data, "layout": figure_layout}


def _lines(look: Look, members: Sequence[tuple[PointSummary, Metric]], place: dict[str, str]) -> list[dict[str, Any]]:
    lines = []
    for mode, batch in look.series():
        series = sorted(
            (e for e in members if e[0].point.mode == mode and e[0].point.workload.batch_size == batch),
            key=lambda entry: entry[0].point.threads,
        )
        colour = look.colour(mode, batch)
        lines.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "name": f"{plain(mode)}, batch {batch}",
                "legendgroup": look.group(mode, batch),
                "showlegend": False,
                "x": [summary.point.threads for summary, _ in series],
                "y": [metric.value for _, metric in series],
                "error_y": error_bars([metric for _, metric in series], colour),
                "line": {"color": colour, "width": 1.5},
                "marker": {"size": 8, "color": colour, "symbol": look.symbol(mode, batch)},
                "customdata": [_hover(*entry) for entry in series],
                "hovertemplate": "%{customdata}<extra></extra>",
                **place,
            }
        )
    return lines


def _hover(summary: PointSummary, metric: Metric) -> str:
    point, text = summary.point, shown(metric)
    return (
        f"<b>{text.sentence}</b> {text.provenance}<br>{text.interval}<br>"
        f"{plain(point.mode)}, {count(point.threads, 'thread')}, batch {point.workload.batch_size}"
    )


def _range(threads: Sequence[int]) -> list[float]:
    return [0.0, threads[-1] + max(0.5, 0.05 * threads[-1])]


CHART = Chart(
    name="throughput-threads",
    title="Throughput by threads",
    caption="A line that flattens has reached the limit of the cores or the memory. Error bars are 95 % intervals.",
    build=build,
)
