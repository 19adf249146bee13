"""Enrolment of devices, and later reports of their agents."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol import PROTOCOL_VERSION
from powerlab.protocol.messages import (
    Description,
    EnrolmentCode,
    EnrolmentCodeRequest,
    EnrolReply,
    EnrolRequest,
)
from powerlab.protocol.wire import check_survives, to_document
from powerlab.store.errors import ConflictError, NotFoundError, UnauthorisedError
from powerlab.store.events import note_device_seen
from powerlab.store.reads.tokens import agent_name
from powerlab.store.secrets import new_code, sha256
from powerlab.store.tables import DeviceRow, DeviceSnapshotRow, EnrolmentCodeRow, PowerModeRow
from powerlab.store.writes.audit import COMMAND_LINE, record
from powerlab.store.writes.tokens import issue_agent_token

_MAX_VALID_S = 7 * 24 * 3600


def make_enrolment_code(
    session: Session, request: EnrolmentCodeRequest, now: datetime, *, actor: str = COMMAND_LINE
) -> EnrolmentCode:
    """Make a code for one enrolment.

    Raises:
        PowerlabError: it would be valid for less than a second or more than a week.
        NotFoundError: it is for a device that does not exist.
    """
    if not 1 <= request.valid_s <= _MAX_VALID_S:
        raise PowerlabError(f"an enrolment code is valid for 1 to {_MAX_VALID_S} seconds, not {request.valid_s}.")
    if request.device_id is not None and session.get(DeviceRow, request.device_id) is None:
        raise NotFoundError(f"there is no device {request.device_id!r} to make a code for.")
    code = new_code()
    expires_at = now + timedelta(seconds=request.valid_s)
    session.add(
        EnrolmentCodeRow(sha256=sha256(code), device_id=request.device_id, created_at=now, expires_at=expires_at)
    )
    record(session, now, actor, "make enrolment code", request.device_id or "new device")
    return EnrolmentCode(code=code, expires_at=expires_at)


def enrol(session: Session, request: EnrolRequest, now: datetime) -> EnrolReply:
    """Turn a code into a device and a token.

    Raises:
        UnauthorisedError: the code is unknown, used or expired.
        ConflictError: a device of that name exists and the code is not for it, or the protocol differs.
    """
    _check_protocol(request.protocol)
    # Locked: two agents with the same code must not both find it unused.
    wanted = select(EnrolmentCodeRow).where(EnrolmentCodeRow.sha256 == sha256(request.code)).with_for_update()
    code = session.scalar(wanted)
    if code is None or code.used_at is not None or code.expires_at <= now:
        raise UnauthorisedError("the enrolment code is unknown, used or expired; ask the server for a new one.")
    named = session.scalar(select(DeviceRow).where(DeviceRow.name == request.device.name))
    if named is not None and named.id != code.device_id:
        raise ConflictError(
            f"a device named {request.device.name!r} is enrolled already; give this one another name, or ask for an "
            "enrolment code for that device."
        )
    device = session.get(DeviceRow, code.device_id) if code.device_id else None
    if device is None:
        device = DeviceRow(id=str(uuid.uuid4()), enrolled_at=now)
        session.add(device)
    device.name, device.seen_at, code.used_at = request.device.name, now, now
    session.flush()
    token = issue_agent_token(session, device.id, now)
    said = Description(device=request.device, capabilities=request.capabilities)
    _snapshot(session, device.id, said, now)
    record(session, now, agent_name(device.id), "enrol", device.id, name=device.name)
    return EnrolReply(device_id=device.id, token=token)


def describe(session: Session, device_id: str, said: Description, now: datetime) -> None:
    """Store what an agent says about its device, if it says something new.

    Raises:
        ConflictError: another device has that name, or the protocol differs.
    """
    _check_protocol(said.protocol)
    device = session.get_one(DeviceRow, device_id)
    named = session.scalar(select(DeviceRow).where(DeviceRow.name == said.device.name))
    if named is not None and named.id != device_id:
        raise ConflictError(f"another device is named {said.device.name!r}; give this one another name.")
    device.name = said.device.name
    note_device_seen(session, device_id)
    newest = (
        select(DeviceSnapshotRow)
        .where(DeviceSnapshotRow.device_id == device_id)
        .order_by(DeviceSnapshotRow.id.desc())
        .limit(1)
    )
    before = session.scalar(newest)
    if before is None or before.document != to_document(said):
        _snapshot(session, device_id, said, now)


def _check_protocol(protocol: int) -> None:
    if protocol != PROTOCOL_VERSION:
        raise ConflictError(
            f"the agent speaks version {protocol} of the protocol and this server version {PROTOCOL_VERSION}; "
            "install the same powerlab on both."
        )


def _snapshot(session: Session, device_id: str, said: Description, now: datetime) -> None:
    check_survives(said)
    modes = [
        PowerModeRow(
            position=position,
            name=mode.name,
            settings=to_document(mode.settings),
            origin=mode.origin.value,
            requires_reboot=mode.requires_reboot,
            online_cores=mode.online_cores,
            description=mode.description,
        )
        for position, mode in enumerate(said.capabilities.modes)
    ]
    snapshot = DeviceSnapshotRow(
        device_id=device_id,
        taken_at=now,
        simulated=said.device.simulated,
        document=to_document(said),
        modes=modes,
    )
    session.add(snapshot)
