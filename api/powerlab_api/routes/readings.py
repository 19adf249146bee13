"""Telemetry: readings that agents send while no figure is measured, and those of the last minutes for viewers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from powerlab.protocol.readings import LiveRecord, ReadingsReply, ReadingsUpload
from powerlab.store.reads import queries
from powerlab.store.reads.readings import live
from powerlab.store.writes.readings import KEPT, store_readings
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.event_stream import EventStream, Streams
from powerlab_api.problems import problem
from powerlab_api.reading_hub import ReadingHub
from powerlab_api.roles import AgentDevice, Requires
from powerlab_api.routes.events import MEDIA_TYPE

router = APIRouter(tags=["readings"])

_LONGEST_S = KEPT.total_seconds()
_ONE = {"type": "object", "required": ["data"], "properties": {"data": {"type": "string"}}}
"""``data`` is a :class:`~powerlab.protocol.readings.LiveRecord` as JSON."""


@router.post("/agents/me/readings", dependencies=[Requires.agent])
def send_readings(store: StoreDep, device_id: AgentDevice, said: ReadingsUpload) -> ReadingsReply:
    """Store what the agent's device reads and what its sweep does; the answer says how often that is wanted."""
    with store.write() as session:
        return ReadingsReply(period_s=store_readings(session, device_id, said, store.clock()))


@router.get("/devices/{device_id}/readings", dependencies=[Requires.viewer])
def read_readings(
    store: StoreDep,
    session: ReadSession,
    device_id: str,
    seconds: Annotated[float, Query(gt=0, le=_LONGEST_S, description="how far back")] = 300.0,
) -> LiveRecord:
    """Return a device's readings of the last minutes, oldest first, and the phase of its sweep.

    While a run is timed an agent reads and sends nothing.
    """
    queries.device(session, device_id)
    found, _ = live(session, device_id, store.clock() - KEPT * (seconds / _LONGEST_S))
    return found


@router.get(
    "/devices/{device_id}/readings/stream",
    dependencies=[Requires.viewer],
    response_class=EventStream,
    responses={200: {"description": "server-sent events", "content": {MEDIA_TYPE: {"schema": _ONE}}}},
)
def follow_readings(request: Request, session: ReadSession, device_id: str) -> Response:
    """Stream a device's readings: those of the last minutes first, then each as it arrives, once or twice a second.

    Every event holds the readings that are new, and the phase of the device's sweep. A stream lasts for some minutes;
    its reader asks again, as browsers do by themselves.
    """
    queries.device(session, device_id)
    streams: Streams = request.app.state.event_streams
    hub: ReadingHub = request.app.state.reading_hub
    if streams.full:
        refusal = problem(503, f"this server follows events for {streams.most} readers already; ask again later.")
        refusal.headers["Retry-After"] = "30"
        return refusal
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventStream(hub.follow(device_id, streams), media_type=MEDIA_TYPE, headers=headers)
