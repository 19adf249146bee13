"""Devices that match a selector, and named groups."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from powerlab.domain.selector import Selector, parse_label
from powerlab.protocol.labs import Group
from powerlab.store.errors import NotFoundError
from powerlab.store.tables import DeviceGroupRow, DeviceLabelRow, DeviceRow, DeviceSnapshotRow


def expanded(session: Session, selector: Selector) -> tuple[Selector, ...]:
    """Return selectors without groups that must all hold; raises NotFoundError where there is no such group."""
    own = Selector(board=selector.board, labels=selector.labels)
    return (own, group(session, selector.group).selector) if selector.group else (own,)


def conditions(selector: Selector) -> Iterator[ColumnElement[bool]]:
    """Yield what is true of a device and its newest snapshot; the selector names no group.

    Raises:
        PowerlabError: what should be a label is none.
    """
    if selector.board:
        yield DeviceSnapshotRow.document["device"]["board"].as_string() == selector.board
    for label in map(parse_label, selector.labels):
        own = select(DeviceLabelRow).where(DeviceLabelRow.device_id == DeviceRow.id, DeviceLabelRow.key == label.key)
        yield (own.where(DeviceLabelRow.value == label.value) if label.value else own).exists()


def group(session: Session, name: str) -> Group:
    """Return a group; raises NotFoundError."""
    row = session.get(DeviceGroupRow, name)
    if row is None:
        raise NotFoundError(f"there is no group {name!r}; `powerlab devices groups` (GET /api/v1/groups) lists them.")
    return _to_group(row)


def list_groups(session: Session, *, limit: int | None = None, after: str | None = None) -> list[Group]:
    """Return groups in the order of their names; ``after`` is the name of the last one seen."""
    wanted = select(DeviceGroupRow).order_by(DeviceGroupRow.name).limit(limit)
    if after is not None:
        wanted = wanted.where(DeviceGroupRow.name > after)
    return [_to_group(row) for row in session.scalars(wanted)]


def _to_group(row: DeviceGroupRow) -> Group:
    return Group(name=row.name, selector=Selector(board=row.board, labels=tuple(row.labels)))
