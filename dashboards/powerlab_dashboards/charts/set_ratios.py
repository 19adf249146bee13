"""Every set over the baseline as a whole, metric by metric: ratios with their intervals around 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.sets import SetComparison
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.quantity import METRICS
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.theme import SYMBOLS, View
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_ROW_PX = 22
_GAP_PX = 34
_DECADE = 10.0
_MARGIN = 1.01
_NEAR_1 = (0.98, 1.02)
"""The axis reaches at least so far."""


def build(compared: Sequence[SetComparison], view: View) -> Figure | NoChart:
    """Return a row for each metric and set; to the right of the line in the middle the set has more."""
    labels = list(dict.fromkeys(beside.label for one in compared for beside in one.against))
    rows = [
        (place, one.metric, beside.label, beside.whole, beside.claimed)
        for place, one in enumerate(compared)
        for beside in one.against
        if beside.whole is not None and beside.whole.value > 0
    ]
    if not rows:
        return NoChart(_("The sets have no ratio: no point in common with figures above 0 of one provenance."))
    theme = view.theme
    step = 1 / (len(labels) + 1)
    legend, legend_px = legend_above([plain(label) for label in labels], narrow=view.narrow)
    data: list[dict[str, Any]] = []
    for number, label in enumerate(labels):
        found = [row for row in rows if row[2] == label]
        colour, symbol = theme.colour(number + 1), SYMBOLS[(number + 1) % len(SYMBOLS)]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": plain(label),
                "x": [ratio.value for _, _, _, ratio, _ in found],
                "y": [place + (number + 1) * step - 0.5 for place, _, _, _, _ in found],
                "error_x": _bars([ratio for _, _, _, ratio, _ in found], colour),
                "marker": {
                    "size": 9,
                    "color": colour,
                    "symbol": [symbol if claimed else f"{symbol}-open" for *_, claimed in found],
                    "line": {"width": 1.5, "color": colour},
                },
                "customdata": [
                    f"<b>{plain(label)}</b><br>{_(METRICS[metric].title)}<br>{ratio_words(ratio)}<br>"
                    f"{verdict_words(ratio, claimed=claimed)}, {_(ratio.provenance.value)}"
                    for _, metric, _, ratio, claimed in found
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            }
        )
    margin = {"l": 16, "r": 20, "t": legend_px + 8, "b": 56}
    count = len(compared)
    ends = [end for _, _, _, ratio, _ in rows for end in (ratio.low, ratio.high, ratio.value) if end]
    low, high = min([*ends, _NEAR_1[0]]), max([*ends, _NEAR_1[1]])
    pad = 0.08 * math.log10(high / low)
    return {
        "data": data,
        "layout": layout(
            theme,
            height=count * (_ROW_PX * len(labels) + _GAP_PX) + margin["t"] + margin["b"],
            margin=margin,
            showlegend=True,
            legend=legend,
            hovermode="closest",
            shapes=[
                {"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
                 "line": {"color": theme.muted, "width": 1.5}}
            ],
            xaxis=axis(
                theme, _("ratio to the baseline (logarithmic)"), type="log",
                range=[math.log10(low) - pad, math.log10(high) + pad], **_ticks(low, high, narrow=view.narrow),
            ),
            yaxis=axis(
                theme, "", tickmode="array", tickvals=list(range(count)),
                ticktext=[_title(one.metric, narrow=view.narrow) for one in compared],
                range=[count - 0.5, -0.5], showgrid=False,
            ),
        ),
    }  # fmt: skip


def _title(metric: str, *, narrow: bool) -> str:
    kind = METRICS[metric]
    title = _(kind.title).partition(" (")[0]
    better = _("more is better") if kind.higher_is_better else _("less is better")
    return f"{title.replace(' ', '<br>', 1) if narrow else title}<br>{better}"


def _ticks(low: float, high: float, *, narrow: bool) -> dict[str, Any]:
    """Return marks at round ratios with 1 among them: in equal steps, over more than a decade by factors."""
    most = 4 if narrow else 8
    if high / low > _DECADE:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        factors = (1, 3) if len(powers) < most else (1,)
        marks = [factor * 10.0**power for power in powers for factor in factors]
    else:
        step = _round_up((high - low) / most)
        marks = [1 + step * number for number in range(math.floor((low - 1) / step), math.ceil((high - 1) / step) + 1)]
    found = [mark for mark in marks if low / _MARGIN <= mark <= high * _MARGIN]
    return {"tickmode": "array", "tickvals": found, "ticktext": [f"{mark:.3g}" for mark in found]}


def _round_up(value: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is not below ``value``."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(step * decade for step in (1, 2, 5, 10) if step * decade >= value * (1 - 1e-9))


def _bars(ratios: Sequence[Ratio], colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [0.0 if one.high is None else one.high - one.value for one in ratios],
        "arrayminus": [0.0 if one.low is None else one.value - one.low for one in ratios],
        "color": colour,
        "thickness": 1.4,
        "width": 4,
    }


CHART = Chart(
    name="set-ratios",
    title=mark("Each set over the baseline"),
    caption=mark(
        "The ratio of all points in common, as a whole, with its 95 % interval. Full marks are differences that may be "
        "claimed; hollow ones may not."
    ),
    build=build,
)
