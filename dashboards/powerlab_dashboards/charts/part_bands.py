"""The parts of each step of training on the time axis of its run: bars in a panel, and bands behind all panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import RailQuantity, Trace
from powerlab.measure.percentiles.latency import is_latency
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.theme import Theme
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

MOST_BARS, MOST_BANDS = 400, 60
"""Of more steps the bars would be narrower than a pixel, and bands a haze: then none are drawn."""
_WORDS = {
    "forward": mark("forward pass"),
    "backward": mark("backward pass"),
    "reduce": mark("wait for gradients"),
    "update": mark("update of the weights"),
}
_BAR_PX = 11


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepPart:
    """A part of every step in view.

    Attributes:
        name: in English.
        begin_s: shape (n,): when it began, in s since the timed window did.
        end_s: shape (n,): when it ended.
    """

    name: str
    begin_s: NDArray[np.float64]
    end_s: NDArray[np.float64]

    @property
    def words(self) -> str:
        """What it is called on the page."""
        return _(_WORDS[self.name]) if self.name in _WORDS else self.name


def is_part(trace: Trace) -> bool:
    """Tell whether a trace holds how long parts of queries took."""
    return trace.rail.quantity is RailQuantity.LATENCY and not is_latency(trace)


def step_parts(data: RunTraces, most: int) -> tuple[StepPart, ...]:
    """Return the parts of the steps in view, in order; none of more steps than ``most``, nor of steps in slices.

    Slices go through the parts each by itself, and what is recorded are sums over those that follow each other.
    """
    recorded = [trace for trace in data.traces if is_part(trace) and len(trace.time_ns)]
    if not recorded or data.run.point.workload.slices > 1:
        return ()
    order = list(_WORDS)
    parts = []
    for trace in sorted(recorded, key=lambda one: order.index(one.rail.name) if one.rail.name in order else len(order)):
        begin_s = (trace.time_ns - data.origin_ns) / 1e9
        end_s = begin_s + trace.value
        first_s, last_s = data.span_s or (-np.inf, np.inf)
        seen = (end_s >= first_s) & (begin_s <= last_s)
        parts.append(StepPart(name=trace.rail.name, begin_s=begin_s[seen], end_s=end_s[seen]))
    longest = max(part.begin_s.size for part in parts)
    return tuple(parts) if 0 < longest <= most else ()


def bars(theme: Theme, parts: Sequence[StepPart]) -> list[dict[str, Any]]:
    """Return a line for each part, with a bar for each time it ran, at its place from 0 on."""
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "showlegend": False,
            "name": part.words,
            "x": _with_gaps(_rounded(part.begin_s), _rounded(part.end_s)),
            "y": _with_gaps([place] * part.begin_s.size, [place] * part.begin_s.size),
            "customdata": _with_gaps(_lasted_ms(part), _lasted_ms(part)),
            "line": {"color": theme.colour(place), "width": _BAR_PX},
            "hovertemplate": "%{customdata} ms",
        }
        for place, part in enumerate(parts)
        if part.begin_s.size
    ]


def bands(theme: Theme, parts: Sequence[StepPart]) -> list[dict[str, Any]]:
    """Return the shapes that shade each part behind all panels."""
    return [
        {"type": "rect", "xref": "x", "yref": "paper", "x0": begin_s, "x1": end_s, "y0": 0, "y1": 1, "layer": "below",
         "fillcolor": theme.colour(place), "opacity": 0.13, "line": {"width": 0}}
        for place, part in enumerate(parts)
        for begin_s, end_s in zip(_rounded(part.begin_s), _rounded(part.end_s), strict=True)
    ]  # fmt: skip


def _with_gaps(begins: Sequence[float], ends: Sequence[float]) -> list[float | None]:
    """Return what stands at both ends of every bar, with a gap between bars."""
    found = [one for begin, end in zip(begins, ends, strict=True) for one in (begin, end, None)]
    return found[:-1]


def _lasted_ms(part: StepPart) -> list[float]:
    found: list[float] = np.round((part.end_s - part.begin_s) * 1e3, 3).tolist()
    return found


def _rounded(seconds: NDArray[np.float64]) -> list[float]:
    found: list[float] = np.round(seconds, 6).tolist()
    return found
