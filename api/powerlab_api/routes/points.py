"""Workloads, points and single metrics, across sweeps."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response

from powerlab.domain.metric_names import metric_name
from powerlab.protocol.records import FigurePage, PointPage, WorkloadPage
from powerlab.store.reads.points import FigureFilter, PointFilter, list_figures, list_points, list_workloads
from powerlab_api.cursor import from_cursor
from powerlab_api.dependencies import Cursor, Limit, ReadSession
from powerlab_api.paging import cut, place_of
from powerlab_api.responses import written
from powerlab_api.roles import Requires
from powerlab_api.run_filters import RunWish

router = APIRouter(tags=["points"])


@router.get("/workloads", dependencies=[Requires.viewer])
def read_workloads(
    session: ReadSession,
    *,
    model: str | None = None,
    engine: str | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> WorkloadPage:
    """Return what was asked to be run, on whatever device: models and how they are fed, each once."""
    after = place_of(cursor, int)
    found = list_workloads(session, model=model, engine=engine, limit=limit + 1, after=after)
    items, more = cut(found, limit, lambda one: one.id)
    return WorkloadPage(items=items, next_cursor=more)


@router.get("/points", dependencies=[Requires.viewer], response_model=PointPage)
def read_points(
    session: ReadSession,
    *,
    sweep_id: str | None = None,
    device_id: str | None = None,
    point_id: Annotated[str | None, Query(description="the same point has the same id in every sweep")] = None,
    model: str | None = None,
    threads: Annotated[int | None, Query(ge=1)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Return points of sweeps, in the order in which they were asked for."""
    filters = PointFilter(
        sweep_id=sweep_id,
        device_id=device_id,
        point_id=point_id,
        model=model,
        threads=threads,
        limit=limit + 1,
        after=place_of(cursor, int),
    )
    items, more = cut(list_points(session, filters), limit, lambda one: one.number)
    return written(PointPage(items=items, next_cursor=more))


@router.get("/metrics", dependencies=[Requires.viewer], response_model=FigurePage)
def read_figures(
    session: ReadSession,
    runs: RunWish,
    *,
    name: Annotated[str, Query(description="a metric, such as efficiency_img_per_s_per_w or img/s/W")],
    low: Annotated[float | None, Query(description="only figures of at least this")] = None,
    high: Annotated[float | None, Query(description="only figures of at most this")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Return one metric's figures across runs, each with its interval, provenance and what it was measured on."""
    paged = replace(runs, limit=limit + 1, after=from_cursor(cursor))
    found = list_figures(session, FigureFilter(name=metric_name(name), low=low, high=high, runs=paged))
    items, more = cut(found, limit, lambda one: (one.received_at, one.run_id))
    return written(FigurePage(items=items, next_cursor=more))
