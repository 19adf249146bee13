"""Stored summaries of finished sweeps: write and invalidate."""

from __future__ import annotations

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from powerlab.analysis.searched import in_contest
from powerlab.analysis.summary import METHOD, summarise
from powerlab.protocol.records import OVER
from powerlab.store.reads.answers import answers_of, packed_answers
from powerlab.store.reads.queries import runs_of_sweep, sweep
from powerlab.store.reads.sweep_results import packed
from powerlab.store.tables import JobRow, SweepSummaryRow


def keep_summaries(session: Session, sweep_id: str) -> bool:
    """Work out a sweep's summaries and answers and keep them; False where it is not over, or somebody adds to it now.

    Whoever stores a run holds the sweep's job, and so does this: no run comes between reading and keeping.
    """
    over = select(JobRow.id).where(JobRow.sweep_id == sweep_id, JobRow.state.in_(OVER))
    if session.scalar(over.with_for_update(skip_locked=True)) is None:
        return False
    runs = runs_of_sweep(session, sweep_id)
    summaries = summarise(runs)
    row = SweepSummaryRow(sweep_id=sweep_id, method=METHOD, run_count=len(runs), document=packed(summaries))
    row.answers = packed_answers(answers_of(in_contest(summaries, sweep(session, sweep_id).plan), runs))
    session.merge(row)
    return True


def forget_summaries(session: Session, sweep_id: str) -> None:
    """Forget what a sweep's runs said together, for another one came."""
    session.execute(delete(SweepSummaryRow).where(SweepSummaryRow.sweep_id == sweep_id))
