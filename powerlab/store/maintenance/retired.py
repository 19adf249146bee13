"""Records of removed data, for readers and late uploads."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.store.errors import RetiredError
from powerlab.store.tables import RetirementRow, RunRow
from powerlab.store.tables.retirement import Kind


def traces_kept_since(session: Session) -> datetime | None:
    """Return when a run must have arrived for its traces to be kept; None where all are."""
    return session.scalar(select(RetirementRow.before).where(RetirementRow.kind == Kind.TRACES.value))


def why_no_traces(session: Session, run_id: str) -> str:
    """Say that a run's traces are no longer kept; empty where they are, or where nobody knows the run."""
    wanted = (
        select(RetirementRow.before, RetirementRow.retired_at)
        .join(RunRow, RunRow.received_at < RetirementRow.before)
        .where(RetirementRow.kind == Kind.TRACES.value, RunRow.id == run_id)
    )
    row = session.execute(wanted).one_or_none()
    if row is None:
        return ""
    return (
        f"traces of runs that arrived before {row.before:%d %B %Y} are no longer kept (removed on "
        f"{row.retired_at:%d %B %Y}); the run's figures stay."
    )


def check_traces_kept(session: Session, run_id: str) -> None:
    """Raise RetiredError where a run's traces are no longer kept."""
    reason = why_no_traces(session, run_id)
    if reason:
        raise RetiredError(reason)


def last_retired_event(session: Session) -> int:
    """Return the number of the last event that is no longer kept; 0 where all are."""
    return session.scalar(select(RetirementRow.last_id).where(RetirementRow.kind == Kind.EVENTS.value)) or 0


def check_events_kept(session: Session, after: int) -> None:
    """Raise RetiredError where events behind a number are no longer kept."""
    last = last_retired_event(session)
    if after < last:
        raise RetiredError(
            f"events up to number {last} are no longer kept, and you have seen those up to {after}; start again with "
            "after=0, and read the lists for what happened before."
        )
