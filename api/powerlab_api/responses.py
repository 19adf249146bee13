"""Large responses, serialised directly: FastAPI would validate every figure of every run again."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Response

from powerlab.protocol.wire import encode


def written(found: object) -> Response:
    """Return records or a page of them as an answer; the route's ``response_model`` says what they are."""
    return answer(encode(found))


def answer(body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    """Return JSON that is written already."""
    return Response(body, media_type="application/json", headers=headers)
