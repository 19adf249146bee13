"""Live events of the server."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.responses import Response

from powerlab.store.maintenance.retired import check_events_kept, last_retired_event
from powerlab.store.reads.events import EventFilter, newest_event
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.event_stream import EventStream, Streams, stream
from powerlab_api.problems import problem
from powerlab_api.roles import Requires

router = APIRouter(prefix="/events", tags=["events"])

MEDIA_TYPE = "text/event-stream"
_BIGGEST = 2**63 - 1
_FIELD = {"type": "string"}
_ONE_EVENT = {"type": "object", "required": ["data", "id"], "properties": {"id": _FIELD, "data": _FIELD}}
"""The fields of one event of the stream; ``data`` is an :class:`~powerlab.protocol.events.Event` as JSON."""


@router.get(
    "",
    dependencies=[Requires.viewer],
    response_class=EventStream,
    responses={200: {"description": "server-sent events", "content": {MEDIA_TYPE: {"schema": _ONE_EVENT}}}},
)
def follow_events(
    *,
    request: Request,
    store: StoreDep,
    session: ReadSession,
    sweep_id: str | None = None,
    device_id: str | None = None,
    after: Annotated[int | None, Query(ge=0, le=_BIGGEST, description="begin behind this id; 0: tell all")] = None,
    last_event_id: Annotated[int | None, Header(ge=0, le=_BIGGEST, description="the last id a reader saw")] = None,
) -> Response:
    """Stream events as they happen, none of them twice and none left out; a comment now and then where nothing does.

    A stream lasts for some minutes. Its reader asks again, as browsers do by themselves, sends the last id it saw as
    ``Last-Event-ID`` and is told what it missed; where that is no longer kept, the answer is 410. Without that, and
    without ``after``, the stream begins with what happens next.
    """
    streams: Streams = request.app.state.event_streams
    if streams.full:
        refusal = problem(503, f"this server follows events for {streams.most} readers already; ask again later.")
        refusal.headers["Retry-After"] = "30"
        return refusal
    if last_event_id is not None:
        start = last_event_id
    elif after is not None:
        start = after or last_retired_event(session)
    else:
        start = newest_event(session)
    check_events_kept(session, start)
    filters = EventFilter(sweep_id=sweep_id, device_id=device_id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventStream(stream(store, streams, start, filters), media_type=MEDIA_TYPE, headers=headers)
