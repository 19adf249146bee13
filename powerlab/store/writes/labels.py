"""Label devices and name groups of them. Idempotent."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.selector import Label, check_selector, check_word, parse_label
from powerlab.protocol.labs import Group
from powerlab.store.errors import NotFoundError
from powerlab.store.tables import DeviceGroupRow, DeviceLabelRow, DeviceRow
from powerlab.store.writes.audit import record

MOST_LABELS = 64
"""Labels of one device."""
_LONGEST_BOARD = 100


def set_label(session: Session, device_id: str, label: Label, by: str, now: datetime) -> None:
    """Give a device a label, in place of one with the same key.

    Raises:
        NotFoundError: there is no such device.
        PowerlabError: this is no label, or the device would have too many.
    """
    label = parse_label(f"{label.key}={label.value}" if label.value else label.key)
    _lock(session, device_id)
    row = session.get(DeviceLabelRow, (device_id, label.key))
    if row is None:
        own = select(func.count()).where(DeviceLabelRow.device_id == device_id)
        if session.scalar(own) == MOST_LABELS:
            raise PowerlabError(f"the device has {MOST_LABELS} labels already; remove one first.")
        session.add(DeviceLabelRow(device_id=device_id, key=label.key, value=label.value))
    elif row.value != label.value:
        row.value = label.value
    else:
        return
    record(session, now, by, "label device", device_id, label=str(label))


def remove_label(session: Session, device_id: str, key: str, by: str, now: datetime) -> None:
    """Take a label from a device; raises NotFoundError where there is no such device or label."""
    _lock(session, device_id)
    row = session.get(DeviceLabelRow, (device_id, key))
    if row is None:
        raise NotFoundError(f"the device {device_id} has no label {key!r}; GET /api/v1/devices/{device_id} shows its.")
    session.delete(row)
    record(session, now, by, "remove label", device_id, key=key)


def _lock(session: Session, device_id: str) -> None:
    """Let nobody else change the device's labels until the transaction ends; rows that refer to the device may come."""
    if session.scalar(select(DeviceRow.id).where(DeviceRow.id == device_id).with_for_update(key_share=True)) is None:
        raise NotFoundError(f"there is no device {device_id!r}; GET /api/v1/devices lists them.")


def put_group(session: Session, group: Group, by: str, now: datetime) -> None:
    """Name a selector, in place of what had the name before.

    Raises:
        PowerlabError: the name or a label is none, or the selector names nothing or another group.
    """
    check_word(group.name, "group name")
    chosen = group.selector
    check_selector(chosen)
    if chosen.group:
        raise PowerlabError(f"a group is made of a board and labels, not of the group {chosen.group!r}; name those.")
    if not chosen.board and not chosen.labels:
        raise PowerlabError("the group chooses every device; name a board or a label.")
    if len(chosen.board) > _LONGEST_BOARD or len(chosen.labels) > MOST_LABELS:
        raise PowerlabError(f"a group has a board of up to {_LONGEST_BOARD} letters and up to {MOST_LABELS} labels.")
    row = session.get(DeviceGroupRow, group.name, with_for_update=True)
    if row is None:
        session.add(DeviceGroupRow(name=group.name, board=chosen.board, labels=list(chosen.labels)))
    else:
        row.board, row.labels = chosen.board, list(chosen.labels)
    record(session, now, by, "name group", group.name, selector=str(chosen))


def remove_group(session: Session, name: str, by: str, now: datetime) -> None:
    """Forget a group; its devices stay as they are. Raises NotFoundError where there is none."""
    row = session.get(DeviceGroupRow, name, with_for_update=True)
    if row is None:
        raise NotFoundError(f"there is no group {name!r}; `powerlab devices groups` (GET /api/v1/groups) lists them.")
    session.delete(row)
    record(session, now, by, "remove group", name)
