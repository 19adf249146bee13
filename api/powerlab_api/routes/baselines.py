"""Baselines: the sweeps that later ones are judged against."""

from __future__ import annotations

from fastapi import APIRouter, status

from powerlab.protocol.baselines import Baseline, BaselinePage, BaselineRequest
from powerlab.store.reads import baselines as reads
from powerlab.store.writes import baselines as writes
from powerlab_api.dependencies import Cursor, Limit, ReadSession, StoreDep
from powerlab_api.paging import cut, place_of
from powerlab_api.roles import Requires, Submitter

router = APIRouter(prefix="/baselines", tags=["baselines"])


@router.get("", dependencies=[Requires.viewer])
def list_baselines(session: ReadSession, *, limit: Limit = 100, cursor: Cursor = None) -> BaselinePage:
    """Return baselines in the order of their names."""
    found = reads.list_baselines(session, limit=limit + 1, after=place_of(cursor, str))
    items, more = cut(found, limit, lambda one: one.name)
    return BaselinePage(items=items, next_cursor=more)


@router.get("/{name}", dependencies=[Requires.viewer])
def read_baseline(session: ReadSession, name: str) -> Baseline:
    """Return one baseline."""
    return reads.baseline(session, name)


@router.put("/{name}", dependencies=[Requires.operator])
def put_baseline(store: StoreDep, submitter: Submitter, name: str, wanted: BaselineRequest) -> Baseline:
    """Make sweeps part of a baseline, in place of those of the same devices and models unless ``keep`` is true."""
    with store.write() as session:
        writes.put_baseline(session, name, wanted, submitter, store.clock())
        session.flush()
        return reads.baseline(session, name)


@router.delete("/{name}", status_code=status.HTTP_204_NO_CONTENT, dependencies=[Requires.operator])
def delete_baseline(store: StoreDep, submitter: Submitter, name: str) -> None:
    """Forget a baseline; its sweeps stay as they are."""
    with store.write() as session:
        writes.remove_baseline(session, name, submitter, store.clock())
