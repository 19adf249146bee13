"""Uploaded models: list, describe, download."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response, status
from fastapi.responses import StreamingResponse

from powerlab.protocol.model_records import ModelPage, ModelRecord
from powerlab.store.reads.models import check_asked_of, complete_model, list_models, model_row, read_bytes, to_model
from powerlab_api.cursor import from_cursor, to_cursor
from powerlab_api.dependencies import Cursor, Limit, ReadSession, SettingsDep, StoreDep
from powerlab_api.etags import matches
from powerlab_api.problems import problem
from powerlab_api.ranges import byte_range
from powerlab_api.roles import Caller, Requires

router = APIRouter(prefix="/models", tags=["models"])

MEDIA_TYPE = "application/octet-stream"
_WHOLE = {"content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}}


@router.get("", dependencies=[Requires.viewer])
def list_stored_models(
    session: ReadSession,
    settings: SettingsDep,
    *,
    name: str | None = None,
    sha256: str | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> ModelPage:
    """Return complete models, newest first: all, those of a name, or those whose SHA-256 begins with some digits."""
    found = list_models(session, name=name, sha256=sha256, limit=limit + 1, after=from_cursor(cursor))
    items = tuple(to_model(row, settings.max_body_bytes) for row in found[:limit])
    last = items[-1].completed_at if len(found) > limit else None
    more = None if last is None else to_cursor(last, items[-1].sha256)
    return ModelPage(items=items, next_cursor=more)


@router.get("/{sha256}", dependencies=[Requires.viewer_or_agent])
def read_model(
    store: StoreDep, session: ReadSession, settings: SettingsDep, caller: Caller, sha256: str
) -> ModelRecord:
    """Return what is known of one model, complete or on its way: ``uploaded_bytes`` says where an upload goes on."""
    row = model_row(session, sha256, store.clock())
    if caller.device_id is not None:
        check_asked_of(session, caller.device_id, sha256)
    return to_model(row, settings.max_body_bytes)


@router.get(
    "/{sha256}/content",
    dependencies=[Requires.viewer_or_agent],
    response_class=StreamingResponse,
    responses={
        200: {"description": "the whole file", **_WHOLE},
        206: {"description": "the part that Range asks for", **_WHOLE},
        304: {"description": "unchanged: it never changes"},
    },
)
def download_model(
    *,
    store: StoreDep,
    session: ReadSession,
    caller: Caller,
    sha256: str,
    range_: Annotated[str | None, Header(alias="Range")] = None,
    if_range: Annotated[str | None, Header()] = None,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Stream a complete model's file, or one part of it (RFC 9110, section 14). Its ETag is its SHA-256."""
    row = complete_model(session, sha256, store.clock())
    if caller.device_id is not None:
        check_asked_of(session, caller.device_id, sha256)
    etag = f'"{sha256}"'
    headers = {"ETag": etag, "Accept-Ranges": "bytes", "Cache-Control": "private, max-age=31536000, immutable"}
    if if_none_match is not None and matches(if_none_match, etag):
        return Response(status_code=status.HTTP_304_NOT_MODIFIED, headers=headers)
    asked = range_ if if_range in (None, etag) else None
    part = byte_range(asked, row.byte_count)
    if part is None:
        refusal = problem(416, f"the model has {row.byte_count} bytes; ask for some of those.", "no-such-range")
        refusal.headers["Content-Range"] = f"bytes */{row.byte_count}"
        return refusal
    start, stop = part
    headers["Content-Length"] = str(stop - start)
    headers["Content-Disposition"] = f'attachment; filename="{row.name}"'
    whole = (start, stop) == (0, row.byte_count)
    if not whole:
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{row.byte_count}"
    return StreamingResponse(
        read_bytes(store, sha256, start, stop),
        status_code=status.HTTP_200_OK if whole else status.HTTP_206_PARTIAL_CONTENT,
        media_type=MEDIA_TYPE,
        headers=headers,
    )
