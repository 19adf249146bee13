"""Runs: readable by everyone, uploaded by agents."""

from __future__ import annotations

from dataclasses import replace

from fastapi import APIRouter, Response, status

from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run
from powerlab.measure.audit.audit import Audit
from powerlab.protocol.messages import RunUpload, Stored
from powerlab.protocol.records import RunPage
from powerlab.store.reads import queries
from powerlab.store.reads.run_audit import audit_run
from powerlab.store.writes.runs import store_run
from powerlab_api.cursor import from_cursor
from powerlab_api.dependencies import Cursor, Limit, ReadSession, StoreDep
from powerlab_api.etags import UNCHANGED, IfNoneMatch, fresh
from powerlab_api.paging import cut
from powerlab_api.responses import written
from powerlab_api.roles import AgentDevice, Requires
from powerlab_api.run_filters import RunWish

router = APIRouter(prefix="/runs", tags=["runs"])


@router.get("", dependencies=[Requires.viewer], response_model=RunPage)
def list_runs(session: ReadSession, runs: RunWish, *, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """Return runs in the order in which they arrived."""
    filters = replace(runs, limit=limit + 1, after=from_cursor(cursor))
    items, more = cut(list(queries.stream_runs(session, filters)), limit, lambda one: (one[0], one[1].id))
    return written(RunPage(items=tuple(run for _, run in items), next_cursor=more))


@router.get("/{run_id}", dependencies=[Requires.viewer], response_model=Run, responses=UNCHANGED)
def read_run(session: ReadSession, run_id: str, if_none_match: IfNoneMatch = None) -> Response:
    """Return one run. Runs never change, so that its ETag holds for ever.

    ``run_id`` may be the beginning of an identifier, where no other run's begins so.
    """
    run = queries.run(session, queries.run_id_from(session, run_id))
    return fresh(run, if_none_match)


@router.get("/{run_id}/audit", dependencies=[Requires.viewer])
def read_audit(session: ReadSession, run_id: str) -> Audit:
    """Work out everything a run says of itself again, from its samples, and ask MLPerf Power's rules.

    ``run_id`` may be the beginning of an identifier, where no other run's begins so.
    """
    return audit_run(session, run_id)


@router.put("/{run_id}", dependencies=[Requires.agent])
def put_run(store: StoreDep, device_id: AgentDevice, run_id: str, upload: RunUpload, response: Response) -> Stored:
    """Store a run under its own identifier: 201 where it is new, 200 where it is there already."""
    if upload.run.id != run_id:
        raise PowerlabError(f"the address names the run {run_id} and the body the run {upload.run.id}.")
    with store.write() as session:
        created = store_run(session, device_id, upload, store.clock())
    response.status_code = status.HTTP_201_CREATED if created else status.HTTP_200_OK
    return Stored(outcome="created" if created else "unchanged")
