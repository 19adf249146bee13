"""The switches at the foot of every page, for language and theme: links that set a cookie and lead back."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from powerlab_dashboards import language, theme
from powerlab_dashboards.forms import own_address
from powerlab_dashboards.render import HEADERS, not_found

LANGUAGE = "/language/{tag}"
THEME = "/theme/{name}"
_VALID_S = 365 * 24 * 3600


def add_routes(router: APIRouter) -> None:
    """Add ``/language/{tag}`` and ``/theme/{name}``."""

    @router.get(LANGUAGE)
    def choose_language(request: Request, tag: str) -> Response:
        return _chosen(request, language.COOKIE, tag, language.LANGUAGES)

    @router.get(THEME)
    def choose_theme(request: Request, name: str) -> Response:
        return _chosen(request, theme.COOKIE, name, theme.THEMES)


def _chosen(request: Request, cookie: str, value: str, choices: Mapping[str, str]) -> Response:
    if value not in choices:
        return not_found(f"There is no choice named {value}; there are {', '.join(choices)}.")
    answer = RedirectResponse(own_address(request.query_params.get("next", "/")), status_code=303, headers=HEADERS)
    answer.set_cookie(
        cookie, value, max_age=_VALID_S, httponly=True, samesite="lax", secure=request.url.scheme == "https"
    )
    return answer
