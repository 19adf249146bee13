"""The panels of a run over time: power, clocks, temperatures, latencies and parts of queries, as Plotly lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powerlab.domain.power import POWER_QUANTITIES, RailQuantity, Trace
from powerlab_dashboards.charts.base import plain
from powerlab_dashboards.charts.part_bands import MOST_BARS, bars, is_part, step_parts
from powerlab_dashboards.charts.run_traces import RunTraces
from powerlab_dashboards.charts.series import Curve, rail_curve, thin, total_curve
from powerlab_dashboards.charts.theme import Theme
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """Lines that share an axis.

    Attributes:
        title: of the axis: quantity, unit, provenance.
        height_px: of the panel.
        lines: Plotly traces.
        from_zero: whether the axis begins at 0.
        places: what stands on the axis at 0, 1, 2 ... from the top; none where it is one of numbers.
    """

    title: str
    height_px: int
    lines: list[dict[str, Any]]
    from_zero: bool = False
    places: tuple[str, ...] = ()


def panels(theme: Theme, data: RunTraces, sample_limit: int) -> Iterator[Panel]:
    """Yield the panels that there are samples for; each line has at most ``sample_limit`` samples."""
    power = list(_power_lines(theme, data, sample_limit))
    if power:
        rails = [trace for trace in data.traces if trace.rail.quantity in POWER_QUANTITIES]
        yield Panel(
            title=_("power, W (%(provenance)s)", provenance=_words(rails)), height_px=280, lines=power, from_zero=True
        )
    for quantity, title, factor, height_px, unit in (
        (RailQuantity.CLOCK, mark("clock, MHz (%(provenance)s)"), 1.0, 120, "%{y:.0f} MHz"),
        (RailQuantity.TEMPERATURE, mark("temperature, °C (%(provenance)s)"), 1.0, 120, "%{y:.1f} °C"),
        (RailQuantity.LATENCY, mark("latency, ms (%(provenance)s)"), 1e3, 170, "%{y:.4~g} ms"),
    ):
        traces = [trace for trace in data.traces if trace.rail.quantity is quantity and not is_part(trace)]
        lines = list(_lines(theme, traces, data.origin_ns, factor, sample_limit))
        if lines:
            dots = quantity is RailQuantity.LATENCY
            yield Panel(
                title=_(title, provenance=_words(traces)),
                height_px=height_px,
                lines=[line | {"hovertemplate": unit} | (_dots(theme) if dots else {}) for line in lines],
                from_zero=dots,
            )
    steps = step_parts(data, MOST_BARS)
    if steps:
        yield Panel(
            title=_("parts of a step (%(provenance)s)", provenance=_words(filter(is_part, data.traces))),
            height_px=24 * (len(steps) + 1),
            lines=bars(theme, steps),
            places=tuple(part.words for part in steps),
        )


def _words(traces: Iterable[Trace]) -> str:
    return _(" and ").join(_(word) for word in sorted({trace.rail.provenance.value for trace in traces}))


def _power_lines(theme: Theme, data: RunTraces, limit: int) -> Iterator[dict[str, Any]]:
    """Yield a line a rail, and one for the total where that is a sum of rails of one provenance."""
    rails = [trace for trace in data.traces if trace.rail.quantity in POWER_QUANTITIES]
    words = {trace.rail.key: trace.rail.provenance.value for trace in rails}
    parts: dict[str, list[Curve]] = {}
    for trace in rails:
        curve = rail_curve(trace, data.origin_ns)
        if curve is not None:
            parts.setdefault(trace.part, []).append(curve)
    formula = data.run.total.rails if data.run.total else ()
    keys = list(dict.fromkeys(curve.name for curves in parts.values() for curve in curves))
    for index, key in enumerate(keys):
        own = [curve for curves in parts.values() for curve in curves if curve.name == key]
        yield _power_line(theme, own, index, words[key], limit, whole=formula == (key,))
    if len(formula) > 1 and len({words.get(key) for key in formula}) == 1:
        sums = [total for curves in parts.values() if (total := total_curve(formula, curves)) is not None]
        if sums:
            line = _power_line(theme, sums, 0, words[formula[0]], limit)
            yield line | {
                "name": _("total (%(provenance)s)", provenance=_(words[formula[0]])),
                "line": line["line"] | {"color": theme.ink, "width": 1.8, "dash": "solid"},
            }


def _power_line(
    theme: Theme, curves: Sequence[Curve], index: int, word: str, limit: int, *, whole: bool = False
) -> dict[str, Any]:
    first = curves[0]
    how = ", " + _("slope of its energy counter") if first.differenced else ""
    how += "; " + _("this rail is the total") if whole else ""
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{plain(first.name)} ({_(word)}{how})",
        **_samples(curves, limit, decimals=4),
        "line": {
            "color": theme.colour(index),
            "width": 1.3,
            "dash": _DASHES[index % len(_DASHES)],
            "shape": "vh" if first.differenced else "linear",
        },
        "hovertemplate": "%{y:.3~f} W",
    }


def _lines(
    theme: Theme, traces: Sequence[Trace], origin_ns: int, factor: float, limit: int
) -> Iterator[dict[str, Any]]:
    """Yield a line a zone or processor, or the latencies, through all parts of the run."""
    keys = list(dict.fromkeys(trace.rail.key for trace in traces))
    for index, key in enumerate(keys):
        own = [
            Curve(
                name=trace.rail.name,
                time_s=(trace.time_ns - origin_ns) / 1e9,
                power_w=trace.value * factor,
                differenced=False,
            )
            for trace in traces
            if trace.rail.key == key and len(trace.time_ns)
        ]
        if own:
            yield {
                "type": "scatter",
                "mode": "lines",
                "name": plain(own[0].name),
                **_samples(own, limit, decimals=5),
                "line": {"color": theme.colour(index), "width": 1.3, "dash": _DASHES[index % len(_DASHES)]},
            }


def _dots(theme: Theme) -> dict[str, Any]:
    return {"mode": "markers", "marker": {"color": theme.colour(0), "size": 4, "opacity": 0.65}}


def _samples(curves: Sequence[Curve], limit: int, decimals: int) -> dict[str, list[float | None]]:
    """Return the samples of all parts in order, thinned, with a gap between parts."""
    count = sum(len(curve.time_s) for curve in curves)
    x: list[float | None] = []
    y: list[float | None] = []
    for curve in sorted(curves, key=lambda one: float(one.time_s[0])):
        thinned = thin(curve, max(2, limit * len(curve.time_s) // count - 1))
        gap: list[float | None] = [None] if x else []
        x += gap + _rounded(thinned.time_s, 6)
        y += gap + _rounded(thinned.power_w, decimals)
    return {"x": x, "y": y}


def _rounded(values: NDArray[np.float64], decimals: int) -> list[float | None]:
    found: list[float | None] = np.round(values, decimals).tolist()
    return found
