"""Actions on a sweep: preview, pause, resume, cancel, repeat, clone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial

from fastapi import APIRouter, Response, status
from sqlalchemy.orm import Session

from powerlab.protocol.messages import RepeatRequest
from powerlab.protocol.records import SweepPreview, SweepRecord
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.reads.previews import preview
from powerlab.store.writes import control
from powerlab.store.writes.clones import cloned
from powerlab.store.writes.repeats import add_repeats
from powerlab.store.writes.sweeps import submit_sweep
from powerlab_api.dependencies import ReadSession, StoreDep
from powerlab_api.examples import CloneBody, SweepBody
from powerlab_api.roles import Requires, Submitter
from powerlab_api.routes.sweeps import IdempotencyKey, answer

router = APIRouter(prefix="/sweeps", tags=["sweeps"])


@router.post("/preview", dependencies=[Requires.viewer])
def preview_sweep(store: StoreDep, session: ReadSession, request: SweepBody) -> SweepPreview:
    """Say what a sweep would be: its points and runs, how long it takes, and all that speaks against it.

    Nothing is stored, so that it needs no more than reading does.
    """
    return preview(session, request, store.clock())


@router.post("/{sweep_id}/pause", dependencies=[Requires.operator])
def pause_sweep(store: StoreDep, submitter: Submitter, sweep_id: str) -> SweepRecord:
    """Stop a sweep until it is resumed; an agent that carries it out ends the run in progress first."""
    return _changed(store, sweep_id, submitter, control.pause)


@router.post("/{sweep_id}/resume", dependencies=[Requires.operator])
def resume_sweep(store: StoreDep, submitter: Submitter, sweep_id: str) -> SweepRecord:
    """Let a paused sweep go on; only what is missing is measured."""
    return _changed(store, sweep_id, submitter, control.resume)


@router.post("/{sweep_id}/cancel", dependencies=[Requires.operator])
def cancel_sweep(store: StoreDep, submitter: Submitter, sweep_id: str) -> SweepRecord:
    """End a sweep for good; the runs that it has, and the one in progress, stay."""
    return _changed(store, sweep_id, submitter, control.cancel)


@router.post("/{sweep_id}/repeat", dependencies=[Requires.operator])
def repeat_sweep(store: StoreDep, submitter: Submitter, sweep_id: str, request: RepeatRequest) -> SweepRecord:
    """Queue further repeats of every point of a sweep that is done or failed: the same sweep goes on."""
    return _changed(store, sweep_id, submitter, partial(add_repeats, add=request.add))


@router.post(
    "/{sweep_id}/clone",
    status_code=status.HTTP_201_CREATED,
    dependencies=[Requires.operator],
    responses={200: {"description": "there already, under this Idempotency-Key", "model": SweepRecord}},
)
def clone_sweep(  # noqa: PLR0917 - what FastAPI fills in
    store: StoreDep,
    submitter: Submitter,
    sweep_id: str,
    clone: CloneBody,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> SweepRecord:
    """Queue a sweep's plan once more, with other values for some of its fields, or on another device."""
    with store.write() as session:
        request = cloned(session, sweep_id, clone)
        new_id, created = submit_sweep(
            session, request, store.clock(), by=submitter, key=idempotency_key, cloned_from=sweep_id
        )
        session.flush()
        return answer(response, queries.sweep(session, new_id), created=created)


def _changed(
    store: Store, sweep_id: str, by: str, change: Callable[[Session, str, str, datetime], None]
) -> SweepRecord:
    with store.write() as session:
        change(session, sweep_id, by, store.clock())
        session.flush()
        return queries.sweep(session, sweep_id)
