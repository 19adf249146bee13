"""Pareto fronts of several sets of runs over each other: throughput against power."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from powerlab.analysis.best import pareto_front
from powerlab.analysis.dimensions import varying
from powerlab.analysis.summary import PointSummary
from powerlab.domain.quantity import Metric, Provenance
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, panel_title, plain
from powerlab_dashboards.charts.front_points import Placed
from powerlab_dashboards.charts.grid import Grid
from powerlab_dashboards.charts.look import error_bars
from powerlab_dashboards.charts.theme import SYMBOLS, View
from powerlab_dashboards.charts.words import missing_power, provenance_words
from powerlab_dashboards.format import count, model_label, shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_PANEL_PX = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSet:
    """What the chart knows of a set: what people call it, and its points."""

    label: str
    summaries: Sequence[PointSummary]


def build(sets: Sequence[ComparedSet], view: View) -> Figure | NoChart:
    """Return a panel per model; a colour and a marker per set, its front joined, its other points faint."""
    placed = {one.label: _placed(one.summaries) for one in sets}
    everything = [summary for one in sets for summary in one.summaries]
    if not any(placed.values()):
        return NoChart(missing_power(everything))
    theme, words = view.theme, provenance_words(everything, "power_w")
    power_title = _("power, W (%(provenance)s)", provenance=words)
    rate_title = _("throughput, img/s")
    models = list(dict.fromkeys(entry[0].point.workload.model for found in placed.values() for entry in found))
    names = varying(entry[0].point for found in placed.values() for entry in found)
    grid = Grid.of(len(models), narrow=view.narrow, row_px=_PANEL_PX, gap_px=104)
    legend, legend_px = legend_above([plain(one.label) for one in sets], narrow=view.narrow)
    margin = {"l": 64, "r": 24, "t": legend_px + 36, "b": 56}
    figure_layout = layout(
        theme, height=grid.height_px(margin), margin=margin, annotations=[], showlegend=True, hovermode="closest",
        legend=legend,
    )  # fmt: skip
    data = [_key(one.label, theme.colour(index), SYMBOLS[index % len(SYMBOLS)]) for index, one in enumerate(sets)]
    for number, model in enumerate(models):
        suffix = "" if number == 0 else str(number + 1)
        place = {"xaxis": f"x{suffix}", "yaxis": f"y{suffix}"}
        members = {
            label: [entry for entry in found if entry[0].point.workload.model == model]
            for label, found in placed.items()
        }
        for index, (label, found) in enumerate(members.items()):
            look = _Look(label=label, colour=theme.colour(index), symbol=SYMBOLS[index % len(SYMBOLS)])
            data += [trace | place for trace in look.traces(found, names)]
        shown_now = [entry for found in members.values() for entry in found]
        x_domain, y_domain = grid.domains(number)
        figure_layout["annotations"].append(panel_title(theme, model_label(model), x=x_domain[0], y=y_domain[1]))
        figure_layout[f"xaxis{suffix}"] = axis(
            theme,
            power_title,
            domain=x_domain,
            anchor=f"y{suffix}",
            range=[0, _end(e[1] for e in shown_now)],
        )
        figure_layout[f"yaxis{suffix}"] = axis(
            theme,
            rate_title,
            domain=y_domain,
            anchor=f"x{suffix}",
            range=[0, _end(e[2] for e in shown_now)],
        )
    return {"data": data, "layout": figure_layout}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """How a set is drawn."""

    label: str
    colour: str
    symbol: str

    def traces(self, found: Sequence[Placed], names: Any) -> list[dict[str, Any]]:
        """Return a line per provenance for the front, with intervals, and the points that something beats."""
        best = {summary.point.id for summary in pareto_front([summary for summary, _, _ in found])}
        front = sorted((one for one in found if one[0].point.id in best), key=lambda one: one[1].value)
        beaten = [one for one in found if one[0].point.id not in best]
        lines = [
            self._points([one for one in front if one[1].provenance is provenance], names, line=True)
            for provenance in dict.fromkeys(power.provenance for _, power, _ in front)
        ]
        return [*([self._points(beaten, names, line=False)] if beaten else []), *lines]

    def _points(self, found: Sequence[Placed], names: Any, *, line: bool) -> dict[str, Any]:
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines+markers" if line else "markers",
            "name": plain(self.label),
            "legendgroup": plain(self.label),
            "showlegend": False,
            "x": [power.value for _, power, _ in found],
            "y": [throughput.value for _, _, throughput in found],
            "cliponaxis": False,
            "opacity": 1 if line else 0.4,
            "marker": {
                "size": 9 if line else 6,
                "color": self.colour,
                "line": {"width": 1.5, "color": self.colour},
                "symbol": [self.symbol + _hollow(power.provenance) for _, power, _ in found],
            },
            "customdata": [self._hover(*one, names(one[0].point)) for one in found],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
        if line:
            trace["line"] = {"color": self.colour, "width": 1.5}
            trace["error_x"] = error_bars([power for _, power, _ in found], self.colour)
            trace["error_y"] = error_bars([throughput for _, _, throughput in found], self.colour)
        return trace

    def _hover(self, summary: PointSummary, power: Metric, throughput: Metric, name: str) -> str:
        return "<br>".join(
            [
                f"<b>{plain(self.label)}</b>",
                plain(name),
                shown(throughput).sentence,
                f"{shown(power).sentence} {_(power.provenance.value)}",
                _("%(valid)s of %(runs)s valid", valid=summary.valid_count, runs=count(summary.run_count, "run")),
            ]
        )


def _placed(summaries: Sequence[PointSummary]) -> list[Placed]:
    return [
        (summary, power, throughput)
        for summary in summaries
        if (power := summary.metric("power_w")) and (throughput := summary.metric("throughput_img_per_s"))
    ]


def _hollow(provenance: Provenance) -> str:
    return "" if provenance is Provenance.MEASURED else "-open"


def _end(metrics: Any) -> float:
    return 1.12 * max((metric.value if metric.high is None else metric.high for metric in metrics), default=1.0) or 1.0


def _key(name: str, colour: str, symbol: str) -> dict[str, Any]:
    return {"type": "scatter", "mode": "lines+markers", "x": [None], "y": [None], "name": plain(name),
            "legendgroup": plain(name), "line": {"color": colour, "width": 1.5},
            "marker": {"size": 9, "color": colour, "symbol": symbol}}  # fmt: skip


CHART = Chart(
    name="set-fronts",
    title=mark("Pareto fronts"),
    caption=mark(
        "Up and to the left is better. Each line joins the points of one set that no other point of it beats in both "
        "quantities; bars are 95 % intervals, faint points are beaten, hollow ones are not measured."
    ),
    build=build,
)
