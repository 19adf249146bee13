"""Checks of every request before routing: host name, body size, and a last handler for unexpected errors."""

from __future__ import annotations

import logging

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from powerlab_api.problems import problem
from powerlab_api.settings import Settings

_log = logging.getLogger("powerlab.api")


class Guard:
    """ASGI middleware."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers)
        if refusal is not None:
            await problem(*refusal)(scope, receive, send)
            return
        await self._run(scope, receive, send)

    def _refusal(self, headers: dict[bytes, str]) -> tuple[int, str] | None:
        allowed = self._settings.allowed_hosts
        host = headers.get(b"host", "")
        if allowed and _host_name(host) not in allowed:
            return 421, f"this server does not answer to the name {host!r}; use one of: {', '.join(sorted(allowed))}."
        length = headers.get(b"content-length", "0")
        if length.isdigit() and int(length) > self._settings.max_body_bytes:
            return 413, self._too_large()
        return None

    def _too_large(self) -> str:
        return f"the request's body is larger than the {self._settings.max_body_bytes} bytes that are allowed."

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            body = await self._read(receive)
        except ClientDisconnect:
            return  # half a body must not be taken for a whole one, and nobody waits for an answer
        if body is None:
            await problem(413, self._too_large())(scope, receive, send)
            return
        given = False
        started = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, replay, watched)
        except Exception:
            _log.exception("unexpected error at %s %s", scope["method"], scope["path"])
            if started:  # too late for another answer: let the server cut the connection, so that the client notices
                raise
            answer = problem(500, "the server failed at this request; its log says why.", "unexpected", scope["path"])
            await answer(scope, receive, send)

    async def _read(self, receive: Receive) -> bytes | None:
        """Return the whole body, or None where it is too large, whatever its headers said."""
        parts: list[bytes] = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            if sum(map(len, parts)) > self._settings.max_body_bytes:
                return None
            if not message.get("more_body", False):
                return b"".join(parts)


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
