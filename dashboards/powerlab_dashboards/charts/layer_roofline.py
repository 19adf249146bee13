"""Roofline model of the layers (Williams et al., 2009)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from powerlab.analysis.roofline import RooflinePoint, ridge_flop_per_byte, roofline
from powerlab.domain.layers import Layer, LayerProfile, Roof
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.theme import SYMBOLS, Theme, View
from powerlab_dashboards.format import shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_HEIGHT_PX = 420
_LEAST_PX, _MOST_PX = 6.0, 26.0


def build(profile: LayerProfile, view: View) -> Figure | NoChart:
    """Return one point per layer that computes; its area grows with its share of the inference."""
    placed = [
        (layer, point)
        for layer, point in zip(profile.layers, roofline(profile), strict=True)
        if point.flop_per_byte > 0 and point.gflops > 0
    ]
    if not placed:
        return NoChart(_("No layer of this model performs floating-point operations."))
    theme = view.theme
    operators = list(dict.fromkeys(layer.operator for layer, _ in placed))
    data = [
        _points(theme, number, operator, [one for one in placed if one[0].operator == operator])
        for number, operator in enumerate(operators)
    ]
    if profile.roof is not None:
        data.append(_roof(theme, profile.roof, [point for _, point in placed]))
    legend, legend_px = legend_above([trace["name"] for trace in data], narrow=view.narrow)
    word = profile.whole.time.provenance.value
    return {
        "data": data,
        "layout": layout(
            theme,
            height=_HEIGHT_PX + legend_px,
            margin={"l": 64, "r": 24, "t": legend_px + 16, "b": 56},
            showlegend=True,
            legend=legend,
            hovermode="closest",
            xaxis=axis(theme, _("arithmetic intensity, FLOP/B"), type="log", dtick=1),
            yaxis=axis(theme, f"GFLOP/s ({_(word)})", type="log", dtick=1),
        ),
    }


def _points(theme: Theme, number: int, operator: str, members: Sequence[tuple[Layer, RooflinePoint]]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(operator),
        "x": [point.flop_per_byte for _, point in members],
        "y": [point.gflops for _, point in members],
        "marker": {
            "size": [_size_px(layer.share_percent) for layer, _ in members],
            "color": theme.colour(number),
            "symbol": SYMBOLS[number % len(SYMBOLS)],
            "opacity": 0.75,
            "line": {"color": theme.surface, "width": 1},
        },
        "hovertext": [_words(layer, point) for layer, point in members],
        "hoverinfo": "text",
    }


def _size_px(share_percent: float) -> float:
    return min(_MOST_PX, _LEAST_PX + 5 * math.sqrt(max(0.0, share_percent)))


def _roof(theme: Theme, roof: Roof, points: Sequence[RooflinePoint]) -> dict[str, Any]:
    ridge = ridge_flop_per_byte(roof)
    ends = [ridge, *(point.flop_per_byte for point in points)]
    left, right = min(ends) / 2, max(ends) * 2
    return {
        "type": "scatter",
        "mode": "lines",
        "name": _(
            "roofline: %(peak)s GFLOP/s, %(memory)s GB/s (measured)",
            peak=f"{roof.peak_gflops:.0f}",
            memory=f"{roof.memory_gb_per_s:.1f}",
        ),
        "x": [left, ridge, right],
        "y": [left * roof.memory_gb_per_s, roof.peak_gflops, roof.peak_gflops],
        "line": {"color": theme.muted, "width": 1.5},
        "hoverinfo": "skip",
    }


def _words(layer: Layer, point: RooflinePoint) -> str:
    reached = ""
    if point.percent_of_roof is not None:
        reached = ", " + _("%(share)s %% of the roofline", share=f"{point.percent_of_roof:.0f}")
    return "<br>".join(
        (
            f"{layer.index}: {plain(layer.name)}",
            plain(layer.kernel),
            f"{point.gflops:.3g} GFLOP/s at {point.flop_per_byte:.3g} FLOP/B{reached}",
            _("%(figure)s per inference", figure=shown(layer.time).sentence),
        )
    )


CHART = Chart(
    name="layer-roofline",
    title=mark("Roofline"),
    caption=mark(
        "Compute speed against arithmetic intensity; larger markers take a larger share of the inference. Layers above "
        "the roofline find their data in caches or save multiplications (Winograd). Layers that only move data are "
        "omitted; simulated boards have no roofline."
    ),
    build=build,
)
