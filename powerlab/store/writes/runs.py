"""Uploads: runs and trace chunks under identifiers the device gave them, so that sending twice changes nothing."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS, POWER_FIGURES, Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import ChunksUpload, ChunkUpload, RunUpload
from powerlab.protocol.wire import check_survives, digest, from_document, to_document
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.models import DeviceSnapshotRow, PointRow, RunMetricRow, RunRow
from powerlab.store.traces.base import trace_store
from powerlab.store.writes.jobs import held_job_of_sweep
from powerlab.store.writes.tallies import count_run, count_samples


def store_run(session: Session, device_id: str, upload: RunUpload, now: datetime) -> bool:
    """Store a run; False where the same run is there already.

    Raises:
        ConflictError: the identifier, or the point's repeat, is taken by a run with other content.
        StaleLeaseError, ForbiddenError, NotFoundError: the sender does not hold the sweep's job.
        PowerlabError: the run does not fit its sweep.
    """
    run = upload.run
    job = held_job_of_sweep(session, device_id, run.sweep_id, upload.fencing_token)
    check_survives(run)
    sha256 = digest(run)
    before = session.get(RunRow, run.id)
    if before is not None:
        if before.sha256 != sha256:
            raise ConflictError(f"the run {run.id} was uploaded before with other content; the first upload stays.")
        return False
    point = session.scalar(select(PointRow).where(PointRow.sweep_id == run.sweep_id, PointRow.key == run.point.id))
    if point is None:
        raise PowerlabError(f"the point {run.point.id} is not part of the sweep {run.sweep_id}.")
    taken = session.scalar(select(RunRow.id).where(RunRow.point_id == point.id, RunRow.repeat == run.repeat))
    if taken is not None:
        raise ConflictError(f"repeat {run.repeat} of that point is stored already, as the run {taken}.")
    _check(run, from_document(job.sweep.plan, SweepPlan))
    told = select(DeviceSnapshotRow.simulated).where(DeviceSnapshotRow.id == job.sweep.snapshot_id)
    session.add(_to_row(run, point, device_id, simulated=bool(session.scalar(told)), sha256=sha256, now=now))
    count_run(session, device_id, run.id, run.verdict)
    return True


def store_chunk(session: Session, device_id: str, run_id: str, upload: ChunkUpload) -> bool:
    """Store a chunk of a run's trace; False where the same bytes are there already. Raises as :func:`store_chunks`."""
    chunks = ChunksUpload(fencing_token=upload.fencing_token, chunks=(upload.chunk,))
    return store_chunks(session, device_id, run_id, chunks)


def store_chunks(session: Session, device_id: str, run_id: str, upload: ChunksUpload) -> bool:
    """Store chunks of a run's traces; False where the same bytes of all of them are there already.

    Raises:
        NotFoundError: the run was not uploaded yet.
        ConflictError: other bytes are stored in a chunk's place.
        StaleLeaseError, ForbiddenError: the sender does not hold the sweep's job.
        PowerlabError: a chunk is damaged.
    """
    run = session.execute(select(RunRow.sweep_id, RunRow.verdict).where(RunRow.id == run_id)).one_or_none()
    if run is None:
        raise NotFoundError(f"there is no run {run_id!r}; upload the run before its traces.")
    held_job_of_sweep(session, device_id, run.sweep_id, upload.fencing_token)
    for rail in {chunk.rail for chunk in upload.chunks}:
        check_survives(rail)  # what else a chunk says is held against its samples, which are finite
    new_count = trace_store(session).append(session, device_id, run_id, upload.chunks)
    if new_count:
        count_samples(session, device_id, run.verdict, new_count)
    return new_count > 0


def _check(run: Run, plan: SweepPlan) -> None:
    for metric in run.metrics:
        if metric.name not in METRICS:
            raise PowerlabError(f"the metric {metric.name!r} is unknown here; update powerlab on the server.")
        if not _interval_holds(metric):
            raise PowerlabError(f"the interval of {metric.name} ({metric.low} to {metric.high}) misses {metric.value}.")
    names = sorted(metric.name for metric in run.metrics)
    if any(first == second for first, second in pairwise(names)):
        raise PowerlabError("a run has one figure of each metric; this one has some twice.")
    if len(_power_provenances(run)) > 1:
        words = " and ".join(sorted(_power_provenances(run)))
        raise PowerlabError(f"a run's figures of power come from one place; these are {words}.")
    if run.repeat >= plan.most_repeats:
        raise PowerlabError(
            f"the run says repeat {run.repeat}, counted from 0, but the plan has {plan.most_repeats} repeats."
        )
    if run.repeat < 0 or run.inference_count < 0 or run.window_ns[0] > run.window_ns[1]:
        raise PowerlabError("the run's repeat, inference count or window is impossible.")


def _power_provenances(run: Run) -> set[str]:
    return {metric.provenance.value for metric in run.metrics if metric.name in POWER_FIGURES}


def _interval_holds(metric: Metric) -> bool:
    if metric.low is None or metric.high is None:
        return metric.low is metric.high
    return metric.low <= metric.value <= metric.high


def _to_row(run: Run, point: PointRow, device_id: str, *, simulated: bool, sha256: str, now: datetime) -> RunRow:
    return RunRow(
        id=run.id,
        sweep_id=run.sweep_id,
        device_id=device_id,
        simulated=simulated,
        point_id=point.id,
        workload_id=point.workload_id,
        threads=point.threads,
        mode=run.point.mode,
        power_provenance=next(iter(_power_provenances(run)), None),
        repeat=run.repeat,
        started_at=run.started_at,
        window_start_ns=run.window_ns[0],
        window_end_ns=run.window_ns[1],
        inference_count=run.inference_count,
        verdict=run.verdict.value,
        findings=to_document(run.findings),
        total=None if run.total is None else to_document(run.total),
        budget=to_document(run.budget),
        conditions=None if run.conditions is None else to_document(run.conditions),
        sha256=sha256,
        received_at=now,
        metrics=[
            RunMetricRow(
                position=position,
                name=metric.name,
                value=metric.value,
                unit=METRICS[metric.name].unit,
                low=metric.low,
                high=metric.high,
                provenance=metric.provenance.value,
                received_at=now,
            )
            for position, metric in enumerate(run.metrics)
        ],
    )
