"""Labels of devices, and groups: named selectors."""

from __future__ import annotations

from fastapi import APIRouter, status

from powerlab.domain.selector import Label, Selector
from powerlab.protocol.labs import Group, GroupPage, LabelValue
from powerlab.protocol.records import DeviceRecord
from powerlab.store.reads import queries, selection
from powerlab.store.writes import labels
from powerlab_api.dependencies import Cursor, Limit, ReadSession, StoreDep
from powerlab_api.paging import cut, place_of
from powerlab_api.roles import Requires, Submitter

router = APIRouter(tags=["labels"])


@router.put("/devices/{device_id}/labels/{key}", dependencies=[Requires.operator])
def put_label(store: StoreDep, submitter: Submitter, device_id: str, key: str, wanted: LabelValue) -> DeviceRecord:
    """Give a device a label, in place of one with the same key."""
    with store.write() as session:
        labels.set_label(session, device_id, Label(key=key, value=wanted.value), submitter, store.clock())
        session.flush()
        return queries.device(session, device_id)


@router.delete(
    "/devices/{device_id}/labels/{key}", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Requires.operator]
)
def delete_label(store: StoreDep, submitter: Submitter, device_id: str, key: str) -> None:
    """Take a label from a device."""
    with store.write() as session:
        labels.remove_label(session, device_id, key, submitter, store.clock())


@router.get("/groups", dependencies=[Requires.viewer])
def list_groups(session: ReadSession, *, limit: Limit = 100, cursor: Cursor = None) -> GroupPage:
    """Return groups in the order of their names."""
    found = selection.list_groups(session, limit=limit + 1, after=place_of(cursor, str))
    items, more = cut(found, limit, lambda one: one.name)
    return GroupPage(items=items, next_cursor=more)


@router.get("/groups/{name}", dependencies=[Requires.viewer])
def read_group(session: ReadSession, name: str) -> Group:
    """Return one group; ``GET /devices?group=NAME`` lists its devices."""
    return selection.group(session, name)


@router.put("/groups/{name}", dependencies=[Requires.operator])
def put_group(store: StoreDep, submitter: Submitter, name: str, selector: Selector) -> Group:
    """Name a selector, in place of what had the name before."""
    with store.write() as session:
        labels.put_group(session, Group(name=name, selector=selector), submitter, store.clock())
        session.flush()
        return selection.group(session, name)


@router.delete("/groups/{name}", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Requires.operator])
def delete_group(store: StoreDep, submitter: Submitter, name: str) -> None:
    """Forget a group; its devices stay as they are."""
    with store.write() as session:
        labels.remove_group(session, name, submitter, store.clock())
