"""Tokens, and the key that signs dashboard sessions."""

from __future__ import annotations

import secrets
from datetime import datetime

from sqlalchemy import CheckConstraint, Connection, ForeignKey, Index, String, Table, event, insert, text
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.protocol.access import Role
from powerlab.store.tables.base import Base, BigKey, Uuid, one_of

_LIVE = text("revoked_at IS NULL")


class TokenRow(Base):
    """The SHA-256 of a bearer token with what its holder may do; the token itself is known to the holder alone.

    Of the tokens that were not revoked no two have the same name, so that a name in the log means one token.
    """

    __tablename__ = "token"
    __table_args__ = (
        CheckConstraint(one_of("role", Role), name="role"),
        CheckConstraint("(role = 'agent') = (device_id IS NOT NULL)", name="agent_has_device"),
        CheckConstraint("expires_at > created_at", name="expiry"),
        CheckConstraint("length(sha256) = 64 AND name <> ''", name="not_empty"),
        Index("uq_token_live_name", "name", unique=True, sqlite_where=_LIVE, postgresql_where=_LIVE),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    role: Mapped[str] = mapped_column(String(20))
    device_id: Mapped[str | None] = mapped_column(Uuid, ForeignKey("device.id"), index=True)
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class ServerKeyRow(Base):
    """A random key that every server on this database shares; whatever makes the table fills it in."""

    __tablename__ = "server_key"
    __table_args__ = (CheckConstraint("length(secret) = 64", name="secret"),)

    purpose: Mapped[str] = mapped_column(String(40), primary_key=True)
    secret: Mapped[str] = mapped_column(String(64))


@event.listens_for(ServerKeyRow.__table__, "after_create")
def _make_key(table: Table, connection: Connection, **_options: object) -> None:
    connection.execute(insert(table).values(purpose="sessions", secret=secrets.token_hex(32)))
