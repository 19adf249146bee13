"""Name sweeps a baseline. Idempotent."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from powerlab.analysis.gate.samples import model_name
from powerlab.domain.errors import PowerlabError
from powerlab.domain.selector import check_word
from powerlab.protocol.baselines import BaselineRequest
from powerlab.protocol.records import OVER, SweepState
from powerlab.store.errors import NotFoundError
from powerlab.store.reads.baselines import baseline
from powerlab.store.tables import BaselineSweepRow, JobRow, RunRow, SweepRow
from powerlab.store.writes.audit import record

MOST_SWEEPS = 1000
"""Sweeps of one baseline."""


def put_baseline(session: Session, name: str, request: BaselineRequest, by: str, now: datetime) -> None:
    """Make sweeps part of a baseline, in place of those of the same devices and models unless those are kept.

    Raises:
        NotFoundError: there is no such sweep.
        PowerlabError: the name is none, no sweep is named, or one is not over or has no runs.
    """
    check_word(name, "baseline name")
    wanted = dict.fromkeys(request.sweep_ids)
    if not wanted:
        raise PowerlabError("a baseline has at least one sweep; name one.")
    rows = [_finished(session, sweep_id) for sweep_id in wanted]
    there = {row.sweep_id: row for row in session.scalars(_members(name).with_for_update())}
    if not request.keep:
        measured = {(row.device_id, model_name(model)) for row in rows for model in row.plan["models"]}
        for sweep_id, member in there.items():
            if sweep_id not in wanted and _measures(session, sweep_id, measured):
                session.delete(member)
    session.flush()
    kept = session.scalar(select(func.count()).select_from(_members(name).subquery())) or 0
    new = [sweep_id for sweep_id in wanted if sweep_id not in there]
    if kept + len(new) > MOST_SWEEPS:
        raise PowerlabError(f"a baseline has up to {MOST_SWEEPS} sweeps; take another name, or remove this one first.")
    session.add_all(BaselineSweepRow(name=name, sweep_id=sweep_id, set_at=now, set_by=by) for sweep_id in new)
    record(session, now, by, "set baseline", name, sweeps=list(wanted), keep=request.keep)


def remove_baseline(session: Session, name: str, by: str, now: datetime) -> None:
    """Forget a baseline; its sweeps stay as they are. Raises NotFoundError where there is none."""
    baseline(session, name)
    for member in session.scalars(_members(name)):
        session.delete(member)
    record(session, now, by, "remove baseline", name)


def _members(name: str) -> Select[BaselineSweepRow]:
    return select(BaselineSweepRow).where(BaselineSweepRow.name == name)


def _finished(session: Session, sweep_id: str) -> SweepRow:
    row = session.get(SweepRow, sweep_id)
    if row is None:
        raise NotFoundError(f"there is no sweep {sweep_id!r}; `powerlab sweep list` (GET /api/v1/sweeps) lists them.")
    state = session.scalar(select(JobRow.state).where(JobRow.sweep_id == sweep_id))
    if state is not None and SweepState(state) not in OVER:
        raise PowerlabError(f"the sweep {sweep_id} is {state}; a baseline takes sweeps that are over.")
    if session.scalar(select(RunRow.id).where(RunRow.sweep_id == sweep_id).limit(1)) is None:
        raise PowerlabError(f"the sweep {sweep_id} has no runs, so that nothing can be judged by it; name another.")
    return row


def _measures(session: Session, sweep_id: str, measured: Collection[tuple[str, str]]) -> bool:
    row = session.get_one(SweepRow, sweep_id)
    return any((row.device_id, model_name(model)) in measured for model in row.plan["models"])
