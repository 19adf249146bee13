"""Model uploads: announced by SHA-256, sent in parts, resumable.

The headers are those of the IETF's resumable uploads (draft-ietf-httpbis-resumable-upload): ``Upload-Offset`` says
where a part begins and, in answers, where the upload goes on; ``Upload-Complete`` whether the file is whole and
verified. What differs is that the client chooses the address, for it knows the SHA-256.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response, status

from powerlab.protocol.model_records import ModelRecord, ModelUpload
from powerlab.store.reads.models import model_row, to_model
from powerlab.store.writes.model_verification import finish_upload
from powerlab.store.writes.models import append, begin_upload
from powerlab_api.dependencies import ReadSession, SettingsDep, StoreDep
from powerlab_api.roles import Caller, Requires

router = APIRouter(prefix="/models", tags=["models"])

PART_TYPE = "application/partial-upload"


async def _raw(request: Request) -> bytes:
    return await request.body()


RawBody = Annotated[bytes, Depends(_raw)]


@router.put(
    "/{sha256}",
    dependencies=[Requires.operator],
    responses={201: {"description": "announced", "model": ModelRecord}, 200: {"description": "known before"}},
)
def announce_model(
    store: StoreDep, settings: SettingsDep, sha256: str, upload: ModelUpload, response: Response
) -> ModelRecord:
    """Begin the upload of a file, or find out how much of it is there: 201 where it is new, 200 where it is not."""
    with store.write() as session:
        created = begin_upload(session, sha256, upload, store.clock(), settings.max_model_bytes)
        session.flush()
        record = to_model(model_row(session, sha256, store.clock()), settings.max_body_bytes)
    response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
    _say(response, record)
    return record


@router.head("/{sha256}", dependencies=[Requires.operator], status_code=status.HTTP_204_NO_CONTENT)
def ask_offset(store: StoreDep, session: ReadSession, settings: SettingsDep, sha256: str, response: Response) -> None:
    """Say in headers where an upload goes on."""
    _say(response, to_model(model_row(session, sha256, store.clock()), settings.max_body_bytes))


@router.patch(
    "/{sha256}",
    dependencies=[Requires.operator],
    openapi_extra={
        "requestBody": {"content": {PART_TYPE: {"schema": {"type": "string", "format": "binary"}}}, "required": True}
    },
)
def append_part(
    *,
    store: StoreDep,
    settings: SettingsDep,
    caller: Caller,
    sha256: str,
    response: Response,
    upload_offset: Annotated[int, Header(ge=0)],
    data: RawBody,
) -> ModelRecord:
    """Append a part. With the last one the whole file is verified; an empty last part asks for that again.

    A part that does not begin where the upload stands is answered with 409 and the right ``Upload-Offset``.
    """
    with store.write() as session:
        row = append(session, sha256, upload_offset, data, store.clock())
        whole = row.uploaded_bytes == row.byte_count
    if whole:
        finish_upload(store, sha256, caller.name)
    with store.session() as session:
        record = to_model(model_row(session, sha256, store.clock()), settings.max_body_bytes)
    _say(response, record)
    return record


def _say(response: Response, record: ModelRecord) -> None:
    response.headers["Upload-Offset"] = str(record.uploaded_bytes)
    response.headers["Upload-Length"] = str(record.byte_count)
    response.headers["Upload-Complete"] = "?1" if record.complete else "?0"
    response.headers["Cache-Control"] = "no-store"
