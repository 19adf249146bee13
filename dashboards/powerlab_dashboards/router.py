"""The dashboard as one router: :func:`create_router` is all that a server needs."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.routing import APIRoute

from powerlab.store import Store
from powerlab_dashboards import assets
from powerlab_dashboards.pages import audit, devices, home, layers, run, sweep
from powerlab_dashboards.render import not_found

PAGES = (home, sweep, run, layers, audit, devices)


def create_router(store: Store) -> APIRouter:
    """Return the pages ``/``, ``/sweeps/{id}``, ``/runs/{id}``, ``/runs/{id}/audit`` and ``/devices``, and their files.

    Include it last: its final route answers every other address outside ``/api`` with a page that says "not found".

    Args:
        store: where the pages read from; they never write.

    Raises:
        PowerlabError: the ``plotly`` package, whose script the pages serve, is not installed.
    """
    assets.plotly_name()
    router = APIRouter(include_in_schema=False)
    for page in PAGES:
        page.add_routes(router, store)

    @router.get("/static/{name}")
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
        if isinstance(route, APIRoute) and route.methods is not None:
            route.methods.add("HEAD")  # as GET, without the body, which the server cuts off (RFC 9110, 9.1)
    return router
