"""What readers ask of the layer profiles in the store."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from powerlab.domain.layers import LayerProfile
from powerlab.protocol.wire import from_document
from powerlab.store.errors import NotFoundError
from powerlab.store.models import LayerProfileRow


def list_layer_profiles(
    session: Session,
    *,
    device_id: str | None = None,
    limit: int | None = None,
    after: tuple[datetime, str] | None = None,
) -> list[tuple[datetime, LayerProfile]]:
    """Return profiles with the time each was stored, newest first; ``after`` is the (time, id) of the last one seen."""
    wanted = select(LayerProfileRow).order_by(LayerProfileRow.created_at.desc(), LayerProfileRow.id.desc())
    if device_id is not None:
        wanted = wanted.where(LayerProfileRow.device_id == device_id)
    if after is not None:
        wanted = wanted.where(tuple_(LayerProfileRow.created_at, LayerProfileRow.id) < after)
    rows = session.scalars(wanted.limit(limit))
    return [(row.created_at, from_document(row.document, LayerProfile)) for row in rows]


def layer_profile(session: Session, profile_id: str) -> LayerProfile:
    """Return one profile; raises NotFoundError."""
    row = session.get(LayerProfileRow, profile_id)
    if row is None:
        raise NotFoundError(f"there is no layer profile {profile_id!r}; GET /api/v1/layers lists them.")
    return from_document(row.document, LayerProfile)
