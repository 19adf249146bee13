"""Uploads of runs and trace chunks, idempotent by identifiers that the device assigns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from sqlalchemy import and_, insert, or_, select
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.domain.quantity import METRICS, POWER_FIGURES, Metric
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import ChunksUpload, ChunkUpload, RunUpload
from powerlab.protocol.records import OVER
from powerlab.protocol.wire import check_survives, digest, from_document, to_document
from powerlab.store.errors import ConflictError
from powerlab.store.maintenance.retired import why_no_traces
from powerlab.store.tables import DeviceSnapshotRow, PointRow, RunMetricRow, RunRow, SweepRow
from powerlab.store.traces.base import trace_store
from powerlab.store.traces.index import places_of
from powerlab.store.writes.jobs import held_job_of_run, held_job_of_sweep
from powerlab.store.writes.summaries import forget_summaries
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
    place = _place(session, run)
    if place is None:
        raise PowerlabError(f"the point {run.point.id} is not part of the sweep {run.sweep_id}.")
    sha256 = digest(run)
    if _is_stored(session, run, place.point_id, sha256):
        return False
    _check(run, place.plan)
    session.add(_to_row(run, place, device_id, sha256=sha256, now=now))
    count_run(session, device_id, run.id, run.verdict)
    if run.metrics:  # as rows without objects: nobody looks at them here
        session.connection().execute(insert(RunMetricRow), _metrics(run, now))
    if job.state in OVER:
        forget_summaries(session, run.sweep_id)
    return True


def store_chunk(session: Session, device_id: str, run_id: str, upload: ChunkUpload) -> bool:
    """Store a chunk of a run's trace; False where the same bytes are there already. Raises as :func:`store_chunks`."""
    chunks = ChunksUpload(fencing_token=upload.fencing_token, chunks=(upload.chunk,))
    return store_chunks(session, device_id, run_id, chunks)


def store_chunks(session: Session, device_id: str, run_id: str, upload: ChunksUpload) -> bool:
    """Store chunks of a run's traces; False where the same bytes of all of them are there, or are no longer kept.

    Raises:
        NotFoundError: the run was not uploaded yet.
        ConflictError: other bytes are stored in a chunk's place.
        StaleLeaseError, ForbiddenError: the sender does not hold the sweep's job.
        PowerlabError: a chunk is damaged.
    """
    verdict = held_job_of_run(session, device_id, run_id, upload.fencing_token)
    for rail in {chunk.rail for chunk in upload.chunks}:
        check_survives(rail)  # what else a chunk says is held against its samples, which are finite
    places_of(session, device_id, run_id)  # what has read a month holds it: from here to the end it cannot go
    if why_no_traces(session, run_id):
        return False  # its sender need not keep it either
    new_count = trace_store(session).append(session, device_id, run_id, upload.chunks)
    if new_count:
        count_samples(session, device_id, verdict, new_count)
    return new_count > 0


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run belongs, and whether its sweep's device is simulated."""

    point_id: int
    workload_id: int
    threads: int
    plan: SweepPlan
    simulated: bool


def _place(session: Session, run: Run) -> _Place | None:
    wanted = (
        select(PointRow.id, PointRow.workload_id, PointRow.threads, SweepRow.plan, DeviceSnapshotRow.simulated)
        .join(SweepRow, SweepRow.id == PointRow.sweep_id)
        .join(DeviceSnapshotRow, DeviceSnapshotRow.id == SweepRow.snapshot_id)
        .where(PointRow.sweep_id == run.sweep_id, PointRow.key == run.point.id)
    )
    found = session.execute(wanted).one_or_none()
    if found is None:
        return None
    point_id, workload_id, threads, plan, simulated = found
    return _Place(point_id, workload_id, threads, from_document(plan, SweepPlan), simulated)


def _is_stored(session: Session, run: Run, point_id: int, sha256: str) -> bool:
    """Return whether the same run is there already; raises ConflictError where another one is in its place."""
    same_repeat = and_(RunRow.point_id == point_id, RunRow.repeat == run.repeat)
    wanted = select(RunRow.id, RunRow.sha256).where(or_(RunRow.id == run.id, same_repeat))
    there = dict(session.execute(wanted).all())
    if run.id in there:
        if there[run.id] != sha256:
            raise ConflictError(
                f"the run {run.id} was uploaded before with different content; the first upload is kept."
            )
        return True
    for taken in there:
        raise ConflictError(f"repeat {run.repeat} of that point is stored already, as the run {taken}.")
    return False


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


def _to_row(run: Run, place: _Place, device_id: str, *, sha256: str, now: datetime) -> RunRow:
    return RunRow(
        id=run.id,
        sweep_id=run.sweep_id,
        device_id=device_id,
        simulated=place.simulated,
        point_id=place.point_id,
        workload_id=place.workload_id,
        threads=place.threads,
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
    )


def _metrics(run: Run, now: datetime) -> list[dict[str, Any]]:
    return [
        {
            "run_id": run.id,
            "position": position,
            "name": metric.name,
            "value": metric.value,
            "unit": METRICS[metric.name].unit,
            "low": metric.low,
            "high": metric.high,
            "provenance": metric.provenance.value,
            "received_at": now,
        }
        for position, metric in enumerate(run.metrics)
    ]
