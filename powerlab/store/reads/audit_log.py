"""Queries of the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from powerlab.protocol.access import AuditEvent
from powerlab.store.tables import AuditEventRow


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


def list_events(session: Session, wish: EventFilter) -> Sequence[AuditEvent]:
    """Return events, newest first."""
    wanted = select(AuditEventRow).order_by(AuditEventRow.at.desc(), AuditEventRow.id.desc()).limit(wish.limit)
    for column, value in (
        (AuditEventRow.actor, wish.actor),
        (AuditEventRow.action, wish.action),
        (AuditEventRow.subject, wish.subject),
    ):
        if value is not None:
            wanted = wanted.where(column == value)
    if wish.since is not None:
        wanted = wanted.where(AuditEventRow.at >= wish.since)
    if wish.before is not None:
        wanted = wanted.where(AuditEventRow.at < wish.before)
    if wish.after is not None:
        wanted = wanted.where(tuple_(AuditEventRow.at, AuditEventRow.id) < wish.after)
    return [
        AuditEvent(id=row.id, at=row.at, actor=row.actor, action=row.action, subject=row.subject, detail=row.detail)
        for row in session.scalars(wanted)
    ]
