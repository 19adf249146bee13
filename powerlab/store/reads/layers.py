"""Queries of layer profiles."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Text, cast, select, tuple_
from sqlalchemy.orm import Session

from powerlab.domain.layers import LayerProfile
from powerlab.domain.sweep import Point
from powerlab.protocol.wire import reader
from powerlab.store.errors import NotFoundError
from powerlab.store.tables import LayerProfileRow

_DOCUMENT = cast(LayerProfileRow.document, Text)
_profile = reader(LayerProfile)
_BESIDE = 8
"""Profiles that are looked through for one like a run."""


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


def newest_profile_of(session: Session, model: str) -> LayerProfile | None:
    """Return the newest profile of a model on any device; None where there is none."""
    wanted = select(_DOCUMENT).where(LayerProfileRow.document["model"].as_string() == model)
    document = session.scalar(wanted.order_by(LayerProfileRow.created_at.desc(), LayerProfileRow.id.desc()).limit(1))
    return None if document is None else _profile(document)


def profile_beside(session: Session, device_id: str, point: Point) -> LayerProfile | None:
    """Return the profile of a point's model on a device that is most like the point; None where there is none.

    Profiles are of inferences, so there is none of what trains.

    Of the newest ones it is that of the same batch, mode and threads, in this order of importance.
    """
    if point.workload.trains:
        return None
    wanted = (
        select(_DOCUMENT)
        .where(
            LayerProfileRow.device_id == device_id,
            LayerProfileRow.document["model"].as_string() == point.workload.model,
        )
        .order_by(LayerProfileRow.created_at.desc(), LayerProfileRow.id.desc())
        .limit(_BESIDE)
    )
    found = [_profile(document) for document in session.scalars(wanted)]
    return max(found, key=lambda one: _likeness(one, point), default=None)


def _likeness(profile: LayerProfile, point: Point) -> tuple[bool, bool, bool]:
    """Say in which dimensions a profile was made as a point is; of equals the newest is the first."""
    return (
        profile.batch_size == point.workload.batch_size,
        profile.mode == point.mode,
        profile.threads == point.threads,
    )
