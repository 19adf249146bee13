"""Identifiers: what the beginning of one stands for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from powerlab.protocol.identifiers import Identifier
from powerlab.store.reads.identifiers import identifiers
from powerlab_api.dependencies import ReadSession
from powerlab_api.roles import Requires

router = APIRouter(prefix="/identifiers", tags=["identifiers"])


@router.get("", dependencies=[Requires.viewer])
def read_identifiers(
    session: ReadSession,
    beginning: Annotated[str, Query(min_length=1, max_length=200, description="of an identifier or a name")],
) -> tuple[Identifier, ...]:
    """Return runs, sweeps, points, jobs, campaigns, models and devices whose identifier begins so.

    Devices and models are also found by the beginning of their name. At most 20 of each kind are returned.
    """
    return identifiers(session, beginning)
