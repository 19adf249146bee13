"""Power over time of a run: every rail and the total, with the measurement window shaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.series import Curve, rail_curve, thin, total_curve
from powerlab_dashboards.charts.theme import Theme, View

_SAMPLE_LIMIT = 2000
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunTraces:
    """A run with the traces that were sampled during it; ``retired`` says why they were deleted."""

    run: Run
    traces: tuple[Trace, ...]
    retired: str = ""


def build(data: RunTraces, view: View) -> Figure | NoChart:
    """Return the figure; time 0 is the start of the measurement window, and counters are shown as their slope."""
    run, theme = data.run, view.theme
    if data.retired:
        return NoChart(data.retired[:1].upper() + data.retired[1:])
    if not data.traces:
        return NoChart("No power was sampled during this run. The devices page lists the missing sensors and why.")
    start_ns, end_ns = run.window_ns
    origin_ns = start_ns or min((int(trace.time_ns[0]) for trace in data.traces if len(trace.time_ns)), default=0)
    words = {trace.rail.key: trace.rail.provenance.value for trace in data.traces}
    curves = [curve for trace in data.traces if (curve := rail_curve(trace, origin_ns)) is not None]
    if not curves:
        return NoChart("All traces of this run are too short to plot.")
    formula = run.total.rails if run.total else ()
    lines = [
        _line(theme, thin(curve, _SAMPLE_LIMIT), index, words[curve.name], whole=formula == (curve.name,))
        for index, curve in enumerate(curves)
    ]
    if len(formula) > 1 and (total := total_curve(formula, curves)) and len({words[key] for key in formula}) == 1:
        lines.append(_total_line(theme, thin(total, _SAMPLE_LIMIT), words[formula[0]]))
    legend, legend_px = legend_above([line["name"] for line in lines], narrow=view.narrow)
    figure_layout = layout(
        theme,
        height=340 + legend_px,
        margin={"l": 64, "r": 16, "t": legend_px + 8, "b": 56},
        showlegend=True,
        hovermode="x unified",
        legend=legend,
        xaxis=axis(theme, "time since the start of the measurement window, s", hoverformat=".3f"),
        yaxis=axis(theme, "power, W (" + " and ".join(sorted(set(words.values()))) + ")", rangemode="tozero"),
    )
    if end_ns > start_ns:
        figure_layout |= _window(theme, (end_ns - start_ns) / 1e9)
    return {"data": lines, "layout": figure_layout}


def _line(theme: Theme, curve: Curve, index: int, word: str, *, whole: bool = False) -> dict[str, Any]:
    how = ", slope of its energy counter" if curve.differenced else ""
    how += "; this rail is the total" if whole else ""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{plain(curve.name)} ({word}{how})",
        "x": [round(float(value), 6) for value in curve.time_s],
        "y": [round(float(value), 4) for value in curve.power_w],
        "line": {
            "color": theme.colour(index),
            "width": 1.3,
            "dash": _DASHES[index % len(_DASHES)],
            "shape": "vh" if curve.differenced else "linear",
        },
        "hovertemplate": "%{y:.3~f} W",
    }


def _total_line(theme: Theme, curve: Curve, word: str) -> dict[str, Any]:
    line = _line(theme, curve, 0, word)
    line["name"] = f"total ({word})"
    line["line"] |= {"color": theme.ink, "width": 1.8, "dash": "solid"}
    return line


def _window(theme: Theme, length_s: float) -> dict[str, Any]:
    return {
        "shapes": [
            {"type": "rect", "xref": "x", "yref": "paper", "x0": 0, "x1": length_s, "y0": 0, "y1": 1, "layer": "below",
             "fillcolor": theme.shade, "opacity": 0.1, "line": {"width": 0}}
        ],
        "annotations": [
            {"text": f"measurement window, {length_s:.3g} s", "x": 0, "y": 1,
             "xref": "x", "yref": "paper", "xanchor": "left",
             "yanchor": "top", "xshift": 6, "showarrow": False, "font": {"size": 11, "color": theme.muted}}
        ],
    }  # fmt: skip


CHART = Chart(
    name="power-trace",
    title="Power over time",
    caption=(
        "One line per rail, as sampled. The figures are computed from the shaded window. For energy counters, the line "
        "is the slope between two counter updates."
    ),
    build=build,
)
