"""Metrics in the text format that the scraper accepts."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from powerlab_api.metrics import Metrics
from powerlab_api.roles import Requires

router = APIRouter(include_in_schema=False)


@router.get("/metrics", dependencies=[Requires.viewer])
def read_metrics(request: Request) -> Response:
    """Answer with OpenMetrics 1.0 where the request accepts it, else with Prometheus' own older format.

    https://github.com/prometheus/OpenMetrics/blob/v1.0.0/specification/OpenMetrics.md
    """
    metrics: Metrics = request.app.state.metrics
    body, kind = metrics.text(request.headers.get("accept", ""))
    return Response(body, media_type=kind)
