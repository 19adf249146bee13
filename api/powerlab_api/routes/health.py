"""Health check: the server responds, and its database does."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter
from sqlalchemy import text

from powerlab import __version__
from powerlab.protocol import PROTOCOL_VERSION
from powerlab_api.dependencies import ReadSession
from powerlab_api.roles import Requires

router = APIRouter(tags=["health"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The server's own version and that of the protocol its agents must speak."""

    status: str
    version: str
    protocol: int


@router.get("/health", dependencies=[Requires.nobody])
def read_health(session: ReadSession) -> Health:
    """Answer if the database does."""
    session.execute(text("SELECT 1"))
    return Health(status="ok", version=__version__, protocol=PROTOCOL_VERSION)
