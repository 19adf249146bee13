"""Create a sweep with its points and a job; idempotent under one key."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import check_plan
from powerlab.domain.selector import Selector
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.protocol.wire import from_document, to_document
from powerlab.store.errors import ConflictError
from powerlab.store.reads.clusters import node_rows
from powerlab.store.reads.duration_estimates import estimate
from powerlab.store.reads.eligible_devices import Candidate, along, chosen
from powerlab.store.reads.models import check_models
from powerlab.store.tables import JobRow, SweepCandidateRow, SweepRow
from powerlab.store.writes.audit import COMMAND_LINE, record
from powerlab.store.writes.clusters import add_nodes, check_together
from powerlab.store.writes.points import add_points, mode_ids

HIGHEST_PRIORITY = 1000
"""Priorities go from this number's negative to it."""
LONGEST_KEY = 200


def submit_sweep(
    session: Session,
    request: SweepRequest,
    now: datetime,
    *,
    by: str,
    sweep_id: str | None = None,
    key: str | None = None,
    cloned_from: str | None = None,
) -> tuple[str, bool]:
    """Do as :func:`create_sweep`, once for one identifier or for one submitter's key.

    Returns:
        the sweep's id, and whether it is new.

    Raises:
        ConflictError: the identifier or the key belongs to a sweep that was asked for in other words.
        NotFoundError, PowerlabError: see :func:`create_sweep`.
    """
    check_key(key)
    if sweep_id is not None and not _is_uuid(sweep_id):
        raise PowerlabError(f"{sweep_id!r} is not an identifier for a sweep; make a UUID, in lower case.")
    request = clustered(request)
    known = _known(session, request, by, sweep_id, key)
    if known is not None:
        return known, False
    try:
        with session.begin_nested():
            made = create_sweep(session, request, now, by=by, sweep_id=sweep_id, key=key, cloned_from=cloned_from)
            return made, True
    except IntegrityError:
        known = _known(session, request, by, sweep_id, key)  # somebody asked for it at the same moment
        if known is None:
            raise
        return known, False


def check_key(key: str | None) -> None:
    """Raise PowerlabError where an Idempotency-Key is empty or too long."""
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        raise PowerlabError(f"an Idempotency-Key has 1 to {LONGEST_KEY} characters, not {len(key)}.")


def _is_uuid(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _known(session: Session, request: SweepRequest, by: str, sweep_id: str | None, key: str | None) -> str | None:
    """Return the sweep that was asked for before; None where there is none."""
    if sweep_id is not None:
        row, name = session.get(SweepRow, sweep_id), f"identifier {sweep_id}"
    elif key is not None:
        wanted = select(SweepRow).where(SweepRow.submitter == by, SweepRow.request_key == key)
        row, name = session.scalar(wanted), f"Idempotency-Key {key!r}"
    else:
        return None
    if row is None:
        return None
    plan = from_document(row.plan, SweepPlan)
    stored = SweepRequest(
        device_id=None if row.any_of else row.device_id,
        any_of=None if row.any_of is None else from_document(row.any_of, Selector),
        plan=plan,
        priority=row.job.priority,
        with_ids=tuple(node.device_id for node in node_rows(session, row.id)),
    )
    if stored != request:
        raise ConflictError(f"the {name} belongs to another sweep ({row.id}); use a new key for a different request.")
    return row.id


def create_sweep(
    session: Session,
    request: SweepRequest,
    now: datetime,
    *,
    by: str = COMMAND_LINE,
    sweep_id: str | None = None,
    key: str | None = None,
    cloned_from: str | None = None,
    campaign_id: str | None = None,
) -> str:
    """Check a plan against every device that may carry it out, queue it, and return the new sweep's id.

    Args:
        session: a session for writing.
        request: what is asked for.
        now: UTC.
        by: who asks.
        sweep_id: the new sweep's identifier, a UUID; None makes one.
        key: what the submitter calls this request.
        cloned_from: the sweep that this one repeats.
        campaign_id: the campaign that this one is part of.

    Raises:
        NotFoundError: there is no such device or group.
        PowerlabError: no device is chosen, or one of them cannot carry out the plan, or the priority is out of bounds.
    """
    complaint = priority_complaint(request.priority)
    if complaint:
        raise PowerlabError(complaint)
    request = clustered(request)
    candidates, others = chosen(session, request), along(session, request)
    if others:
        check_together((*candidates, *others), now)
    for candidate in (*candidates, *others):
        _check_plan(request, candidate, named=campaign_id is None)
    check_models(session, request.plan.models, now)
    first = candidates[0]
    sweep_id = sweep_id or str(uuid.uuid4())
    session.add(
        SweepRow(
            id=sweep_id,
            device_id=first.record.id,
            snapshot_id=first.snapshot.id,
            plan=to_document(request.plan),
            created_at=now,
            submitter=by,
            request_key=key,
            cloned_from=cloned_from,
            any_of=None if request.any_of is None else to_document(request.any_of),
            campaign_id=campaign_id,
        )
    )
    session.flush()
    add_points(session, sweep_id, request.plan, first.snapshot)
    add_nodes(session, sweep_id, others)
    if request.any_of is not None:
        _add_candidates(session, sweep_id, request.plan, candidates)
    session.add(
        JobRow(
            id=str(uuid.uuid4()),
            sweep_id=sweep_id,
            device_id=first.record.id,
            state=SweepState.QUEUED.value,
            fencing_token=0,
            priority=request.priority,
            expected_s=max(_expected_s(session, one, request.plan) for one in candidates),
            detail="",
            created_at=now,
        )
    )
    names = ", ".join(candidate.record.device.name for candidate in (*candidates, *others))
    record(session, now, by, "create sweep", sweep_id, device=names)
    return sweep_id


def clustered(request: SweepRequest) -> SweepRequest:
    """Return a request whose plan says how many devices it is for."""
    return replace(request, plan=replace(request.plan, nodes=1 + len(request.with_ids)))


def _expected_s(session: Session, candidate: Candidate, plan: SweepPlan) -> float:
    return estimate(session, candidate.record.id, candidate.record.capabilities, plan).expected_s


def _check_plan(request: SweepRequest, candidate: Candidate, *, named: bool) -> None:
    device, capabilities = candidate.record.device, candidate.record.capabilities
    try:
        check_plan(request.plan, device, capabilities, invented_pass=True)
    except PowerlabError as error:
        if request.any_of is None and named:
            raise
        raise PowerlabError(f"{device.name} is one of the devices that are chosen, but: {error}") from error


def _add_candidates(session: Session, sweep_id: str, plan: SweepPlan, candidates: Sequence[Candidate]) -> None:
    for candidate in candidates:
        mode_ids(session, plan, candidate.snapshot)  # who takes the sweep finds all its modes there
        session.add(
            SweepCandidateRow(sweep_id=sweep_id, device_id=candidate.record.id, snapshot_id=candidate.snapshot.id)
        )


def priority_complaint(priority: int) -> str:
    """Say what is wrong with a priority; empty where nothing is."""
    if abs(priority) <= HIGHEST_PRIORITY:
        return ""
    return f"the priority is {priority}; give an integer from -{HIGHEST_PRIORITY} to {HIGHEST_PRIORITY}."
