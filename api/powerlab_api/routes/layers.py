"""Layer profiles: time and energy of every layer of a network on a device."""

from __future__ import annotations

from fastapi import APIRouter, Response

from powerlab.domain.layers import LayerProfile
from powerlab.protocol.records import LayerProfilePage
from powerlab.store.reads.layers import layer_profile, list_layer_profiles
from powerlab_api.cursor import from_cursor, to_cursor
from powerlab_api.dependencies import Cursor, Limit, ReadSession
from powerlab_api.responses import written
from powerlab_api.roles import Requires

router = APIRouter(prefix="/layers", tags=["layers"])


@router.get("", dependencies=[Requires.viewer], response_model=LayerProfilePage)
def list_layers(
    session: ReadSession, *, device_id: str | None = None, limit: Limit = 20, cursor: Cursor = None
) -> Response:
    """Return layer profiles, newest first."""
    found = list_layer_profiles(session, device_id=device_id, limit=limit + 1, after=from_cursor(cursor))
    items = found[:limit]
    more = to_cursor(items[-1][0], items[-1][1].id) if len(found) > limit else None
    return written(LayerProfilePage(items=tuple(profile for _, profile in items), next_cursor=more))


@router.get("/{profile_id}", dependencies=[Requires.viewer])
def read_layers(session: ReadSession, profile_id: str) -> LayerProfile:
    """Return one layer profile."""
    return layer_profile(session, profile_id)
