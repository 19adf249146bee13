"""Count and duration of the requests that this process handled."""

from __future__ import annotations

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Up to a minute: an agent's request for a job waits on purpose."""


class RequestMetrics:
    """Counts by route, method and status; never by address, of which there are as many as anybody cares to ask for."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._count = Counter(
            "powerlab_http_requests",
            "Requests answered by this process; route is the pattern, status 'none' where the client had gone.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._duration = Histogram(
            "powerlab_http_request_duration_seconds",
            "From a request's arrival to the end of its answer, in this process.",
            ("method", "route"),
            buckets=_BUCKETS_S,
            registry=registry,
        )

    def note(self, method: str, route: str, status: str, seconds: float) -> None:
        """Count one request."""
        known = method if method in _METHODS else "other"
        self._count.labels(known, route, status).inc()
        self._duration.labels(known, route).observe(seconds)


class RequestMeter:
    """ASGI middleware, the outermost: it also sees what the guard refused."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics, prefix: str) -> None:
        self._app = app
        self._metrics = metrics
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand a request on and note how it was answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status = "none"
        begin = time.perf_counter()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            self._metrics.note(scope["method"], self._route(scope), status, time.perf_counter() - begin)

    def _route(self, scope: Scope) -> str:
        """Return the pattern of the route that a request found; ``none`` where it found none.

        Routes of a router that was included may know their own part of the pattern only.
        """
        path: str | None = getattr(scope.get("route"), "path", None)
        if path is None:
            return "none"
        shortened = scope["path"].startswith(f"{self._prefix}/") and not path.startswith(self._prefix)
        return self._prefix + path if shortened else path
