"""Queries of layer profiles."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Text, cast, select, tuple_
from sqlalchemy.orm import Session

from powerlab.domain.layers import LayerProfile
from powerlab.protocol.wire import reader
from powerlab.store.errors import NotFoundError
from powerlab.store.tables import LayerProfileRow

_DOCUMENT = cast(LayerProfileRow.document, Text)
_profile = reader(LayerProfile)


def list_layer_profiles(
    session: Session,
    *,
    device_id: str | None = None,
    limit: int | None = None,
    after: tuple[datetime, str] | None = None,
) -> list[tuple[datetime, LayerProfile]]:
    """Return profiles with the time each was stored, newest first; ``after`` is the (time, id) of the last one seen."""
    wanted = select(LayerProfileRow.created_at, _DOCUMENT)
    wanted = wanted.order_by(LayerProfileRow.created_at.desc(), LayerProfileRow.id.desc())
    if device_id is not None:
        wanted = wanted.where(LayerProfileRow.device_id == device_id)
    if after is not None:
        wanted = wanted.where(tuple_(LayerProfileRow.created_at, LayerProfileRow.id) < after)
    return [(created_at, _profile(document)) for created_at, document in session.execute(wanted.limit(limit))]


def layer_profile(session: Session, profile_id: str) -> LayerProfile:
    """Return one profile; raises NotFoundError."""
    document = session.scalar(select(_DOCUMENT).where(LayerProfileRow.id == profile_id))
    if document is None:
        raise NotFoundError(f"there is no layer profile {profile_id!r}; GET /api/v1/layers lists them.")
    return _profile(document)
