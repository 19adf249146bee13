"""The visitor of a page: login check, and what templates know about the visitor."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from powerlab.access.authority import Asking, Authority
from powerlab.access.principal import Principal
from powerlab.protocol.access import Role
from powerlab.store.errors import ForbiddenError, UnauthorisedError
from powerlab_dashboards import language, theme

visitor: ContextVar[Principal | None] = ContextVar("visitor", default=None)
"""The logged-in visitor; None if no login is needed, and on the login page."""
administers: ContextVar[bool] = ContextVar("administers", default=False)
"""Whether the visitor is an admin, so that pages show the way to what only admins see."""
address: ContextVar[str] = ContextVar("address", default="/")
"""The path and query of the page that is being made."""


@dataclass(frozen=True, slots=True)
class Visit:
    """Who requests a page, logged in or not, and the token for the page's forms."""

    principal: Principal
    form_token: str

    @property
    def may_operate(self) -> bool:
        """Whether they may act on sweeps."""
        return self.principal.may_act_as(Role.OPERATOR)

    @property
    def may_administer(self) -> bool:
        """Whether they may see tokens and the log of who did what."""
        return self.principal.may_act_as(Role.ADMIN)


def visit_of(request: Request) -> Visit:
    """Return the visit of a request to a guarded route."""
    visit: Visit = request.state.visit
    return visit


_Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def guarded_route(authority: Authority, open_paths: frozenset[str]) -> type[APIRoute]:
    """Return a route class that admits viewers only and redirects others' browsers to the login page.

    Args:
        authority: identifies visitors.
        open_paths: routes that need no login.
    """

    class _GuardedRoute(APIRoute):
        def get_route_handler(self) -> _Handler:
            handler = super().get_route_handler()

            async def opened(request: Request) -> Response:
                prefer(request)
                return await handler(request)

            if self.path in open_paths:
                return opened

            async def guarded(request: Request) -> Response:
                try:
                    visit = await run_in_threadpool(_visit, authority, Asking.of(request))
                except UnauthorisedError:
                    if "text/html" not in request.headers.get("accept", ""):
                        raise
                    return RedirectResponse(_login_for(request), status_code=303)
                if not visit.principal.may_act_as(Role.VIEWER):
                    raise ForbiddenError("agent tokens cannot open pages.")
                request.state.visit = visit
                visitor.set(visit.principal if authority.login_needed else None)
                administers.set(visit.may_administer)
                return await opened(request)

            return guarded

    return _GuardedRoute


def _visit(authority: Authority, asking: Asking) -> Visit:
    principal = authority.identify(asking)
    return Visit(principal, authority.form_token(principal, asking))


def prefer(request: Request) -> None:
    """Make the pages of this request in the visitor's language and theme."""
    asked = request.headers.get("accept-language", "")
    language.language.set(language.chosen(request.cookies.get(language.COOKIE), asked))
    theme.theme.set(theme.chosen(request.cookies.get(theme.COOKIE)))
    address.set(_address(request))


def _address(request: Request) -> str:
    return request.url.path + (f"?{request.url.query}" if request.url.query else "")


def _login_for(request: Request) -> str:
    wanted = _address(request)
    return "/login" if wanted == "/" else f"/login?next={quote(wanted, safe='')}"
