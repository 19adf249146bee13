"""A plan becomes a sweep with its points and a job."""

from __future__ import annotations

import uuid
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.domain.preflight import check_plan
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Workload
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import SweepState
from powerlab.protocol.wire import to_document
from powerlab.store.convert import to_device
from powerlab.store.model_queries import check_models
from powerlab.store.models import DeviceRow, DeviceSnapshotRow, JobRow, PointRow, SweepRow, WorkloadRow
from powerlab.store.queries import newest_snapshot
from powerlab.store.writes.audit import record


def create_sweep(session: Session, request: SweepRequest, now: datetime) -> str:
    """Check a plan against its device, queue it, and return the new sweep's id.

    Raises:
        NotFoundError: there is no such device.
        PowerlabError: the device cannot carry out the plan.
    """
    snapshot = newest_snapshot(session, request.device_id)
    device = to_device(session.get_one(DeviceRow, request.device_id), snapshot)
    check_plan(request.plan, device.device, device.capabilities, invented_pass=True)
    check_models(session, request.plan.models, now)
    sweep_id = str(uuid.uuid4())
    session.add(
        SweepRow(
            id=sweep_id,
            device_id=device.id,
            snapshot_id=snapshot.id,
            plan=to_document(request.plan),
            created_at=now,
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
            detail="",
            created_at=now,
        )
    )
    record(session, now, "operator", "create sweep", sweep_id, device=device.device.name)
    return sweep_id


def _add_points(session: Session, sweep_id: str, plan: SweepPlan, snapshot: DeviceSnapshotRow) -> None:
    modes = {mode.name: mode.id for mode in snapshot.modes}
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


def _workload_id(session: Session, workload: Workload) -> int:
    said = {**to_document(workload)}
    row = session.scalar(select(WorkloadRow).filter_by(**said))
    if row is None:
        row = WorkloadRow(**said)
        session.add(row)
        session.flush()
    return row.id
