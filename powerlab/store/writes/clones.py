"""Clone a stored sweep, with changes."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import select
from sqlalchemy.orm import Session

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import CloneRequest, SweepRequest
from powerlab.protocol.wire import from_document, to_document
from powerlab.store.reads import queries
from powerlab.store.reads.clusters import node_rows
from powerlab.store.tables import SweepRow


def cloned(session: Session, sweep_id: str, clone: CloneRequest) -> SweepRequest:
    """Return the request for a sweep like a stored one.

    Raises:
        NotFoundError: there is no such sweep.
        PowerlabError: a change names no field of a plan, or gives it a value that is none for it.
    """
    original = queries.sweep(session, sweep_id)
    names = [field.name for field in fields(SweepPlan)]
    for name in clone.changes:
        if name not in names:
            raise PowerlabError(f"a plan has no {name!r}{meant(name, names)}; it has: {', '.join(names)}.")
    device_id = clone.device_id or (None if original.any_of else original.device_id)
    others = () if clone.device_id else node_rows(session, sweep_id)
    return SweepRequest(
        device_id=device_id,
        any_of=None if device_id else original.any_of,
        plan=from_document({**to_document(original.plan), **clone.changes}, SweepPlan),
        priority=original.priority if clone.priority is None else clone.priority,
        with_ids=tuple(row.device_id for row in others),
    )


def newest_clone(session: Session, sweep_id: str) -> str | None:
    """Return the sweep that was cloned last from a sweep, None where none was."""
    wanted = select(SweepRow.id).where(SweepRow.cloned_from == sweep_id)
    return session.scalar(wanted.order_by(SweepRow.created_at.desc(), SweepRow.id.desc()).limit(1))
