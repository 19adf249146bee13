"""Queries of the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from powerlab.protocol.access import AuditEvent
from powerlab.store.tables import AuditEventRow

_NEWEST = 2000
"""Events that are looked through for what can be asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are wanted; None asks for all.

    Attributes:
        actor: done by, the whole name.
        action: what was done, the whole words.
        subject: to what, the whole identifier or name.
        since: at that time or later.
        before: earlier than that.
        limit: how many at most.
        after: the (at, id) of the last one seen.
    """

    actor: str | None = None
    action: str | None = None
    subject: str | None = None
    since: datetime | None = None
    before: datetime | None = None
    limit: int | None = None
    after: tuple[datetime, int] | None = None


def actions_and_actors(session: Session) -> tuple[Sequence[str], Sequence[str]]:
    """Return which actions and which actors the newest events have, in the order of their names."""
    newest = select(AuditEventRow.action, AuditEventRow.actor).order_by(AuditEventRow.at.desc()).limit(_NEWEST)
    rows = session.execute(newest).all()
    return sorted({row.action for row in rows}), sorted({row.actor for row in rows})


def list_events(session: Session, filters: EventFilter) -> Sequence[AuditEvent]:
    """Return events, newest first."""
    wanted = select(AuditEventRow).order_by(AuditEventRow.at.desc(), AuditEventRow.id.desc()).limit(filters.limit)
    for column, value in (
        (AuditEventRow.actor, filters.actor),
        (AuditEventRow.action, filters.action),
        (AuditEventRow.subject, filters.subject),
    ):
        if value is not None:
            wanted = wanted.where(column == value)
    if filters.since is not None:
        wanted = wanted.where(AuditEventRow.at >= filters.since)
    if filters.before is not None:
        wanted = wanted.where(AuditEventRow.at < filters.before)
    if filters.after is not None:
        wanted = wanted.where(tuple_(AuditEventRow.at, AuditEventRow.id) < filters.after)
    return [
        AuditEvent(id=row.id, at=row.at, actor=row.actor, action=row.action, subject=row.subject, detail=row.detail)
        for row in session.scalars(wanted)
    ]
