"""The switch between languages in the footer of every page: a link that sets a cookie and leads back."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from powerlab_dashboards.forms import own_address
from powerlab_dashboards.language import COOKIE, LANGUAGES
from powerlab_dashboards.render import HEADERS, not_found

LANGUAGE = "/language/{tag}"
_VALID_S = 365 * 24 * 3600


def add_routes(router: APIRouter) -> None:
    """Add ``/language/{tag}``."""

    @router.get(LANGUAGE)
    def choose(request: Request, tag: str) -> Response:
        if tag not in LANGUAGES:
            return not_found(f"There is no language {tag}; there are {', '.join(LANGUAGES)}.")
        answer = RedirectResponse(own_address(request.query_params.get("next", "/")), status_code=303, headers=HEADERS)
        answer.set_cookie(
            COOKIE, tag, max_age=_VALID_S, httponly=True, samesite="lax", secure=request.url.scheme == "https"
        )
        return answer
