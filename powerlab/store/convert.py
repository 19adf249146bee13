"""Database rows as domain words."""

from __future__ import annotations

from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.domain.selector import Label, Selector
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Preparation, Scenario, Workload
from powerlab.protocol.messages import Description
from powerlab.protocol.records import BacklogRecord, DeviceRecord, JobRecord, SweepRecord, SweepState
from powerlab.protocol.wire import from_document
from powerlab.store.models import (
    DeviceBacklogRow,
    DeviceRow,
    DeviceSnapshotRow,
    JobRow,
    PointRow,
    RailRow,
    SweepRow,
    WorkloadRow,
)


def to_workload(row: WorkloadRow) -> Workload:
    """Return what a workload row says."""
    return Workload(
        model=row.model,
        batch_size=row.batch_size,
        precision=row.precision,
        scenario=Scenario(row.scenario),
        engine=row.engine,
        slices=row.slices,
        preparation=Preparation(row.preparation),
        latency_bound_ms=row.latency_bound_ms,
    )


def to_point(row: PointRow) -> Point:
    """Return what a point row says."""
    workload = to_workload(row.workload)
    return Point(workload=workload, threads=row.threads, mode=row.power_mode.name, spin_us=row.spin_us, cores=row.cores)


def to_rail(row: RailRow) -> Rail:
    """Return what a rail row says."""
    return Rail(
        source=row.source,
        name=row.name,
        quantity=RailQuantity(row.quantity),
        resolution=row.resolution,
        relative_error=row.relative_error,
        update_period_s=row.update_period_s,
        provenance=Provenance(row.provenance),
        offset=row.offset,
        lag_s=row.lag_s,
        lag_error_s=row.lag_error_s,
    )


def to_device(row: DeviceRow, snapshot: DeviceSnapshotRow) -> DeviceRecord:
    """Return a device as its newest snapshot describes it."""
    said = from_document(snapshot.document, Description)
    return DeviceRecord(
        id=row.id,
        device=said.device,
        capabilities=said.capabilities,
        enrolled_at=row.enrolled_at,
        seen_at=row.seen_at,
        checks=said.checks,
        labels=tuple(str(Label(key=label.key, value=label.value)) for label in row.labels),
        backlog=None if row.backlog is None else to_backlog(row.backlog),
    )


def to_backlog(row: DeviceBacklogRow) -> BacklogRecord:
    """Return what a backlog's row says."""
    return BacklogRecord(
        said_at=row.said_at,
        runs=row.runs,
        refused_runs=row.refused_runs,
        chunks=row.chunks,
        size_bytes=row.size_bytes,
        oldest_since=row.oldest_since,
        shed_runs=row.shed_runs,
    )


def to_sweep(row: SweepRow, stored_run_count: int) -> SweepRecord:
    """Return a sweep with the state of its job."""
    plan = from_document(row.plan, SweepPlan)
    return SweepRecord(
        id=row.id,
        device_id=row.device_id,
        device_name=row.device.name,
        simulated=row.snapshot.simulated,
        plan=plan,
        state=SweepState(row.job.state),
        detail=row.job.detail,
        created_at=row.created_at,
        finished_at=row.job.finished_at,
        planned_run_count=max(plan.point_count * plan.repeats, stored_run_count),
        stored_run_count=stored_run_count,
        priority=row.job.priority,
        submitter=row.submitter,
        held_until=row.job.deadline,
        cloned_from=row.cloned_from,
        any_of=None if row.any_of is None else from_document(row.any_of, Selector),
        candidates=_candidates(row),
        campaign_id=row.campaign_id,
    )


def to_job(row: JobRow) -> JobRecord:
    """Return a job's place in the queue."""
    return JobRecord(
        id=row.id,
        sweep_id=row.sweep_id,
        device_id=row.device_id,
        device_name=row.sweep.device.name,
        state=SweepState(row.state),
        priority=row.priority,
        submitter=row.sweep.submitter,
        detail=row.detail,
        created_at=row.created_at,
        leased_at=row.leased_at,
        held_until=row.deadline,
        finished_at=row.finished_at,
        candidates=_candidates(row.sweep),
    )


def _candidates(row: SweepRow) -> tuple[str, ...]:
    return tuple(sorted(candidate.device.name for candidate in row.candidates))
