"""Time and energy of the layers in one inference, as bars beside their names in execution order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from powerlab.analysis.roofline import Bound, RooflinePoint, roofline
from powerlab.domain.layers import Layer, LayerProfile
from powerlab.domain.quantity import Metric
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.theme import View
from powerlab_dashboards.format import shown
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark, ngettext

MOST_LAYERS = 40
"""Layers that have a bar of their own: the costliest. The others are one bar, so that all bars add up to the whole."""
_LONGEST_NAME = 28
_ROW_PX, _NARROW_ROW_PX = 20, 18
_MARGIN_PX = {"l": 16, "r": 16, "t": 40, "b": 56}
_BOUND_WORDS = {Bound.MEMORY: mark("memory-bound"), Bound.COMPUTE: mark("compute-bound")}


def build(profile: LayerProfile, view: View) -> Figure | NoChart:
    """Return a bar a layer for its time and, where there is power, one for its energy, with intervals."""
    if not profile.layers:
        return NoChart(_("This model has no layers that compute anything."))
    theme, points = view.theme, roofline(profile)
    with_energy = any(layer.energy is not None for layer in profile.layers)
    chosen, others = _chosen(profile.layers)
    rows = [*chosen, None] if others else list(chosen)
    narrow = view.narrow and with_energy
    columns = _columns(profile, with_energy=with_energy)
    bounded = any(point.bound for point in points)
    data: list[dict[str, Any]] = []
    axes: dict[str, Any] = {}
    for number, (read, scale, title, domain) in enumerate(columns):
        suffix = "" if number == 0 else str(number + 1)
        axes[f"xaxis{suffix}"] = axis(
            theme, title, domain=domain, anchor="y", side="top" if number and narrow else "bottom", rangemode="tozero",
            fixedrange=True, nticks=4 if narrow else 7,
        )  # fmt: skip
        for colour, bound in enumerate((Bound.MEMORY, Bound.COMPUTE, None)):
            places = [
                place
                for place, layer in enumerate(rows)
                if (points[layer.index].bound if layer else None) == bound and _figure(layer, others, read) is not None
            ]
            if not places:
                continue
            values = [_figure(rows[place], others, read) or 0.0 for place in places]
            metrics = [None if (layer := rows[place]) is None else read(layer) for place in places]
            data.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "name": _(_BOUND_WORDS[bound]) if bound else _("other layers"),
                    "legendgroup": str(bound),
                    "showlegend": number == 0,
                    "x": [scale * value for value in values],
                    "y": places,
                    "error_x": _bars(metrics, scale, theme.muted),
                    "marker": {"color": theme.colour(colour) if bound else theme.muted if bounded else theme.colour(0)},
                    "hovertext": [_words(rows[place], others, points) for place in places],
                    "hoverinfo": "text",
                    "xaxis": f"x{suffix}",
                    "yaxis": "y",
                }
            )
    names = list(dict.fromkeys(one["name"] for one in data))
    with_legend = len(names) > 1
    legend, legend_px = legend_above(names, narrow=view.narrow)
    margin_px = _MARGIN_PX | {"t": (legend_px if with_legend else 0) + _MARGIN_PX["t"]}
    height_px = (_NARROW_ROW_PX if narrow else _ROW_PX) * len(rows) + margin_px["t"] + margin_px["b"]
    return {
        "data": data,
        "layout": layout(
            theme,
            height=height_px,
            margin=margin_px,
            barmode="overlay",
            bargap=0.2,
            showlegend=with_legend,
            legend=legend,
            hovermode="closest",
            dragmode=False,
            yaxis=axis(
                theme, "", range=[len(rows) - 0.5, -0.5], showgrid=False, fixedrange=True,
                tickvals=list(range(len(rows))), ticktext=[_name(layer, others) for layer in rows], ticks="",
            ),
            **axes,
        ),
    }  # fmt: skip


def _columns(profile: LayerProfile, *, with_energy: bool) -> list[Any]:
    """Return what each panel shows: how to read it, its scale, its axis and where it stands."""
    time_title = _("time, ms (%(provenance)s)", provenance=_(profile.whole.time.provenance.value))
    if not with_energy:
        return [(lambda layer: layer.time, 1.0, time_title, [0.0, 1.0])]
    energy_word = next(layer.energy.provenance.value for layer in profile.layers if layer.energy is not None)
    energy_title = _("energy, mJ (%(provenance)s)", provenance=_(energy_word))
    return [
        (lambda layer: layer.time, 1.0, time_title, [0.0, 0.47]),
        (lambda layer: layer.energy, 1e3, energy_title, [0.53, 1.0]),
    ]


def _chosen(layers: Sequence[Layer]) -> tuple[list[Layer], list[Layer]]:
    """Return the layers with a bar of their own in execution order, and the others."""
    if len(layers) <= MOST_LAYERS:
        return list(layers), []
    costliest = sorted(layers, key=lambda layer: layer.share_percent, reverse=True)[:MOST_LAYERS]
    kept = {layer.index for layer in costliest}
    return [layer for layer in layers if layer.index in kept], [layer for layer in layers if layer.index not in kept]


def _figure(layer: Layer | None, others: Sequence[Layer], read: Any) -> float | None:
    """Return a bar's length in the figure's own unit; of the other layers the sum of those that have the figure."""
    metrics = [read(one) for one in ([layer] if layer else others)]
    known = [metric.value for metric in metrics if metric is not None]
    return sum(known) if known else None


def _name(layer: Layer | None, others: Sequence[Layer]) -> str:
    text = _others(others) if layer is None else layer.name
    half = _LONGEST_NAME // 2
    return plain(text if len(text) <= _LONGEST_NAME else f"{text[:half]}…{text[1 - half :]}")


def _others(others: Sequence[Layer]) -> str:
    return ngettext("%(count)s other layer", "%(count)s other layers", len(others), count=len(others))


def _bars(metrics: Sequence[Metric | None], scale: float, colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [scale * (one.high - one.value) if one and one.high is not None else 0.0 for one in metrics],
        "arrayminus": [scale * (one.value - one.low) if one and one.low is not None else 0.0 for one in metrics],
        "color": colour,
        "thickness": 1,
        "width": 0,
    }


def _words(layer: Layer | None, others: Sequence[Layer], points: Sequence[RooflinePoint]) -> str:
    if layer is None:
        share = sum(one.share_percent for one in others)
        return f"{_others(others)}<br>" + _("%(share)s %% of the inference", share=f"{share:.1f}")
    point = points[layer.index]
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
    title=mark("Layers by time and energy"),
    caption=mark(
        "Each layer in one inference, in execution order; of a long network the costliest layers. Error bars are 95 % "
        "intervals; those of energy include the sensor's gain error, which all layers share."
    ),
    build=build,
)
