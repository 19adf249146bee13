"""ETags: a response that the client has cached is not sent again."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import Header, Response, status

from powerlab.protocol.wire import encode
from powerlab_api.responses import answer

UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "unchanged"}}
"""What a route with an ETag says of its answers."""
IfNoneMatch = Annotated[str | None, Header(description="the ETag of what the client has")]


def fresh(found: object, if_none_match: str | None) -> Response:
    """Return an answer under its ETag, or 304 where the client has it."""
    body = encode(found)
    etag = f'"{hashlib.sha256(body).hexdigest()}"'
    if if_none_match is not None and matches(if_none_match, etag):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers={"ETag": etag})
    return answer(body, {"ETag": etag})


def matches(if_none_match: str, etag: str) -> bool:
    """Compare weakly, as RFC 9110 (13.1.2) wants: a proxy that compressed the answer made ``W/"..."`` of its ETag."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or tags == ["*"]
