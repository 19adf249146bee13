"""Cross-site request forgery: a browser adds cookies, and reaches loopback, also for other sites' pages.

So a write that is not proved by a bearer token, which no browser adds by itself, must come from a page of this server.
What a browser says about that, no page can change: Sec-Fetch-Site (W3C Fetch Metadata), or in older ones Origin
(RFC 6454).
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from powerlab.store.errors import ForbiddenError

_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})


def check_origin(method: str, headers: Mapping[str, str], *, browser: bool) -> None:
    """Let a request pass that only reads, or comes from a page of this server.

    Args:
        method: of the request; those that only read are safe (RFC 9110, 9.2.1).
        headers: of the request, whatever case their names have.
        browser: whether it must be one, because a program would have sent a bearer token.

    Raises:
        ForbiddenError: another site's page sent it, or nothing says that none did.
    """
    if method in _SAFE or _is_own(headers, browser=browser):
        return
    raise ForbiddenError(
        "this did not come from a page of this server; programs send a token (Authorization: Bearer) instead."
    )


def _is_own(headers: Mapping[str, str], *, browser: bool) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("origin")
    if origin is None:
        return not browser
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower() != ""
    except ValueError:
        return False
