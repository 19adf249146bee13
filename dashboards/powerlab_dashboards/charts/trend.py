"""A point's figure over its sweeps: values with intervals, the mean between changes, the changes, new versions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import Any

from powerlab.analysis.trends.trends import Trend, TrendValue
from powerlab.analysis.trends.versions import differences
from powerlab.domain.quantity import METRICS, Provenance
from powerlab_dashboards.charts.base import Chart, Figure, NoChart, axis, layout, legend_above, plain
from powerlab_dashboards.charts.theme import Theme, View
from powerlab_dashboards.format import count, fixed, significant
from powerlab_dashboards.language import gettext as _
from powerlab_dashboards.language import mark

_HEIGHT_PX = 380
_ROOM = 0.12
"""Room above and below the values, as a part of their range."""
_MOST_NAMED = 3


def build(trend: Trend | None, view: View) -> Figure | NoChart:
    """Return the series, the oldest sweep first; None where there is no such series."""
    if trend is None or not trend.values:
        return NoChart(_("No sweep has a valid run of this point."))
    theme, kind = view.theme, METRICS[trend.metric]
    ends = [end for one in trend.values for end in (one.low, one.high, one.value) if end is not None]
    low, high = min(ends), max(ends)
    room = _ROOM * (high - low or abs(high) or 1.0)
    bottom, top = low - room, high + room
    data = [_values(trend, theme), *_means(trend, theme), *_versions(trend, theme, bottom)]
    if trend.changes:
        data.append(_key(_("change"), {"mode": "lines", "line": {"color": theme.colour(1), "width": 1.5}}))
    legend, legend_px = legend_above(
        [trace["name"] for trace in data if trace.get("showlegend", True)], narrow=view.narrow
    )
    return {
        "data": data,
        "layout": layout(
            theme,
            height=_HEIGHT_PX + legend_px,
            margin={"l": 64, "r": 24, "t": legend_px + 36, "b": 48},
            showlegend=True,
            legend=legend,
            hovermode="closest",
            xaxis=axis(theme, "", type="date"),
            yaxis=axis(
                theme, f"{_(kind.title)}, {kind.unit} ({_(trend.provenance.value)})", range=[bottom, top]
            ),
            shapes=[_line(one, theme) for one in _moments(trend)],
            annotations=[
                {"x": at, "y": 1, "yref": "paper", "yanchor": "bottom", "text": text, "showarrow": False,
                 "font": {"size": 12, "color": theme.colour(1)}}
                for at, text in zip(_moments(trend), _sizes(trend), strict=True)
            ],
        ),
    }  # fmt: skip


def change_words(ratio: float) -> str:
    """Return a change of the mean in percent, such as ``−8.9 %``."""
    percent = 100 * (ratio - 1)
    text = fixed(percent, max(0, 1 - math.floor(math.log10(abs(percent)))) if percent else 0)
    return f"{'+' if percent > 0 else ''}{text} %"


def _values(trend: Trend, theme: Theme) -> dict[str, Any]:
    hollow = "" if trend.provenance is Provenance.MEASURED else "-open"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": _("mean of a sweep's repeats"),
        "x": [one.started_at for one in trend.values],
        "y": [one.value for one in trend.values],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0.0 if one.high is None else one.high - one.value for one in trend.values],
            "arrayminus": [0.0 if one.low is None else one.value - one.low for one in trend.values],
            "color": theme.colour(0),
            "thickness": 1.2,
            "width": 3,
        },
        "marker": {
            "size": 8,
            "color": theme.colour(0),
            "symbol": f"circle{hollow}",
            "line": {"width": 1.5, "color": theme.colour(0)},
        },
        "customdata": [_words(trend, one) for one in trend.values],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _words(trend: Trend, one: TrendValue) -> str:
    spread = ""
    if one.low is not None and one.high is not None:
        spread = f" ({significant(one.low, 4)} – {significant(one.high, 4)})"
    return (
        f"<b>{significant(one.value, 4)} {METRICS[trend.metric].unit}</b>{spread}<br>"
        f"{plain(one.started_at[:16].replace('T', ' '))}<br>{count(one.repeats, 'repeat')}"
    )


def _means(trend: Trend, theme: Theme) -> list[dict[str, Any]]:
    """Return a line for each part between two changes, at its geometric mean."""
    starts = [place for place, one in enumerate(trend.values) if one.sweep_id in _first_after(trend)]
    parts = [trend.values[start:end] for start, end in pairwise([0, *starts, len(trend.values)])]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": _("mean between changes"),
            "showlegend": number == 0,
            "x": [part[0].started_at, part[-1].started_at],
            "y": [math.exp(fmean(math.log(one.value) for one in part))] * 2,
            "line": {"color": theme.ink, "width": 1.5},
            "hoverinfo": "skip",
        }
        for number, part in enumerate(parts)
        if part
    ]


def _versions(trend: Trend, theme: Theme, bottom: float) -> list[dict[str, Any]]:
    """Return marks at the foot of the chart where a sweep was measured with another version than the one before."""
    found = [
        (after, differences(before.versions, after.versions))
        for before, after in pairwise(trend.values)
        if differences(before.versions, after.versions)
    ]
    if not found:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": _("other versions from here"),
            "x": [one.started_at for one, _changed in found],
            "y": [bottom] * len(found),
            "cliponaxis": False,
            "marker": {"size": 10, "symbol": "triangle-up", "color": theme.colour(2)},
            "customdata": [_named(changed) for _one, changed in found],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    ]


def _named(changed: Sequence[Any]) -> str:
    said = [plain(str(one)) for one in changed[:_MOST_NAMED]]
    more = len(changed) - len(said)
    return "<br>".join([*said, *([_("and %(number)s more", number=more)] if more else [])])


def _first_after(trend: Trend) -> set[str]:
    return {change.first_after for change in trend.changes}


def _moments(trend: Trend) -> list[str]:
    """Return when the changes were: the first sweep after each."""
    at = {one.sweep_id: one.started_at for one in trend.values}
    return [at[change.first_after] for change in trend.changes]


def _sizes(trend: Trend) -> list[str]:
    return [change_words(change.ratio) for change in trend.changes]


def _line(at: str, theme: Theme) -> dict[str, Any]:
    return {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "layer": "below",
            "line": {"color": theme.colour(1), "width": 1.5}}  # fmt: skip


def _key(name: str, look: dict[str, Any]) -> dict[str, Any]:
    return {"type": "scatter", "x": [None], "y": [None], "name": name, **look}


CHART = Chart(
    name="trend",
    title=mark("Over time"),
    caption=mark(
        "Each mark is a sweep, with the 95 % interval of its repeats' scatter. Vertical lines are changes of the mean "
        "that chance does not explain; triangles are sweeps with other versions of the software than the one before."
    ),
    build=build,
)
