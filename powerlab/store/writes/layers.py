"""Store layer profiles."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy.orm import Session

from powerlab.domain.layers import LayerProfile
from powerlab.protocol.wire import check_survives, to_document
from powerlab.store.errors import ConflictError
from powerlab.store.tables import LayerProfileRow


def store_layer_profile(session: Session, device_id: str, profile: LayerProfile, now: datetime) -> bool:
    """Store a profile of a known device; False where the same one is there already.

    Raises:
        ConflictError: its identifier is taken by a profile with other content.
        PowerlabError: it holds a number that JSON cannot say.
    """
    check_survives(profile)
    document = to_document(profile)
    before = session.get(LayerProfileRow, profile.id)
    if before is not None:
        if before.document != document:
            raise ConflictError(
                f"the layer profile {profile.id} is stored with different content; the first one is kept."
            )
        return False
    session.add(LayerProfileRow(id=profile.id, device_id=device_id, created_at=now, document=document))
    return True
