"""Pages and figures travel compressed."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_LEAST_BYTES = 1000
_LEVEL = 6


class CompressedPages:
    """Middleware that compresses pages and the figures of charts, where the browser takes that.

    Neither the API's answers, whose streams it would hold up, nor pages that repeat the query of their address: how
    well such a page compresses would tell a stranger what else is on it (the attack BREACH).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressed = GZipMiddleware(app, minimum_size=_LEAST_BYTES, compresslevel=_LEVEL)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        await (self._compressed if _may_be_compressed(scope) else self._app)(scope, receive, send)


def _may_be_compressed(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["path"] == "/metrics" or scope["path"].startswith("/api/"):
        return False
    return not scope["query_string"] or "/charts/" in scope["path"]
