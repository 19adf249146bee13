"""Errors as pages: where a browser opened an address, a problem (RFC 9457) reaches it as a page that says the same.

It wraps the whole application, so it also catches what no route answers: a busy server, a lost database, a failure.
"""

from __future__ import annotations

import json

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from powerlab_dashboards.language import mark
from powerlab_dashboards.render import page
from powerlab_dashboards.visitor import prefer

_TITLES = {
    401: mark("Not logged in"),
    403: mark("Not allowed"),
    404: mark("Page not found"),
    405: mark("This address cannot be used like that"),
    422: mark("This address has a value that does not fit"),
    429: mark("Too many requests"),
    500: mark("The server failed"),
    503: mark("The server is not ready"),
}
_OTHERS = mark("This did not work")
_KEPT = ("retry-after", "www-authenticate")


class ProblemPages:
    """Middleware that answers browsers with pages where the application answers with problems."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; everything but a problem passes unchanged."""
        if scope["type"] != "http" or not _opened_by_a_browser(scope):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def watched(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_problem(message):
                start = message
            elif start is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    await _send_page(Request(scope), start, body, receive, send)

        await self._app(scope, receive, watched)


def _opened_by_a_browser(scope: Scope) -> bool:
    path = scope["path"]
    outside = path not in {"/metrics", "/api"} and not path.startswith("/api/")
    return outside and "text/html" in Headers(scope=scope).get("accept", "")


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "").startswith("application/problem+json")


async def _send_page(request: Request, start: Message, body: bytes, receive: Receive, send: Send) -> None:
    problem = json.loads(body)
    prefer(request)
    answer = page(
        "problem.html",
        status=start["status"],
        section="",
        title=_TITLES.get(start["status"], _OTHERS),
        sentence=problem["detail"],
        again=request.method == "GET" and start["status"] >= 429,
    )
    headers = Headers(raw=start["headers"])
    answer.headers.update({name: headers[name] for name in _KEPT if name in headers})
    await answer(request.scope, receive, send)
