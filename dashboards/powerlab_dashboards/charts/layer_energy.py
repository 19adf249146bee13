"""Energy (or time) of every layer in one inference, as bars in execution order."""

from __future__ import annotations

from typing import Any

from powerlab.analysis.roofline import Bound, RooflinePoint, roofline
from powerlab.domain.layers import Layer, LayerProfile
from powerlab.domain.quantity import Metric
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, plain
from powerlab_dashboards.charts.theme import View
from powerlab_dashboards.format import shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_HEIGHT_PX = 340
_BOUND_WORDS = {Bound.MEMORY: mark("memory-bound"), Bound.COMPUTE: mark("compute-bound")}


def build(profile: LayerProfile, view: View) -> Figure | NoChart:
    """Return one bar per layer: energy with its interval, or time if there is no power."""
    with_energy = [layer for layer in profile.layers if layer.energy is not None]
    chosen = with_energy or list(profile.layers)
    if not chosen:
        return NoChart(_("This model has no layers that compute anything."))
    theme, points = view.theme, roofline(profile)
    figures = [layer.energy or layer.time for layer in chosen]
    scale = 1e3 if with_energy else 1.0
    groups: dict[Bound | None, list[int]] = {}
    for place, layer in enumerate(chosen):
        groups.setdefault(points[layer.index].bound, []).append(place)
    data: list[dict[str, Any]] = []
    for number, bound in enumerate((Bound.MEMORY, Bound.COMPUTE, None)):
        places = groups.get(bound, [])
        if not places:
            continue
        colour = theme.colour(number % 2)
        data.append(
            {
                "type": "bar",
                "name": _(_BOUND_WORDS[bound]) if bound else _("layers"),
                "x": [chosen[place].index for place in places],
                "y": [scale * figures[place].value for place in places],
                "error_y": _bars([figures[place] for place in places], scale, theme.muted),
                "marker": {"color": colour},
                "hovertext": [_words(chosen[place], points[chosen[place].index]) for place in places],
                "hoverinfo": "text",
            }
        )
    unit = "mJ" if with_energy else "ms"
    word = figures[0].provenance.value
    return {
        "data": data,
        "layout": layout(
            theme,
            height=_HEIGHT_PX,
            barmode="overlay",
            bargap=0.15,
            showlegend=len(data) > 1,
            hovermode="closest",
            xaxis=axis(theme, _("layer, in execution order"), showgrid=False),
            yaxis=axis(
                theme, _("%(unit)s per inference (%(provenance)s)", unit=unit, provenance=_(word)), rangemode="tozero"
            ),
        ),
    }


def _bars(metrics: list[Metric], scale: float, colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if metric.high is None else scale * (metric.high - metric.value) for metric in metrics],
        "arrayminus": [0.0 if metric.low is None else scale * (metric.value - metric.low) for metric in metrics],
        "color": colour,
        "thickness": 1,
        "width": 0,
    }


def _words(layer: Layer, point: RooflinePoint) -> str:
    lines = [
        f"{layer.index}: {plain(layer.name)}",
        plain(layer.kernel),
        _("%(figure)s per inference", figure=shown(layer.time).sentence),
    ]
    if layer.energy is not None and layer.power is not None:
        lines += [
            f"{shown(layer.energy).sentence} ({_(layer.energy.provenance.value)})",
            _("%(figure)s while repeated alone", figure=shown(layer.power).sentence),
        ]
    lines.append(
        _("%(share)s %% of the inference", share=f"{layer.share_percent:.1f}") + f", {point.gflops:.3g} GFLOP/s"
    )
    return "<br>".join(lines)


CHART = Chart(
    name="layer-energy",
    title=mark("Energy by layer"),
    caption=mark(
        "Energy of each layer in one inference, or time if there is no power. Error bars are 95 % intervals; they "
        "include the sensor's gain error, which all layers share."
    ),
    build=build,
)
