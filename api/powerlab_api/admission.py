"""Admission control: respond 503 at once (RFC 9110, section 15.6.4) if a request would have to queue for long.

What asks the database runs in threads, no more of them than there are connections for. Requests that wait for a thread
are a queue; a thousand agents that come back together after a restart would fill it, each would wait longer than it is
worth, and heartbeats with them. Agents that are told "later" try again after random times. Requests that wait for
something else, for a job or for events, hold no thread and count for nothing here.
"""

from __future__ import annotations

import secrets

from anyio.to_thread import current_default_thread_limiter
from starlette.types import ASGIApp, Receive, Scope, Send

from powerlab.store.database import CONNECTIONS
from powerlab_api.problems import problem

_LONGEST_WAIT_S = 3


class Admission:
    """ASGI middleware.

    Args:
        app: what answers the requests that are let in.
        prefix: only addresses below it are ever refused; who watches the server is not.
        most_waiting: how long the queue may be.
    """

    def __init__(self, app: ASGIApp, prefix: str, most_waiting: int) -> None:
        self._app = app
        self._prefix = prefix
        self._most_waiting = most_waiting

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "http":
            threads = current_default_thread_limiter()
            threads.total_tokens = CONNECTIONS
            if threads.statistics().tasks_waiting >= self._most_waiting and scope["path"].startswith(self._prefix):
                wait_s = 1 + secrets.randbelow(_LONGEST_WAIT_S)
                answer = problem(503, f"the server is busy; ask again in {wait_s} s.", "busy", scope["path"])
                answer.headers["Retry-After"] = str(wait_s)
                await answer(scope, receive, send)
                return
        await self._app(scope, receive, send)
