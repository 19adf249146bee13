"""The dashboard as one router; a server only needs :func:`create_router`."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.routing import APIRoute

from powerlab.access.authority import Authority
from powerlab.store import Store
from powerlab_dashboards import assets
from powerlab_dashboards.pages import (
    admin,
    audit,
    campaign,
    compare,
    device,
    devices,
    home,
    jobs,
    layers,
    login,
    models,
    new_sweep,
    preferences,
    run,
    studies,
    sweep,
    sweep_actions,
    sweep_points,
    sweep_runs,
    trends,
)
from powerlab_dashboards.render import not_found
from powerlab_dashboards.visitor import guarded_route

PAGES = (
    home,
    new_sweep,
    sweep,
    sweep_actions,
    sweep_points,
    sweep_runs,
    run,
    models,
    compare,
    campaign,
    trends,
    layers,
    audit,
    studies,
    devices,
    device,
    jobs,
    admin,
)
STATIC = "/static/{name}"
OPEN = frozenset({login.LOGIN, login.LOGOUT, preferences.LANGUAGE, preferences.THEME, STATIC})
"""Routes that need no login, so that visitors can log in."""


def create_router(store: Store, authority: Authority | None = None) -> APIRouter:
    """Return the pages ``/``, ``/sweeps/{id}``, ``/runs/{id}``, ``/devices/{id}`` and so on, and their files.

    Include it last: its last route answers every other address outside ``/api`` with a "not found" page.

    Args:
        store: the pages read from it; only the buttons of a sweep and the form for a new one write to it.
        authority: identifies visitors; without one no login is needed.
    """
    asked = authority or Authority(store=store)
    router = APIRouter(include_in_schema=False, route_class=guarded_route(asked, OPEN))
    login.add_routes(router, asked)
    preferences.add_routes(router)
    for page in PAGES:
        page.add_routes(router, store)

    @router.get(STATIC)
    def static(request: Request, name: str) -> Response:
        return assets.respond(request, name) or not_found(f"There is no file named {name}.")

    @router.get("/{path:path}")
    def anything_else(request: Request, path: str) -> Response:
        if path == "api" or path.startswith("api/"):
            if request.method == "HEAD":  # an address of the API, which may exist but only supports GET
                raise HTTPException(405, headers={"allow": "GET"})
            raise HTTPException(404)
        return not_found(f"There is no page at /{path}.")

    for route in router.routes:
        if isinstance(route, APIRoute) and route.methods == {"GET"}:
            route.methods.add("HEAD")  # as GET, without the body, which the server cuts off (RFC 9110, 9.1)
    return router
