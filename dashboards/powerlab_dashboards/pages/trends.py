"""A model's figures over the sweeps of its devices: series with their changes, one of them as a chart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response

from powerlab.analysis.dimensions import in_words, varying
from powerlab.analysis.trends.trends import Trend
from powerlab.domain.quantity import METRICS
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab_dashboards.charts.registry import TREND_CHARTS
from powerlab_dashboards.charts.trend import change_words
from powerlab_dashboards.format import significant
from powerlab_dashboards.pages.figures import figure_response, view_of
from powerlab_dashboards.pages.trend_series import (
    SWEEPS,
    TrendReader,
    chosen_series,
    measured_models,
    name_of,
    newest_change,
)
from powerlab_dashboards.render import not_found, page

SERIES_SHOWN = 25
"""Series per page."""
_MOST = 1_000_000


def add_routes(router: APIRouter, store: Store) -> None:
    """Add ``/trends`` and the figures of its charts."""
    reader = TrendReader(store)

    @router.get("/trends")
    def trends_page(
        model: str = "", device: str = "", series: str = "", after: Annotated[int, Query(ge=0, le=_MOST)] = 0
    ) -> Response:
        """Show the series of a model, the one with the most sweeps unless another is asked for."""
        try:
            with store.session() as session:
                models = measured_models(session)
                chosen = model or (models[0].model if models else "")
                found = reader.series(session, chosen, device) if chosen else ()
        except NotFoundError as error:
            return not_found(str(error))
        one = chosen_series(found, series)
        return page(
            "trends.html",
            section="trends",
            models=models,
            model=chosen,
            device=device,
            devices=next((each.devices for each in models if each.model == chosen), ()),
            series=found[after : after + SERIES_SHOWN],
            series_count=len(found),
            after=after,
            series_shown=SERIES_SHOWN,
            chosen=one,
            chosen_name=name_of(one) if one else "",
            series_address=lambda trend: _address(chosen, device, name_of(trend)),
            chart_address=lambda name: _address(chosen, device, name_of(one) if one else "", f"/trends/charts/{name}"),
            point_name=varying(trend.point for trend in found),
            whole_name=in_words,
            newest_change=newest_change,
            change_words=change_words,
            sparkline=sparkline,
            significant=significant,
            metric_kinds=METRICS,
            provenance_note=_common_provenance(found),
            sweep_limit=SWEEPS,
            charts=TREND_CHARTS.values(),
        )

    @router.get("/trends/charts/{name}")
    def trend_figure(  # noqa: PLR0917 - what FastAPI fills in
        name: str, model: str = "", device: str = "", series: str = "", theme: str = "light", narrow: bool = False
    ) -> Response:
        if name not in TREND_CHARTS:
            return not_found(f"There is no chart named {name}; there are {', '.join(TREND_CHARTS)}.")
        try:
            with store.session() as session:
                found = reader.series(session, model, device)
        except NotFoundError as error:
            return not_found(str(error))
        one = next((trend for trend in found if name_of(trend) == series), None)
        return figure_response(TREND_CHARTS[name].build(one, view_of(theme, narrow=narrow)))


def _common_provenance(found: Sequence[Trend]) -> str:
    """Return the provenance that all series share, to be said once in the heading; empty where they differ."""
    words = {trend.provenance.value for trend in found}
    return words.pop() if len(words) == 1 else ""


def sparkline(trend: Trend, width: int = 96, height: int = 20) -> str:
    """Return the points of an SVG polyline: the values from the first to the last sweep, the highest on top."""
    values = [one.value for one in trend.values]
    low, high = min(values), max(values)
    step = width / max(1, len(values) - 1)
    reach = high - low or 1.0
    return " ".join(
        f"{place * step:.1f},{2 + (height - 4) * (high - value) / reach:.1f}" for place, value in enumerate(values)
    )


def _address(model: str, device: str, series: str, path: str = "/trends") -> str:
    pairs = [("model", model), *([("device", device)] if device else []), ("series", series)]
    return f"{path}?{urlencode(pairs)}"
