"""The audit log: who did what."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from powerlab.protocol.access import AuditEventPage
from powerlab.store.reads.audit_log import EventFilter
from powerlab.store.reads.audit_log import list_events as events_of
from powerlab_api.cursor import from_counted_cursor, to_cursor
from powerlab_api.dependencies import Cursor, Limit, ReadSession
from powerlab_api.roles import Requires

router = APIRouter(prefix="/audit-events", tags=["audit events"])
Moment = Annotated[AwareDatetime | None, Query(description="with its zone, as RFC 3339 writes it")]


@router.get("", dependencies=[Requires.admin])
def list_events(
    session: ReadSession,
    *,
    actor: str | None = None,
    action: str | None = None,
    subject: str | None = None,
    since: Moment = None,
    before: Moment = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> AuditEventPage:
    """Return who did what, newest first; ``since`` is part of the time asked for, ``before`` is not."""
    filters = EventFilter(
        actor=actor,
        action=action,
        subject=subject,
        since=_in_utc(since),
        before=_in_utc(before),
        limit=limit + 1,
        after=from_counted_cursor(cursor),
    )
    found = events_of(session, filters)
    items = found[:limit]
    more = to_cursor(items[-1].at, str(items[-1].id)) if len(found) > limit else None
    return AuditEventPage(items=tuple(items), next_cursor=more)


def _in_utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
