"""The Pareto front: throughput or latency against power or energy, with intervals, and lines of equal efficiency."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from powerlab.analysis.best import pareto_front
from powerlab.analysis.dimensions import Dimension, varied
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import METRICS, Metric, Provenance
from powerlab_dashboards.charts.axes import MODEL, THREADS, by_work
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, panel_title, plain
from powerlab_dashboards.charts.choice import COSTS, GAINS, Choice
from powerlab_dashboards.charts.front_points import Placed, point_traces
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.look import Look
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.charts.words import missing_power, provenance_words
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark
from powerlab_dashboards.places import value_words

_PANEL_PX = 400
_GUIDE_COUNT = 3
_LEAST_SLOPE = 1e-300


def build(summaries: Sequence[PointSummary], view: View) -> Figure | NoChart:
    """Return one scatter plot per work; colour and marker tell the series, hollow means not measured."""
    theme, choice = view.theme, view.choice
    placed = {work: found for work, alike in by_work(summaries).items() if (found := _placed(alike, choice))}
    if not placed:
        return NoChart(missing_power(summaries))
    drawn = [summary for found in placed.values() for summary, _, _ in found]
    grid = Grid.of(len(placed), narrow=view.narrow, row_px=_PANEL_PX, gap_px=104)
    look = Look(theme, drawn, apart=(MODEL, THREADS))
    told = [*look.unshown, *(one for one in varied(summary.point for summary in drawn) if one.title == THREADS)]
    line = {"color": theme.muted, "width": 1.2, "dash": "dot"}
    pareto = {"type": "scatter", "mode": "lines", "x": [None], "y": [None], "name": _("Pareto front"), "line": line}
    data = [*look.keys(drawn), pareto]
    legend, legend_px = legend_above([key["name"] for key in data], narrow=view.narrow)
    margin = {"l": 64, "r": 24, "t": legend_px + 36, "b": 56}
    figure_layout = layout(
        theme,
        height=grid.height_px(margin),
        margin=margin,
        annotations=[],
        showlegend=True,
        hovermode="closest",
        legend=legend,
    )
    cost, gain = _names(choice)
    for index, (work, members) in enumerate(placed.items()):
        suffix = "" if index == 0 else str(index + 1)
        x_domain, y_domain = grid.domains(index)
        x_end, y_end = _end(entry[1] for entry in members), _end(entry[2] for entry in members)
        place = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        front = front_of(members, choice)
        labels = {
            summary.point.id: _label(told, summary)
            for summary, _, _ in _spaced(front, x_end, y_end, gap=0.11 if view.narrow else 0.07)
        }
        guides, notes = _guides(theme, members, x_end, y_end, place) if _of_throughput_and_power(choice) else ([], [])
        data += [*guides, *_pareto_lines(theme, front, place), *point_traces(look, members, labels, choice, place)]
        figure_layout["annotations"] += [panel_title(theme, work, x=x_domain[0], y=y_domain[1]), *notes]
        figure_layout[f"xaxis{suffix}"] = axis(
            theme, _axis_title(cost, summaries), domain=x_domain, anchor=f"y{suffix}", range=[0, x_end]
        )
        figure_layout[f"yaxis{suffix}"] = axis(
            theme, _gain_title(gain), domain=y_domain, anchor=f"x{suffix}", range=[0, y_end]
        )
    return {"data": data, "layout": figure_layout}


def front_of(members: Sequence[Placed], choice: Choice) -> list[Placed]:
    """Return the points on the front, by rising cost; points that the reader's bounds exclude are not on it."""
    by_point = {entry[0].point.id: entry for entry in members}
    free = [summary for summary, _, _ in members if summary.point.id not in choice.barred]
    return [by_point[summary.point.id] for summary in pareto_front(free, *_names(choice))]


def fronts(summaries: Sequence[PointSummary], choice: Choice) -> dict[str, list[Placed]]:
    """Return the front of each work, for those who read it instead of looking at it."""
    return {work: front_of(_placed(alike, choice), choice) for work, alike in by_work(summaries).items()}


def _placed(summaries: Sequence[PointSummary], choice: Choice) -> list[Placed]:
    cost, gain = _names(choice)
    return [(summary, x, y) for summary in summaries if (x := summary.metric(cost)) and (y := summary.metric(gain))]


def _names(choice: Choice) -> tuple[str, str]:
    return choice.cost if choice.cost in COSTS else COSTS[0], choice.gain if choice.gain in GAINS else GAINS[0]


def _of_throughput_and_power(choice: Choice) -> bool:
    return _names(choice) == (COSTS[0], GAINS[0])


def _axis_title(cost: str, summaries: Sequence[PointSummary]) -> str:
    return f"{_(METRICS[cost].title)}, {METRICS[cost].unit} ({provenance_words(summaries, cost)})"


def _gain_title(gain: str) -> str:
    return f"{_(METRICS[gain].title)}, {METRICS[gain].unit}"


def _label(told: Sequence[Dimension], summary: PointSummary) -> str:
    return plain(", ".join(value_words(dimension, summary.point) for dimension in told))


def _spaced(front: Sequence[Placed], x_end: float, y_end: float, *, gap: float) -> list[Placed]:
    """Return the points whose labels do not overlap, from the dearest down; ``gap`` is a fraction of the panel."""
    named: list[Placed] = []
    for entry in reversed(front):
        apart = (
            abs(entry[1].value - other[1].value) > 2.2 * gap * x_end
            or abs(entry[2].value - other[2].value) > gap * y_end
            for other in named
        )
        if all(apart):
            named.append(entry)
    return named


def _pareto_lines(theme: Theme, front: Sequence[Placed], place: dict[str, str]) -> list[dict[str, Any]]:
    """Return one line per provenance: figures of different provenance are never joined."""
    by_provenance: dict[Provenance, list[Placed]] = {}
    for entry in front:
        by_provenance.setdefault(entry[1].provenance, []).append(entry)
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": f"{_('Pareto front')}, {_(provenance.value)}",
            "showlegend": False,
            "x": [x.value for _, x, _ in entries],
            "y": [y.value for _, _, y in entries],
            "line": {"color": theme.muted, "width": 1.2, "dash": "dot"},
            "hoverinfo": "skip",
            **place,
        }
        for provenance, entries in by_provenance.items()
    ]


def _end(metrics: Iterable[Metric]) -> float:
    return 1.15 * max(metric.value if metric.high is None else metric.high for metric in metrics) or 1.0


def _guides(
    theme: Theme, members: Sequence[Placed], x_end: float, y_end: float, place: dict[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return faint lines of equal img/s/W through the origin, with labels at the panel's edge."""
    # The store accepts a device's figures unchanged, including 0 W, for which there is no line.
    best = max((throughput.value / power.value for _, power, throughput in members if power.value > 0), default=0.0)
    if not _LEAST_SLOPE < best < math.inf:
        return [], []
    lines, labels = [], []
    for slope in (_round_down(best) / 2**step for step in range(_GUIDE_COUNT)):
        x, y = min(x_end, y_end / slope), min(y_end, x_end * slope)
        lines.append(
            {"type": "scatter", "mode": "lines", "x": [0, x], "y": [0, y], "showlegend": False, "hoverinfo": "skip",
             "line": {"color": theme.grid, "width": 1}, **place}
        )  # fmt: skip
        leaves_top = y_end / slope < x_end
        labels.append(
            {"text": f"{slope:.3g} img/s/W", "x": x, "y": y, "xref": place["xaxis"], "yref": place["yaxis"],
             "showarrow": False, "xanchor": "right", "yanchor": "top" if leaves_top else "bottom",
             "xshift": -6 if leaves_top else 0, "font": {"size": 10, "color": theme.muted}}
        )  # fmt: skip
    return lines, labels


def _round_down(value: float) -> float:
    """Return the largest of 1, 2, 5 times a power of ten that is not above ``value``."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(step * decade for step in (5, 2, 1) if step * decade <= value * (1 + 1e-9))


CHART = Chart(
    name="pareto-front",
    title=mark("Pareto front"),
    caption=mark(
        "No point beats one on the front in both figures. Error bars are 95 % intervals; hollow markers mean the power "
        "was not measured; faint lines mark equal img/s/W. A click on a point opens its runs."
    ),
    build=build,
)
