"""Conversion of database rows to domain objects.

Lists are read as plain columns, those of the tuples below, because objects that follow every row take more time than
the database; documents are read from their text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Text, cast

from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.quantity import Metric, Provenance
from powerlab.domain.selector import Label, Selector
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, Workload, WorkloadKind
from powerlab.protocol.messages import Description
from powerlab.protocol.records import BacklogRecord, DeviceRecord, JobRecord, SweepRecord, SweepState
from powerlab.protocol.wire import from_document, reader
from powerlab.store.tables import (
    DeviceRow,
    DeviceSnapshotRow,
    JobRow,
    PointRow,
    RailRow,
    RunMetricRow,
    SweepRow,
    WorkloadRow,
)

WORKLOAD = tuple(column for column in WorkloadRow.__table__.columns if column.name != "id")
POINT = (PointRow.threads, PointRow.spin_us, PointRow.cores, *WORKLOAD)
METRIC = (RunMetricRow.name, RunMetricRow.value, RunMetricRow.low, RunMetricRow.high, RunMetricRow.provenance)
SWEEP = (
    *(SweepRow.id, SweepRow.device_id, SweepRow.created_at, SweepRow.submitter, SweepRow.cloned_from),
    *(cast(SweepRow.plan, Text).label("plan"), cast(SweepRow.any_of, Text).label("any_of"), SweepRow.campaign_id),
    *(DeviceRow.name.label("device_name"), DeviceSnapshotRow.simulated),
    *(JobRow.state, JobRow.detail, JobRow.finished_at, JobRow.priority, JobRow.deadline),
)
JOB = (
    *(JobRow.id, JobRow.sweep_id, JobRow.device_id, JobRow.state, JobRow.priority, JobRow.detail, JobRow.created_at),
    *(JobRow.leased_at, JobRow.deadline, JobRow.finished_at, SweepRow.submitter),
    *(DeviceRow.name.label("device_name"), SweepRow.any_of.is_not(None).label("chosen")),
)

_PROVENANCES = {one.value: one for one in Provenance}
_plan = reader(SweepPlan)
_selector = reader(Selector)


def to_workload(row: Any) -> Workload:
    """Return what a row with the columns :data:`WORKLOAD` says."""
    return Workload(
        model=row.model,
        batch_size=row.batch_size,
        precision=row.precision,
        scenario=Scenario(row.scenario),
        engine=row.engine,
        slices=row.slices,
        queues=row.queues,
        preparation=Preparation(row.preparation),
        latency_bound_ms=row.latency_bound_ms,
        processor=Processor(row.processor),
        kind=WorkloadKind(row.kind),
        optimizer=row.optimizer,
        recompute=Recompute(row.recompute),
        nodes=row.nodes,
    )


def to_point(row: Any, mode: str) -> Point:
    """Return what a row with the columns :data:`POINT` says, of a point in a power mode."""
    return Point(workload=to_workload(row), threads=row.threads, mode=mode, spin_us=row.spin_us, cores=row.cores)


def to_metric(name: str, value: float, low: float | None, high: float | None, provenance: str) -> Metric:
    """Return the figure that the columns :data:`METRIC` say."""
    return Metric(name=name, value=value, low=low, high=high, provenance=_PROVENANCES[provenance])


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
        seen_share=row.seen_share,
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


def to_backlog(row: Any) -> BacklogRecord:
    """Return what a row with the columns of ``device_backlog`` says."""
    return BacklogRecord(
        said_at=row.said_at,
        runs=row.runs,
        refused_runs=row.refused_runs,
        chunks=row.chunks,
        size_bytes=row.size_bytes,
        oldest_since=row.oldest_since,
        shed_runs=row.shed_runs,
    )


def to_sweep(row: Any, stored_run_count: int, candidates: Sequence[str]) -> SweepRecord:
    """Return a sweep with the state of its job, from a row with the columns :data:`SWEEP`."""
    plan = _plan(row.plan)
    return SweepRecord(
        id=row.id,
        device_id=row.device_id,
        device_name=row.device_name,
        simulated=row.simulated,
        plan=plan,
        state=SweepState(row.state),
        detail=row.detail,
        created_at=row.created_at,
        finished_at=row.finished_at,
        planned_run_count=_planned(plan, SweepState(row.state), stored_run_count),
        stored_run_count=stored_run_count,
        priority=row.priority,
        submitter=row.submitter,
        held_until=row.deadline,
        cloned_from=row.cloned_from,
        any_of=None if row.any_of is None else _selector(row.any_of),
        candidates=tuple(candidates),
        campaign_id=row.campaign_id,
    )


def _planned(plan: SweepPlan, state: SweepState, stored_run_count: int) -> int:
    """Return how many runs a sweep has; a search that is done has made all it wanted."""
    if plan.search_percent and state is SweepState.DONE:
        return stored_run_count
    return max(plan.point_count * plan.repeats, stored_run_count)


def to_job(row: Any, candidates: Sequence[str]) -> JobRecord:
    """Return a job's place in the queue, from a row with the columns :data:`JOB`."""
    return JobRecord(
        id=row.id,
        sweep_id=row.sweep_id,
        device_id=row.device_id,
        device_name=row.device_name,
        state=SweepState(row.state),
        priority=row.priority,
        submitter=row.submitter,
        detail=row.detail,
        created_at=row.created_at,
        leased_at=row.leased_at,
        held_until=row.deadline,
        finished_at=row.finished_at,
        candidates=tuple(candidates),
    )
