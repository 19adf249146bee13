"""Sweeps and the summaries of their points."""

from __future__ import annotations

from fastapi import APIRouter, Response, status

from powerlab.analysis.summary import PointSummary, summarise
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import SweepPage, SweepRecord
from powerlab.store import queries
from powerlab.store.writes.sweeps import create_sweep
from powerlab_api.cursor import from_cursor, to_cursor
from powerlab_api.deps import Cursor, Limit, OperatorOnly, ReadSession, StoreDep

router = APIRouter(prefix="/sweeps", tags=["sweeps"])


@router.post("", status_code=status.HTTP_201_CREATED, dependencies=[OperatorOnly])
def post_sweep(store: StoreDep, request: SweepRequest, response: Response) -> SweepRecord:
    """Queue a plan for a device, if the device can carry it out."""
    with store.write() as session:
        sweep_id = create_sweep(session, request, store.clock())
        session.flush()
        record = queries.sweep(session, sweep_id)
    response.headers["Location"] = f"/api/v1/sweeps/{sweep_id}"
    return record


@router.get("")
def list_sweeps(session: ReadSession, limit: Limit = 50, cursor: Cursor = None) -> SweepPage:
    """Return sweeps, newest first."""
    found = queries.list_sweeps(session, limit=limit + 1, after=from_cursor(cursor))
    items = found[:limit]
    more = to_cursor(items[-1].created_at, items[-1].id) if len(found) > limit else None
    return SweepPage(items=tuple(items), next_cursor=more)


@router.get("/{sweep_id}")
def read_sweep(session: ReadSession, sweep_id: str) -> SweepRecord:
    """Return one sweep."""
    return queries.sweep(session, sweep_id)


@router.get("/{sweep_id}/points")
def list_points(session: ReadSession, sweep_id: str) -> tuple[PointSummary, ...]:
    """Return one summary for each point that has runs: medians with their intervals, and what the rules said."""
    return summarise(queries.runs_of_sweep(session, sweep_id))
