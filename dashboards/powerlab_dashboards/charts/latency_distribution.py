"""How the latencies of a run's queries are distributed, with its percentiles marked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.run import Run
from powerlab.measure.percentiles.latency import is_latency
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.format import count, significant
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_PLOT_PX, _BOTTOM_PX = 280, 56
_FEWEST_BINS, _MOST_BINS = 24, 80
_ROW_PX = 18
_PERCENTILES = {"latency_p50_ms": "p50", "latency_p90_ms": "p90", "latency_p99_ms": "p99", "latency_p99_9_ms": "p99.9"}


def build(data: RunTraces, view: View) -> Figure | NoChart:
    """Return bars of queries by latency on a logarithmic scale, which shows the tail's single queries."""
    if data.retired:
        return NoChart(data.retired[:1].upper() + data.retired[1:])
    found = [trace for trace in data.traces if is_latency(trace)]
    latency_ms = np.concatenate([1e3 * trace.value for trace in found]) if found else np.array([])
    if latency_ms.size == 0:
        return NoChart(_("The latencies of this run's queries are not stored."))
    if latency_ms.size < data.run.inference_count:
        return NoChart(_("Only some of this run's latencies were read, which say nothing about their distribution."))
    theme, word = view.theme, found[0].rail.provenance.value
    counts, edges = np.histogram(latency_ms, bins=bin_count(latency_ms))
    shown = counts > 0
    centre = (edges[:-1] + edges[1:]) / 2
    tail = float(latency_ms.max())
    marks = _marks(theme, data.run, tail)
    top_px = 16 + _ROW_PX * len(marks["annotations"])
    return {
        "data": [
            {
                "type": "bar",
                "x": np.round(centre[shown], 6).tolist(),
                "y": counts[shown].tolist(),
                "width": float(edges[1] - edges[0]),
                "marker": {"color": theme.colour(0)},
                "customdata": [
                    _(
                        "%(low)s to %(high)s ms: %(queries)s",
                        low=significant(low, 4), high=significant(high, 4), queries=count(int(number), "query"),
                    )
                    for low, high, number in zip(edges[:-1][shown], edges[1:][shown], counts[shown], strict=True)
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        ],
        "layout": layout(
            theme,
            height=_PLOT_PX + top_px + _BOTTOM_PX,
            margin={"l": 64, "r": 16, "t": top_px, "b": _BOTTOM_PX},
            bargap=0,
            hovermode="closest",
            dragmode=False,
            xaxis=axis(theme, _("latency, ms (%(provenance)s)", provenance=_(word)), showgrid=False),
            yaxis=axis(
                theme, _("queries (logarithmic)"), type="log", dtick=1, fixedrange=True,
                range=[math.log10(0.5), math.log10(2 * int(counts.max()))],
            ),
            **marks,
        ),
    }  # fmt: skip


def bin_count(values: NDArray[np.float64]) -> int:
    """Return how many bins show these values: Freedman and Diaconis's width (1981), within what can be seen."""
    spread = float(np.subtract(*np.percentile(values, [75, 25])))
    reach = float(values.max() - values.min())
    if spread <= 0 or reach <= 0:
        return _FEWEST_BINS
    width = 2 * spread / len(values) ** (1 / 3)
    return int(min(_MOST_BINS, max(_FEWEST_BINS, math.ceil(reach / width))))


def _marks(theme: Theme, run: Run, tail_ms: float) -> dict[str, Any]:
    """Return a line for every percentile and the slowest query.

    Their names stand to the left of their lines, each in a row above the one before, so that no line crosses a name.
    """
    found = [(name, metric.value) for key, name in _PERCENTILES.items() if (metric := run.metric(key)) is not None]
    marks = [*found, (_("slowest"), tail_ms)]
    shapes, names = [], []
    for row, (name, value) in enumerate(marks):
        middle_px = _ROW_PX * row + _ROW_PX // 2
        shapes.append(
            {"type": "line", "xref": "x", "yref": "paper", "x0": value, "x1": value, "y0": 0,
             "y1": 1 + (middle_px + _ROW_PX // 3) / _PLOT_PX, "line": {"color": theme.ink, "width": 1, "dash": "dot"}}
        )  # fmt: skip
        names.append(
            {"text": f"{name} {significant(value, 4)} ms", "x": value, "y": 1, "xref": "x", "yref": "paper",
             "xanchor": "right", "xshift": -3, "yanchor": "middle", "yshift": middle_px, "showarrow": False,
             "font": {"size": 12, "color": theme.ink}}
        )  # fmt: skip
    return {"shapes": shapes, "annotations": names}


CHART = Chart(
    name="latency-distribution",
    title=mark("Latency distribution"),
    caption=mark(
        "How many queries took how long. The scale is logarithmic, so that a single slow query can be seen; the lines "
        "mark the percentiles of this run."
    ),
    build=build,
)
