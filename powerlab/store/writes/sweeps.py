"""A plan becomes a sweep with its points and a job; asked for twice under one key, it becomes one sweep."""

from __future__ import annotations

import uuid
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import ModeOrigin
from powerlab.domain.preflight import check_plan
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Workload
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.protocol.wire import from_document, to_document
from powerlab.store.convert import to_device
from powerlab.store.errors import ConflictError
from powerlab.store.model_queries import check_models
from powerlab.store.models import DeviceRow, DeviceSnapshotRow, JobRow, PointRow, PowerModeRow, SweepRow, WorkloadRow
from powerlab.store.queries import newest_snapshot
from powerlab.store.writes.audit import COMMAND_LINE, record

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
    if key is not None and not 1 <= len(key) <= LONGEST_KEY:
        raise PowerlabError(f"an Idempotency-Key has 1 to {LONGEST_KEY} characters, not {len(key)}.")
    if sweep_id is not None and not _is_uuid(sweep_id):
        raise PowerlabError(f"{sweep_id!r} is no identifier for a sweep; make a UUID, in lower case.")
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
    if SweepRequest(device_id=row.device_id, plan=plan, priority=row.job.priority) != request:
        raise ConflictError(f"the {name} belongs to another sweep ({row.id}); take a new one for other words.")
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
) -> str:
    """Check a plan against its device, queue it, and return the new sweep's id.

    Args:
        session: a session for writing.
        request: what is asked for.
        now: UTC.
        by: who asks.
        sweep_id: the new sweep's identifier, a UUID; None makes one.
        key: what the submitter calls this request.
        cloned_from: the sweep that this one repeats.

    Raises:
        NotFoundError: there is no such device.
        PowerlabError: the device cannot carry out the plan, or the priority is out of bounds.
    """
    complaint = priority_complaint(request.priority)
    if complaint:
        raise PowerlabError(complaint)
    snapshot = newest_snapshot(session, request.device_id)
    device = to_device(session.get_one(DeviceRow, request.device_id), snapshot)
    check_plan(request.plan, device.device, device.capabilities, invented_pass=True)
    check_models(session, request.plan.models, now)
    sweep_id = sweep_id or str(uuid.uuid4())
    session.add(
        SweepRow(
            id=sweep_id,
            device_id=device.id,
            snapshot_id=snapshot.id,
            plan=to_document(request.plan),
            created_at=now,
            submitter=by,
            request_key=key,
            cloned_from=cloned_from,
        )
    )
    session.flush()
    _add_points(session, sweep_id, request.plan, snapshot)
    session.add(
        JobRow(
            id=str(uuid.uuid4()),
            sweep_id=sweep_id,
            device_id=device.id,
            state=SweepState.QUEUED.value,
            fencing_token=0,
            priority=request.priority,
            detail="",
            created_at=now,
        )
    )
    record(session, now, by, "create sweep", sweep_id, device=device.device.name)
    return sweep_id


def priority_complaint(priority: int) -> str:
    """Say what is wrong with a priority; empty where nothing is."""
    if abs(priority) <= HIGHEST_PRIORITY:
        return ""
    return f"the priority is {priority}; give a whole number from -{HIGHEST_PRIORITY} to {HIGHEST_PRIORITY}."


def _add_points(session: Session, sweep_id: str, plan: SweepPlan, snapshot: DeviceSnapshotRow) -> None:
    modes = _mode_ids(session, plan, snapshot)
    workloads: dict[Workload, int] = {}
    for position, point in enumerate(plan.points()):
        if point.workload not in workloads:
            workloads[point.workload] = _workload_id(session, point.workload)
        session.add(
            PointRow(
                sweep_id=sweep_id,
                key=point.id,
                position=position,
                workload_id=workloads[point.workload],
                power_mode_id=modes[point.mode],
                threads=point.threads,
                spin_us=point.spin_us,
                cores=point.cores,
            )
        )


def _mode_ids(session: Session, plan: SweepPlan, snapshot: DeviceSnapshotRow) -> dict[str, int]:
    """Return the modes' ids by name; one that is made of parts and not listed is noted by its name."""
    known = {mode.name: mode.id for mode in snapshot.modes}
    for position, name in enumerate((name for name in plan.modes if name not in known), start=len(known)):
        row = PowerModeRow(
            position=position,
            name=name,
            settings=[],
            origin=ModeOrigin.INVENTED.value,
            requires_reboot=False,
            description="",
        )
        snapshot.modes.append(row)
        session.flush()
        known[name] = row.id
    return known


def _workload_id(session: Session, workload: Workload) -> int:
    said = {**to_document(workload)}
    row = session.scalar(select(WorkloadRow).filter_by(**said))
    if row is None:
        row = WorkloadRow(**said)
        session.add(row)
        session.flush()
    return row.id
