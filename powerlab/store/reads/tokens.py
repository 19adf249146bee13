"""Queries of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import or_, select, tuple_
from sqlalchemy.orm import Session

from powerlab.protocol.access import Role, TokenRecord
from powerlab.store.errors import UnauthorisedError
from powerlab.store.tables import DeviceRow, ServerKeyRow, TokenRow


def to_token(row: TokenRow) -> TokenRecord:
    """Return what may be told of a token."""
    return TokenRecord(
        id=row.id,
        name=row.name,
        role=Role(row.role),
        device_id=row.device_id,
        created_at=row.created_at,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )


def token_by_hash(session: Session, sha256: str, now: datetime) -> TokenRecord | None:
    """Return the token with that hash, None where there is none; raises UnauthorisedError where it is over."""
    return _if_it_holds(session.scalar(select(TokenRow).where(TokenRow.sha256 == sha256)), now)


def token_by_id(session: Session, token_id: int, now: datetime) -> TokenRecord | None:
    """Do as :func:`token_by_hash` for an id."""
    return _if_it_holds(session.get(TokenRow, token_id), now)


def _if_it_holds(row: TokenRow | None, now: datetime) -> TokenRecord | None:
    if row is None:
        return None
    token = to_token(row)
    if token.revoked_at is None and (token.expires_at is None or now < token.expires_at):
        return token
    what = "was revoked" if token.revoked_at is not None else "has expired"
    way = "enrol the device again" if token.role is Role.AGENT else "ask an admin for a new one"
    raise UnauthorisedError(f"this token {what}; {way}.")


def list_tokens(
    session: Session, *, limit: int | None = None, after: tuple[datetime, int] | None = None
) -> Sequence[TokenRecord]:
    """Return tokens, newest first; ``after`` is the (created_at, id) of the last one seen."""
    wanted = select(TokenRow).order_by(TokenRow.created_at.desc(), TokenRow.id.desc()).limit(limit)
    if after is not None:
        wanted = wanted.where(tuple_(TokenRow.created_at, TokenRow.id) < after)
    return [to_token(row) for row in session.scalars(wanted)]


def agent_name(device_id: str) -> str:
    """Return the name of a device's agent; people's tokens have no blank in theirs."""
    return f"device {device_id}"


def agent_names(session: Session) -> Mapping[str, str]:
    """Return the names of devices by what tokens and the log call their agents."""
    rows = session.execute(select(DeviceRow.id, DeviceRow.name))
    return {agent_name(device_id): name for device_id, name in rows}


def has_admin(session: Session, now: datetime) -> bool:
    """Return whether somebody holds an admin's token."""
    holds = TokenRow.revoked_at.is_(None), or_(TokenRow.expires_at.is_(None), TokenRow.expires_at > now)
    wanted = select(TokenRow.id).where(TokenRow.role == Role.ADMIN.value, *holds).limit(1)
    return session.scalar(wanted) is not None


def session_key(session: Session) -> bytes:
    """Return the key that signs sessions, the same for every server on this database."""
    return bytes.fromhex(session.get_one(ServerKeyRow, "sessions").secret)
