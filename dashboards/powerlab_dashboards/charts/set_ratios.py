"""Every set over the baseline as a whole, metric by metric: ratios with their intervals around 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from powerlab.analysis.comparison import Ratio
from powerlab.analysis.sets import SetComparison
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.quantity import METRICS
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.theme import SYMBOLS, Theme, View
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_ROW_PX = 22
_GAP_PX = 34
_DECADE = 10.0
_MARGIN = 1.01
_NEAR_1 = (0.98, 1.02)
"""The axis reaches at least so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A ratio, and the place of its metric from the top."""

    place: int
    metric: str
    label: str
    ratio: Ratio
    claimed: bool

    def words(self) -> str:
        """Return what is said of it on hovering."""
        said = verdict_words(self.ratio, claimed=self.claimed)
        title, provenance = _(METRICS[self.metric].title), _(self.ratio.provenance.value)
        return f"<b>{plain(self.label)}</b><br>{title}<br>{ratio_words(self.ratio)}<br>{said}, {provenance}"


def build(compared: Sequence[SetComparison], view: View) -> Figure | NoChart:
    """Return a row for each metric and set; to the right of the line in the middle the set has more."""
    labels = list(dict.fromkeys(beside.label for one in compared for beside in one.against))
    rows = [
        _Row(place=place, metric=one.metric, label=beside.label, ratio=beside.whole, claimed=beside.claimed)
        for place, one in enumerate(compared)
        for beside in one.against
        if beside.whole is not None and beside.whole.value > 0
    ]
    if not rows:
        return NoChart(_("The sets have no ratio: no point in common with figures above 0 of one provenance."))
    theme = view.theme
    legend, legend_px = legend_above([plain(label) for label in labels], narrow=view.narrow)
    data = [
        _trace([row for row in rows if row.label == label], label, theme, number + 1, 1 / (len(labels) + 1))
        for number, label in enumerate(labels)
    ]
    margin = {"l": 16, "r": 20, "t": legend_px + 8, "b": 56}
    count = len(compared)
    ends = [end for row in rows for end in (row.ratio.low, row.ratio.high, row.ratio.value) if end]
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


def _trace(rows: Sequence[_Row], label: str, theme: Theme, number: int, step: float) -> dict[str, Any]:
    """Return the ratios of one set, the ``number``-th after the baseline, each in its line of the metric's row."""
    colour, symbol = theme.colour(number), SYMBOLS[number % len(SYMBOLS)]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": plain(label),
        "x": [row.ratio.value for row in rows],
        "y": [row.place + number * step - 0.5 for row in rows],
        "error_x": _bars([row.ratio for row in rows], colour),
        "marker": {
            "size": 9,
            "color": colour,
            "symbol": [symbol if row.claimed else f"{symbol}-open" for row in rows],
            "line": {"width": 1.5, "color": colour},
        },
        "customdata": [row.words() for row in rows],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


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
