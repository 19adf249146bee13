"""The devices that a request for a sweep selects."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.selector import Selector
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import DeviceRecord
from powerlab.store.reads.convert import to_device
from powerlab.store.reads.filters import DeviceFilter
from powerlab.store.reads.queries import list_devices, newest_snapshot
from powerlab.store.reads.selection import expanded
from powerlab.store.tables import DeviceRow, DeviceSnapshotRow

MOST = 1000
"""Devices that one request may choose."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A device, as it described itself last."""

    record: DeviceRecord
    snapshot: DeviceSnapshotRow


def chosen(session: Session, request: SweepRequest) -> list[Candidate]:
    """Return the device that a request names, or those that its selector chooses, by name.

    Raises:
        NotFoundError: there is no such device or group.
        PowerlabError: the request names both or neither, or chooses no device or too many.
    """
    if (request.device_id is None) == (request.any_of is None):
        raise PowerlabError("a sweep is for a device (device_id) or for any of several (any_of); give one of the two.")
    if request.any_of is not None:
        return [_candidate(session, record.id) for record in matching(session, request.any_of)]
    assert request.device_id is not None  # noqa: S101 - one of both is given
    return [_candidate(session, request.device_id)]


def along(session: Session, request: SweepRequest) -> list[Candidate]:
    """Return the devices that carry a sweep out together with the one that is named first; raises as :func:`chosen`."""
    if request.with_ids and request.any_of is not None:
        raise PowerlabError("devices that train together are named (device_id, with_ids), not chosen by any_of.")
    return [_candidate(session, device_id) for device_id in request.with_ids]


def matching(session: Session, selector: Selector) -> list[DeviceRecord]:
    """Return the devices that a selector chooses, by name; raises as :func:`chosen`."""
    filters = DeviceFilter(selectors=expanded(session, selector), limit=MOST + 1)
    found = list_devices(session, filters)
    if not found:
        raise PowerlabError(f"no device is chosen by {selector}; `powerlab devices list` shows what each has.")
    if len(found) > MOST:
        raise PowerlabError(
            f"more than {MOST} devices are chosen by {selector}; add a board or a label to narrow it down."
        )
    return found


def _candidate(session: Session, device_id: str) -> Candidate:
    snapshot = newest_snapshot(session, device_id)
    return Candidate(record=to_device(session.get_one(DeviceRow, device_id), snapshot), snapshot=snapshot)
