"""Sweeps: create, list, read, with the summaries of their points."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Response, status

from powerlab.analysis.best import contenders
from powerlab.analysis.headlines import Headline, headlines
from powerlab.analysis.searched import in_contest
from powerlab.analysis.summary import PointSummary
from powerlab.protocol.records import SweepPage, SweepRecord, SweepState
from powerlab.store.reads import queries
from powerlab.store.reads.filters import SweepFilter
from powerlab.store.reads.sweep_results import runs_of_points, summaries_of_sweep
from powerlab.store.writes.sweeps import submit_sweep
from powerlab_api.cursor import from_cursor
from powerlab_api.dependencies import Cursor, Limit, ReadSession, StoreDep
from powerlab_api.etags import UNCHANGED, IfNoneMatch, fresh
from powerlab_api.examples import SweepBody
from powerlab_api.paging import cut
from powerlab_api.responses import written
from powerlab_api.roles import Requires, Submitter
from powerlab_api.run_filters import Moment

router = APIRouter(prefix="/sweeps", tags=["sweeps"])


IdempotencyKey = Annotated[
    str | None,
    Header(description="any text of up to 200 characters; the same request again under it makes no second sweep"),
]


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    dependencies=[Requires.operator],
    responses={200: {"description": "there already, under this Idempotency-Key", "model": SweepRecord}},
)
def post_sweep(
    store: StoreDep,
    submitter: Submitter,
    request: SweepBody,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> SweepRecord:
    """Queue a plan for a device, or for the first that is free of several, if each of them can carry it out.

    With an ``Idempotency-Key`` the same request again is answered with the same sweep and 200, and another request
    under the same key with 409. Keys belong to whoever sends them.
    """
    with store.write() as session:
        sweep_id, created = submit_sweep(session, request, store.clock(), by=submitter, key=idempotency_key)
        session.flush()
        return answer(response, queries.sweep(session, sweep_id), created=created)


@router.put(
    "/{sweep_id}",
    dependencies=[Requires.operator],
    responses={201: {"description": "queued", "model": SweepRecord}},
)
def put_sweep(
    store: StoreDep, submitter: Submitter, sweep_id: str, request: SweepBody, response: Response
) -> SweepRecord:
    """Queue a plan under an identifier that the client chose, a UUID: 201 where it is new, 200 where it is there."""
    with store.write() as session:
        _, created = submit_sweep(session, request, store.clock(), by=submitter, sweep_id=sweep_id)
        session.flush()
        return answer(response, queries.sweep(session, sweep_id), created=created)


def answer(response: Response, record: SweepRecord, *, created: bool) -> SweepRecord:
    """Say where a sweep is and whether it was made now."""
    response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
    response.headers["Location"] = f"/api/v1/sweeps/{record.id}"
    return record


@router.get("", dependencies=[Requires.viewer], response_model=SweepPage)
def list_sweeps(
    session: ReadSession,
    *,
    device_id: str | None = None,
    state: SweepState | None = None,
    model: str | None = None,
    submitter: str | None = None,
    campaign_id: str | None = None,
    created_from: Moment = None,
    created_to: Moment = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """Return sweeps, newest first."""
    filters = SweepFilter(
        device_id=device_id,
        state=state,
        model=model,
        submitter=submitter,
        campaign_id=campaign_id,
        created_from=created_from,
        created_to=created_to,
    )
    found = queries.list_sweeps(session, filters, limit=limit + 1, after=from_cursor(cursor))
    items, more = cut(found, limit, lambda one: (one.created_at, one.id))
    return written(SweepPage(items=items, next_cursor=more))


@router.get(
    "/{sweep_id}",
    dependencies=[Requires.viewer],
    response_model=SweepRecord,
    responses=UNCHANGED,
)
def read_sweep(session: ReadSession, sweep_id: str, if_none_match: IfNoneMatch = None) -> Response:
    """Return one sweep."""
    return fresh(queries.sweep(session, sweep_id), if_none_match)


@router.get(
    "/{sweep_id}/points",
    dependencies=[Requires.viewer],
    response_model=tuple[PointSummary, ...],
    responses=UNCHANGED,
)
def list_points(session: ReadSession, sweep_id: str, if_none_match: IfNoneMatch = None) -> Response:
    """Return one summary for each point that has runs: medians with their intervals, and what the rules said."""
    return fresh(summaries_of_sweep(session, sweep_id), if_none_match)


@router.get(
    "/{sweep_id}/best",
    dependencies=[Requires.viewer],
    response_model=tuple[Headline, ...],
    responses=UNCHANGED,
)
def list_best(session: ReadSession, sweep_id: str, if_none_match: IfNoneMatch = None) -> Response:
    """Return the best point by latency, throughput and efficiency: winner, tied or not enough data, and what to do."""
    plan = queries.sweep(session, sweep_id).plan
    summaries = in_contest(summaries_of_sweep(session, sweep_id), plan)
    return fresh(headlines(summaries, runs_of_points(session, sweep_id, contenders(summaries))), if_none_match)
