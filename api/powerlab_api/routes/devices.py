"""Devices, what they can measure, and what they can be set to."""

from __future__ import annotations

from fastapi import APIRouter

from powerlab.domain.mode import PowerMode
from powerlab.protocol.records import DevicePage, DeviceRecord
from powerlab.store import queries
from powerlab_api.deps import ReadSession
from powerlab_api.needs import Needs

router = APIRouter(prefix="/devices", tags=["devices"])


@router.get("", dependencies=[Needs.viewer])
def list_devices(session: ReadSession) -> DevicePage:
    """Return every device with its capabilities."""
    return DevicePage(items=tuple(queries.list_devices(session)))


@router.get("/{device_id}", dependencies=[Needs.viewer])
def read_device(session: ReadSession, device_id: str) -> DeviceRecord:
    """Return one device with its capabilities."""
    return queries.device(session, device_id)


@router.get("/{device_id}/modes", dependencies=[Needs.viewer])
def list_modes(session: ReadSession, device_id: str) -> tuple[PowerMode, ...]:
    """Return the power modes that a sweep of this device may name."""
    return queries.device(session, device_id).capabilities.modes
