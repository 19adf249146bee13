"""Log in with a token, and log out."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse

from powerlab.access.authority import Asking, Authority
from powerlab.access.limits import TooManyRequestsError
from powerlab.access.origin import check_origin
from powerlab.access.session_cookie import COOKIE, VALID_S
from powerlab.store.errors import ForbiddenError, UnauthorisedError
from powerlab_dashboards.forms import fields_of, own_address
from powerlab_dashboards.render import HEADERS, page

LOGIN = "/login"
LOGOUT = "/logout"


def add_routes(router: APIRouter, authority: Authority) -> None:
    """Add ``/login`` and ``/logout``."""

    @router.get(LOGIN)
    def login_page(request: Request) -> Response:
        return _form(own_address(request.query_params.get("next", "/")))

    @router.post(LOGIN)
    async def log_in(request: Request) -> Response:
        given = fields_of(await request.body())
        wanted = own_address(given.get("next", "/"))
        try:
            check_origin(request.method, request.headers, browser=True)
            cookie = await run_in_threadpool(
                authority.log_in, given.get("token", "").strip(), Asking.of(request).address
            )
        except TooManyRequestsError as error:
            return _form(wanted, status=429, refusal=str(error), retry_after_s=error.retry_after_s)
        except (UnauthorisedError, ForbiddenError) as error:
            return _form(wanted, status=401 if isinstance(error, UnauthorisedError) else 403, refusal=str(error))
        answer = RedirectResponse(wanted, status_code=303, headers=HEADERS)
        answer.set_cookie(
            COOKIE, cookie, max_age=VALID_S, httponly=True, samesite="lax", secure=request.url.scheme == "https"
        )
        return answer

    @router.post(LOGOUT)
    def log_out(request: Request) -> Response:
        check_origin(request.method, request.headers, browser=True)
        answer = RedirectResponse(LOGIN, status_code=303, headers=HEADERS)
        answer.delete_cookie(COOKIE, httponly=True, samesite="lax", secure=request.url.scheme == "https")
        return answer


def _form(wanted: str, *, status: int = 200, refusal: str = "", retry_after_s: int | None = None) -> Response:
    answer = page("login.html", status=status, section="", wanted=wanted, refusal=refusal[:1].upper() + refusal[1:])
    if retry_after_s is not None:
        answer.headers["Retry-After"] = str(retry_after_s)
    return answer
