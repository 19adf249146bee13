"""More repeats of a stored sweep: the same sweep goes on, with whole blocks that hold all of its points."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.analysis.summary import MIN_VALID
from powerlab.domain.preflight import check_plan
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.records import OVER, SweepState
from powerlab.protocol.wire import from_document, to_document
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.duration_estimates import estimate
from powerlab.store.tables import JobRow, RunRow
from powerlab.store.writes.audit import record
from powerlab.store.writes.summaries import forget_summaries


def add_repeats(session: Session, sweep_id: str, by: str, now: datetime, *, add: int = MIN_VALID) -> None:
    """Queue further repeats of all points of a sweep that is over, on the device that has measured it.

    Repeats are whole blocks, so that what a block does to all points still cancels. Runs that were planned and never
    made are made with them.

    Args:
        session: a session for writing.
        sweep_id: the sweep.
        by: who asks.
        now: UTC.
        add: how many, beyond those of which there are runs.

    Raises:
        NotFoundError: there is no such sweep.
        ConflictError: it is not over, was cancelled, or its last run is still on its way.
        PowerlabError: they are too few or too many, or the device can no longer carry out the plan.
    """
    job = session.scalar(select(JobRow).where(JobRow.sweep_id == sweep_id).with_for_update())
    if job is None:
        raise NotFoundError(f"there is no sweep {sweep_id!r}; `powerlab sweep list` (GET /api/v1/sweeps) lists them.")
    if job.state not in OVER or job.state == SweepState.CANCELLED.value:
        raise ConflictError(f"the sweep {sweep_id} is {job.state}; repeats can be added to one that is done or failed.")
    last = session.scalar(select(func.max(RunRow.repeat)).where(RunRow.sweep_id == sweep_id))
    made = 0 if last is None else last + 1
    plan = from_document(job.sweep.plan, SweepPlan).with_more_repeats(made, add)
    device = queries.device(session, job.device_id)
    check_plan(plan, device.device, device.capabilities, invented_pass=True)
    job.sweep.plan = to_document(plan)
    job.state, job.detail, job.deadline, job.finished_at = SweepState.QUEUED.value, "", None, None
    job.expected_s = estimate(session, job.device_id, device.capabilities, plan).expected_s
    forget_summaries(session, sweep_id)
    record(session, now, by, "repeat", job.id, repeats=plan.repeats)
