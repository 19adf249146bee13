"""Trends: a point's figures over the sweeps of a device, and where they changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from powerlab.analysis.best import GOALS
from powerlab.analysis.trends.trends import Trend
from powerlab.domain.metric_names import metric_name
from powerlab.store.reads.trends import MOST_SWEEPS, read_trends
from powerlab_api.dependencies import ReadSession
from powerlab_api.responses import written
from powerlab_api.roles import Requires

router = APIRouter(prefix="/trends", tags=["baselines"])


@router.get("", dependencies=[Requires.viewer], response_model=tuple[Trend, ...])
def list_trends(
    session: ReadSession,
    *,
    model: Annotated[str, Query(min_length=1, description="of whatever version; with @sha256: of that one")],
    device: Annotated[str | None, Query(description="the device's id; all devices without it")] = None,
    metric: Annotated[
        list[str] | None, Query(description="may be repeated; without it, those with a best point")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="sweeps to look at, the newest")] = MOST_SWEEPS,
) -> Response:
    """Return the series of each device, point and metric with its change points, the oldest sweep first."""
    names = [metric_name(word) for word in metric or GOALS.values()]
    return written(read_trends(session, model, names, device_id=device, most=limit))
