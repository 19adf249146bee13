"""Queries of new events."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from powerlab.protocol.events import Event, EventKind
from powerlab.store.tables import EventRow


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are wanted; None asks for all."""

    device_id: str | None = None
    sweep_id: str | None = None


def newest_event(session: Session) -> int:
    """Return the largest id there is; 0 where nothing has happened."""
    return session.scalar(select(func.max(EventRow.id))) or 0


def events_after(session: Session, after: int, filters: EventFilter, limit: int) -> tuple[list[Event], int]:
    """Return wanted events behind an id, in order, and the id behind which to ask next.

    All up to the newest are visible once that one is, so that the second id may lie beyond the last wanted event.
    """
    newest = newest_event(session)
    wanted = select(EventRow).where(EventRow.id > after, EventRow.id <= newest).order_by(EventRow.id).limit(limit)
    if filters.device_id is not None:
        wanted = wanted.where(EventRow.device_id == filters.device_id)
    if filters.sweep_id is not None:
        wanted = wanted.where(EventRow.sweep_id == filters.sweep_id)
    found = [_to_event(row) for row in session.scalars(wanted)]
    return found, found[-1].id if len(found) == limit else max(after, newest)


def _to_event(row: EventRow) -> Event:
    return Event(
        id=row.id,
        at=row.at,
        kind=EventKind(row.kind),
        device_id=row.device_id,
        sweep_id=row.sweep_id,
        run_id=row.run_id,
        detail=row.detail,
    )
