"""Efficiency by threads and power mode, one small multiple per model and batch size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from powerlab.analysis.summary import PointSummary
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, panel_title, plain
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.charts.words import missing_power, provenance_words, why_missing
from powerlab_dashboards.format import count, model_label, shown

Cells = Mapping[tuple[str, int], PointSummary]
"""A panel's summaries by power mode and threads."""
METRIC = "efficiency_img_per_s_per_w"
_ROW_PX = 52
_LEGEND_SHIFT_PX = -46
_MARGIN_PX = {"l": 16, "r": 16, "t": 36, "b": 84}


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return the heatmaps, with one colour scale per model; a cell without a figure says why."""
    if all(summary.metric(METRIC) is None for summary in summaries):
        return NoChart(missing_power(summaries))
    panels = _panels(summaries)
    modes = list(dict.fromkeys(summary.point.mode for summary in summaries))
    threads = sorted({summary.point.threads for summary in summaries})
    grid = Grid.of(len(panels), narrow=view.narrow, row_px=_ROW_PX * len(modes), gap_px=92)
    words = provenance_words(summaries, METRIC)
    theme = view.theme
    figure_layout = layout(
        theme, height=grid.height_px(_MARGIN_PX), margin=_MARGIN_PX, annotations=[_legend(view, words)], shapes=[]
    )
    highest = _highest(summaries)
    models = list(highest)
    for index, model in enumerate(models):
        scale = {"colorscale": theme.colour_scale(), "showscale": False, "cmin": 0.0, "cmax": highest[model]}
        figure_layout[f"coloraxis{_suffix(index)}"] = scale
    data: list[dict[str, Any]] = []
    for index, ((model, batch), members) in enumerate(panels.items()):
        suffix = _suffix(index)
        x_domain, y_domain = grid.domains(index)
        cells = {(summary.point.mode, summary.point.threads): summary for summary in members}
        place = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}", "coloraxis": f"coloraxis{_suffix(models.index(model))}"}
        data.append(_heatmap(theme, cells, modes, threads) | place)
        figure_layout["annotations"] += [
            panel_title(theme, f"{model_label(model)}, batch {batch}", x=x_domain[0], y=y_domain[1]),
            *_empty_cells(cells, modes, threads, suffix, theme.muted),
        ]
        figure_layout["shapes"] += _outline(theme, cells, modes, threads, suffix, best=highest[model])
        figure_layout[f"xaxis{suffix}"] = axis(
            theme, "threads", domain=x_domain, anchor=f"y{suffix}", showgrid=False, fixedrange=True,
            tickvals=list(range(len(threads))), ticktext=[str(count) for count in threads],
            range=[-0.5, len(threads) - 0.5], ticks="",
        )  # fmt: skip
        figure_layout[f"yaxis{suffix}"] = axis(
            theme, "", domain=y_domain, anchor=f"x{suffix}", showgrid=False, fixedrange=True,
            tickvals=list(range(len(modes))), ticktext=[plain(mode) for mode in modes],
            range=[len(modes) - 0.5, -0.5], ticks="", ticklabelstandoff=6, showticklabels=index % grid.columns == 0,
        )  # fmt: skip
    return {"data": data, "layout": figure_layout}


def _panels(summaries: Sequence[PointSummary]) -> dict[tuple[str, int], list[PointSummary]]:
    panels: dict[tuple[str, int], list[PointSummary]] = {}
    for summary in summaries:
        workload = summary.point.workload
        panels.setdefault((workload.model, workload.batch_size), []).append(summary)
    return panels


def _suffix(index: int) -> str:
    """Return what Plotly puts behind an axis's name: nothing for the first, 2 for the second."""
    return "" if index == 0 else str(index + 1)


def _highest(summaries: Sequence[PointSummary]) -> dict[str, float]:
    """Return each model's highest figure: where its colour scale, which starts at zero, ends."""
    highest: dict[str, float] = {}
    for summary in summaries:
        metric, model = summary.metric(METRIC), summary.point.workload.model
        highest[model] = max(highest.get(model, 0.0), metric.value if metric else 0.0)
    return highest


def _outline(
    theme: Theme, cells: Cells, modes: list[str], threads: list[int], suffix: str, *, best: float
) -> list[dict[str, Any]]:
    return [
        {
            "type": "rect", "xref": f"x{suffix}", "yref": f"y{suffix}", "line": {"color": theme.ink, "width": 1.5},
            "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5, "y1": row + 0.5,
        }
        for row, mode in enumerate(modes)
        for column, count in enumerate(threads)
        if (summary := cells.get((mode, count))) and (metric := summary.metric(METRIC)) and metric.value == best
    ]  # fmt: skip


def _legend(view: View, words: str) -> dict[str, Any]:
    gap = "<br>" if view.narrow else " "
    return {
        "text": f"img/s/W, {words},{gap}± half-width of the 95 % interval",
        "x": 0, "y": 0, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top",
        "yshift": _LEGEND_SHIFT_PX, "align": "left", "showarrow": False,
        "font": {"size": 12, "color": view.theme.muted},
    }  # fmt: skip


def _heatmap(theme: Theme, cells: Cells, modes: list[str], threads: list[int]) -> dict[str, Any]:
    values: list[list[float | None]] = []
    texts: list[list[str]] = []
    hovers: list[list[str]] = []
    for mode in modes:
        found = [cells.get((mode, count)) for count in threads]
        metrics = [summary.metric(METRIC) if summary else None for summary in found]
        values.append([metric.value if metric else None for metric in metrics])
        shows = [shown(metric) if metric else None for metric in metrics]
        texts.append([f"<b>{show.value}</b><br>{show.spread}" if show else "" for show in shows])
        hovers.append([_hover(summary) if summary else "" for summary in found])
    return {
        "type": "heatmap",
        "x": list(range(len(threads))),
        "y": list(range(len(modes))),
        "z": values,
        "text": texts,
        "texttemplate": "%{text}",
        "textfont": {"size": 12, "color": theme.ink},
        "customdata": hovers,
        "hovertemplate": "%{customdata}<extra></extra>",
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
    }


def _hover(summary: PointSummary) -> str:
    metric = summary.metric(METRIC)
    if metric is None:
        return ""
    text, point = shown(metric), summary.point
    return (
        f"<b>{text.sentence}</b> {text.provenance}<br>{text.interval}<br>"
        f"{plain(point.mode)}, {count(point.threads, 'thread')}<br>"
        f"{summary.valid_count} of {summary.run_count} runs valid"
    )


def _empty_cells(cells: Cells, modes: list[str], threads: list[int], suffix: str, colour: str) -> list[dict[str, Any]]:
    return [
        {
            "text": why_missing(cells.get((mode, count)), METRIC),
            "x": column,
            "y": row,
            "xref": f"x{suffix}",
            "yref": f"y{suffix}",
            "showarrow": False,
            "font": {"size": 11, "color": colour},
        }
        for row, mode in enumerate(modes)
        for column, count in enumerate(threads)
        if (summary := cells.get((mode, count))) is None or summary.metric(METRIC) is None
    ]


CHART = Chart(
    name="efficiency-heatmap",
    title="Efficiency by threads and power mode",
    caption=(
        "Images per second per watt, which equals images per joule; darker is better. Each model has its own colour "
        "scale starting at zero, and its best cell is outlined."
    ),
    build=build,
)
