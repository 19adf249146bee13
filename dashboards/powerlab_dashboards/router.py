"""The dashboard as one router: :func:`create_router` is all that a server needs."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.routing import APIRoute

from powerlab.access.authority import Authority
from powerlab.store import Store
from powerlab_dashboards import assets
from powerlab_dashboards.pages import (
    audit,
    devices,
    home,
    layers,
    login,
    run,
    studies,
    sweep,
    sweep_actions,
    sweep_runs,
)
from powerlab_dashboards.render import not_found
from powerlab_dashboards.visitor import guarded_route

PAGES = (home, sweep, sweep_actions, sweep_runs, run, layers, audit, studies, devices)
STATIC = "/static/{name}"
OPEN = frozenset({login.LOGIN, login.LOGOUT, STATIC})
"""What everybody may open: without these nobody could log in."""


def create_router(store: Store, authority: Authority | None = None) -> APIRouter:
    """Return the pages ``/``, ``/sweeps/{id}``, ``/runs/{id}``, ``/runs/{id}/audit`` and ``/devices``, and their files.

    Include it last: its final route answers every other address outside ``/api`` with a page that says "not found".

    Args:
        store: where the pages read from; only the buttons of a sweep write.
        authority: knows who asks; without one nobody has to log in.

    Raises:
        PowerlabError: the ``plotly`` package, whose script the pages serve, is not installed.
    """
    assets.plotly_name()
    asked = authority or Authority(store=store)
    router = APIRouter(include_in_schema=False, route_class=guarded_route(asked, OPEN))
    login.add_routes(router, asked)
    for page in PAGES:
        page.add_routes(router, store)

    @router.get(STATIC)
    def static(request: Request, name: str) -> Response:
        return assets.respond(request, name) or not_found(f"There is no file named {name}.")

    @router.get("/{path:path}")
    def anything_else(request: Request, path: str) -> Response:
        if path == "api" or path.startswith("api/"):
            if request.method == "HEAD":  # an address of the API, which may be there, but answers GET alone
                raise HTTPException(405, headers={"allow": "GET"})
            raise HTTPException(404)
        return not_found(f"Nothing lies at /{path}.")

    for route in router.routes:
        if isinstance(route, APIRoute) and route.methods == {"GET"}:
            route.methods.add("HEAD")  # as GET, without the body, which the server cuts off (RFC 9110, 9.1)
    return router
