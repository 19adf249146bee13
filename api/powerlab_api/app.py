"""The application: routes, error handling and the guard."""

from __future__ import annotations

from functools import cache

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute

from powerlab import __version__
from powerlab.access.authority import Authority
from powerlab.protocol.messages import Problem
from powerlab.store import Store
from powerlab_api import problems
from powerlab_api.admission import Admission
from powerlab_api.event_stream import Streams
from powerlab_api.guard import Guard
from powerlab_api.job_watch import JobWatch
from powerlab_api.metrics import Metrics
from powerlab_api.metrics.requests import RequestMeter
from powerlab_api.reading_hub import ReadingHub
from powerlab_api.roles import check_roles
from powerlab_api.routes import (
    agents,
    audit_events,
    baselines,
    best,
    bookings,
    campaigns,
    clock,
    devices,
    events,
    exports,
    fleet,
    health,
    identifiers,
    jobs,
    labels,
    layers,
    metrics,
    model_uploads,
    models,
    points,
    readings,
    runs,
    sweep_actions,
    sweeps,
    tokens,
    traces,
    trends,
)
from powerlab_api.settings import Settings

PREFIX = "/api/v1"
_ROUTES = (
    *(health, clock, devices, labels, agents, sweep_actions, sweeps, campaigns, jobs, runs, traces, exports, layers),
    *(points, best, identifiers, models, model_uploads, events, tokens, audit_events, bookings),
    *(baselines, trends, readings, fleet),
)


def create_app(store: Store, settings: Settings | None = None) -> FastAPI:
    """Return the service over a database.

    Args:
        store: an open database; the caller closes it.
        settings: how the server behaves; the default asks nobody for a login, as is right on loopback.
    """
    chosen = settings or Settings()
    app = FastAPI(
        title="powerlab",
        version=__version__,
        description="Latency, throughput, watts and images per joule over threads, batch sizes and power modes.",
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,
        redoc_url=None,
    )
    app.state.store = store
    app.state.settings = chosen
    app.state.event_streams = Streams(most=chosen.max_event_streams, lasting_s=chosen.max_event_stream_s)
    app.state.job_watch = JobWatch(store)
    app.state.reading_hub = ReadingHub(store)
    app.state.metrics = Metrics(store)
    app.state.authority = Authority(
        store=store,
        configured_token=chosen.operator_token,
        login_needed=chosen.login_needed or chosen.operator_token is not None,
        limits=chosen.limits,
    )
    problems.install(app)
    app.router.routes.extend(_routes())
    app.add_middleware(Admission, prefix=PREFIX, most_waiting=chosen.most_waiting)
    app.add_middleware(Guard, settings=chosen)
    app.add_middleware(RequestMeter, metrics=app.state.metrics.requests, prefix=PREFIX)
    return app


@cache
def _routes() -> list[BaseRoute]:
    """Return the routes. They hold no state and take FastAPI half a second to prepare, so applications share them."""
    problem = {"model": Problem, "description": "RFC 9457 problem", "content": {problems.MEDIA_TYPE: {}}}
    api = APIRouter(responses={"default": problem})
    for module in _ROUTES:
        check_roles(module.router)
        api.include_router(module.router)
    check_roles(metrics.router)
    parent = APIRouter()
    parent.include_router(api, prefix=PREFIX)
    parent.include_router(metrics.router)
    return parent.routes
