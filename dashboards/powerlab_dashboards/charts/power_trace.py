"""A run over time: power, clocks, temperatures and latencies on one axis, with its phases shaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, folded, layout, legend_above
from powerlab_dashboards.charts.part_bands import MOST_BANDS, bands, step_parts
from powerlab_dashboards.charts.run_traces import Phase, RunTraces, phases
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.charts.trace_panels import Panel, panels
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

SAMPLE_LIMIT = 1200
"""Samples of a line: more than twice as many as a wide page has pixels to draw their extremes."""
_GAP_PX, _TOP_PX, _BOTTOM_PX = 22, 24, 56
_NARROWEST_LABEL = 0.045
"""A phase that takes less of the axis has no room for its name."""


def build(data: RunTraces, view: View) -> Figure | NoChart:
    """Return the figure; time 0 is the start of the timed window, and counters are shown as their slope."""
    theme = view.theme
    if data.retired:
        return NoChart(data.retired[:1].upper() + data.retired[1:])
    if not data.traces and data.span_s is None:
        return NoChart(_("No power was sampled during this run. The devices page lists the missing sensors and why."))
    found = list(panels(theme, data, SAMPLE_LIMIT // 2 if view.narrow else SAMPLE_LIMIT))
    if not found:
        return NoChart(_("All traces of this run are too short to plot."))
    names = [folded(line["name"], view) for panel in found for line in panel.lines if _named(line)]
    legend, legend_px = legend_above(names, narrow=view.narrow)
    top_px = legend_px + _TOP_PX
    plot_px = sum(panel.height_px for panel in found) + _GAP_PX * (len(found) - 1)
    known = list(phases(data.run, data.traces))
    span_s = data.span_s or _whole(found, known)
    figure_layout = layout(
        theme,
        height=plot_px + top_px + _BOTTOM_PX,
        margin={"l": 72, "r": 16, "t": top_px, "b": _BOTTOM_PX},
        showlegend=True,
        hovermode="x unified",
        hoversubplots="axis",
        dragmode=False if view.narrow else "zoom",
        legend=legend,
        xaxis=axis(
            theme, _("time since the start of the timed part, s"), hoverformat=".4~f", range=list(span_s),
            anchor=f"y{_suffix(len(found) - 1)}",
        ),
    )  # fmt: skip
    shaded = _bands(theme, known, span_s)
    figure_layout |= shaded | {"shapes": [*shaded["shapes"], *bands(theme, step_parts(data, MOST_BANDS))]}
    data_lines: list[dict[str, Any]] = []
    above_px = 0
    for index, panel in enumerate(found):
        domain = [1 - (above_px + panel.height_px) / plot_px, 1 - above_px / plot_px]
        more = {"rangemode": "tozero"} if panel.from_zero else _of_places(panel)
        figure_layout[f"yaxis{_suffix(index)}"] = axis(
            theme,
            _in_two_lines(panel.title),
            domain=[max(0.0, domain[0]), domain[1]],
            anchor="x",
            fixedrange=True,
            **({"nticks": 5} | more),
        )
        data_lines += [
            line
            | {"name": folded(line["name"], view), "showlegend": _named(line)}
            | {"xaxis": "x", "yaxis": f"y{_suffix(index)}"}
            for line in panel.lines
        ]
        above_px += panel.height_px + _GAP_PX
    return {"data": data_lines, "layout": figure_layout}


def _named(line: dict[str, Any]) -> bool:
    """Tell whether the legend has a line; dots speak for themselves, and bars have their names beside them."""
    return bool(line.get("showlegend", line["mode"] == "lines"))


def _of_places(panel: Panel) -> dict[str, Any]:
    """Return the axis of a panel whose lines lie at places; of any other one nothing."""
    count = len(panel.places)
    if not count:
        return {}
    return {"tickvals": list(range(count)), "ticktext": list(panel.places), "range": [count - 0.4, -0.6]}


def _in_two_lines(title: str) -> str:
    """Return the title of an axis with its provenance below: in one line it is longer than a low panel is high."""
    return title.replace(" (", "<br>(", 1).replace("（", "<br>（", 1)


def _suffix(index: int) -> str:
    return "" if index == 0 else str(index + 1)


def _whole(found: Sequence[Panel], known: Sequence[Phase]) -> tuple[float, float]:
    """Return the span that holds every phase and every sample, with a little room beside them."""
    stamps = [x for panel in found for line in panel.lines for x in (line["x"][0], line["x"][-1])]
    first = min([*stamps, *(one.start_s for one in known)])
    last = max([*stamps, *(one.end_s for one in known)])
    room = 0.01 * (last - first) or 0.5
    return round(first - room, 6), round(last + room, 6)


def _bands(theme: Theme, known: Sequence[Phase], span_s: tuple[float, float]) -> dict[str, Any]:
    """Return shapes and names of the phases; a name stands at the middle of what is seen of its phase."""
    shapes, names = [], []
    for one in known:
        timed = one.name == "timed"
        shapes.append(
            {"type": "rect", "xref": "x", "yref": "paper", "x0": one.start_s, "x1": one.end_s, "y0": 0, "y1": 1,
             "layer": "below", "fillcolor": theme.shade if timed else theme.muted,
             "opacity": 0.12 if timed else 0.16 if one.name == "warm-up" else 0.07, "line": {"width": 0}}
        )  # fmt: skip
        start_s, end_s = max(one.start_s, span_s[0]), min(one.end_s, span_s[1])
        if end_s - start_s > _NARROWEST_LABEL * (span_s[1] - span_s[0]):
            names.append(
                {"text": f"{_(one.name)} {one.length_s:.3g} s", "x": (start_s + end_s) / 2, "y": 1, "xref": "x",
                 "yref": "paper", "xanchor": "center", "yanchor": "bottom", "yshift": 2, "showarrow": False,
                 "font": {"size": 12, "color": theme.ink if timed else theme.muted}}
            )  # fmt: skip
    return {"shapes": shapes, "annotations": names}


CHART = Chart(
    name="power-trace",
    title=mark("Run over time"),
    caption=mark(
        "Power, clocks, temperatures and the latency of every query on one time axis. The figures are computed from "
        "the timed part; of warm-up and cool-down ten samples a second are kept; idle baselines may be shared with the "
        "runs beside this one. Where samples are more than pixels, the extremes of neighbours are drawn. Zoom into a "
        "run that trains: up to 400 steps in view show their parts, and up to 60 are shaded by them."
    ),
    build=build,
)
