"""Points that a plan expands to, with their workloads and power modes."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.domain.mode import ModeOrigin
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Workload
from powerlab.protocol.wire import to_document
from powerlab.store.tables import DeviceSnapshotRow, PointRow, PowerModeRow, WorkloadRow


def add_points(session: Session, sweep_id: str, plan: SweepPlan, snapshot: DeviceSnapshotRow) -> None:
    """Add a plan's points to a sweep; their modes are those of a snapshot."""
    modes = mode_ids(session, plan, snapshot)
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


def mode_ids(session: Session, plan: SweepPlan, snapshot: DeviceSnapshotRow) -> dict[str, int]:
    """Return a snapshot's modes' ids by name; one that is made of parts and not listed is noted by its name."""
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
