"""Devices, their sensors, and their settings."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from powerlab.domain.device import Capabilities
from powerlab.domain.mode import PowerMode
from powerlab.domain.selector import Selector
from powerlab.protocol.records import DevicePage, DeviceRecord
from powerlab.store.reads import queries
from powerlab.store.reads.filters import DeviceFilter
from powerlab.store.reads.selection import expanded
from powerlab_api.dependencies import Cursor, Limit, ReadSession
from powerlab_api.paging import cut, place_of
from powerlab_api.responses import written
from powerlab_api.roles import Requires
from powerlab_api.run_filters import Moment

router = APIRouter(prefix="/devices", tags=["devices"])


@router.get("", dependencies=[Requires.viewer], response_model=DevicePage)
def list_devices(
    session: ReadSession,
    *,
    name: Annotated[str | None, Query(description="a part of the name, in capitals or not")] = None,
    board: Annotated[str | None, Query(description="as `powerlab boards` names it")] = None,
    simulated: bool | None = None,
    seen_since: Moment = None,
    label: Annotated[list[str] | None, Query(description="key=value, or a key alone; may be repeated")] = None,
    group: Annotated[str, Query(description="a group's name")] = "",
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """Return devices with their capabilities, in the order of their names."""
    filters = DeviceFilter(
        name=name,
        board=board,
        simulated=simulated,
        seen_since=seen_since,
        selectors=expanded(session, Selector(labels=tuple(label or ()), group=group)),
        limit=limit + 1,
        after=place_of(cursor, tuple[str, str]),
    )
    items, more = cut(queries.list_devices(session, filters), limit, lambda one: (one.device.name, one.id))
    return written(DevicePage(items=items, next_cursor=more))


@router.get("/{device_id}", dependencies=[Requires.viewer])
def read_device(session: ReadSession, device_id: str) -> DeviceRecord:
    """Return one device with its capabilities."""
    return queries.device(session, device_id)


@router.get("/{device_id}/capabilities", dependencies=[Requires.viewer])
def read_capabilities(session: ReadSession, device_id: str) -> Capabilities:
    """Return what a device can measure and be set to."""
    return queries.device(session, device_id).capabilities


@router.get("/{device_id}/modes", dependencies=[Requires.viewer])
def list_modes(session: ReadSession, device_id: str) -> tuple[PowerMode, ...]:
    """Return the power modes that a sweep of this device may name."""
    return queries.device(session, device_id).capabilities.modes
