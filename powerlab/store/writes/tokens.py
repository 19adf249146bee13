"""Create and revoke tokens; record their use from time to time."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.access import NewToken, Role, TokenRecord, TokenRequest
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.reads.tokens import agent_name, to_token
from powerlab.store.secrets import new_token, sha256
from powerlab.store.tables import DeviceRow, TokenRow
from powerlab.store.writes.audit import record

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")
_MAX_VALID_S = 10 * 366 * 24 * 3600
USE_NOTED_EVERY_S = 60.0
"""How old the time of a token's last use may grow, and a device's: noting each would be a write per request."""


def create_token(session: Session, request: TokenRequest, now: datetime, *, actor: str) -> NewToken:
    """Make a token for a person or a program.

    Raises:
        PowerlabError: the name cannot be one, it would be valid for no time or too long, or it is to be an agent's.
        ConflictError: another token that was not revoked has that name.
    """
    if request.role is Role.AGENT:
        raise PowerlabError("an agent gets its token by enrolment; make it an enrolment code instead.")
    if _NAME.fullmatch(request.name) is None:
        raise PowerlabError(
            f"{request.name!r} cannot be the name of a token; take up to 100 letters, digits and . _ @ -, "
            "a letter or digit first."
        )
    if request.valid_s is not None and not 1 <= request.valid_s <= _MAX_VALID_S:
        raise PowerlabError(f"a token is valid for 1 to {_MAX_VALID_S} seconds, not {request.valid_s}.")
    taken = select(TokenRow.id).where(TokenRow.name == request.name, TokenRow.revoked_at.is_(None))
    if session.scalar(taken) is not None:
        raise ConflictError(f"there is a token named {request.name!r} already; revoke it first, or take another name.")
    token = new_token()
    row = TokenRow(
        name=request.name,
        role=request.role.value,
        sha256=sha256(token),
        created_at=now,
        expires_at=None if request.valid_s is None else now + timedelta(seconds=request.valid_s),
    )
    session.add(row)
    session.flush()
    record(session, now, actor, "create token", row.name, id=row.id, role=row.role)
    return NewToken(token=token, record=to_token(row))


def issue_agent_token(session: Session, device_id: str, now: datetime) -> str:
    """Make the token of a device's agent, in place of the one it had."""
    mine = (TokenRow.device_id == device_id, TokenRow.revoked_at.is_(None))
    session.execute(update(TokenRow).where(*mine).values(revoked_at=now))
    token = new_token()
    session.add(
        TokenRow(
            name=agent_name(device_id),
            role=Role.AGENT.value,
            device_id=device_id,
            sha256=sha256(token),
            created_at=now,
        )
    )
    return token


def revoke_token(session: Session, token_id: int, now: datetime, *, actor: str) -> TokenRecord:
    """End a token, and with it every session that was opened with it; doing it again changes nothing.

    Raises:
        NotFoundError: there is no such token.
    """
    row = session.scalar(select(TokenRow).where(TokenRow.id == token_id).with_for_update())
    if row is None:
        raise NotFoundError(f"there is no token {token_id}; `powerlab tokens list` (GET /api/v1/tokens) lists them.")
    if row.revoked_at is None:
        row.revoked_at = now
        record(session, now, actor, "revoke token", row.name, id=row.id, role=row.role)
    return to_token(row)


def is_use_due(last: datetime | None, now: datetime) -> bool:
    """Return whether a use is worth a write."""
    return last is None or (now - last).total_seconds() >= USE_NOTED_EVERY_S


def note_use(session: Session, token: TokenRecord, now: datetime) -> None:
    """Write down that a token was used just now, and that its device was heard of."""
    older = or_(TokenRow.last_used_at.is_(None), TokenRow.last_used_at < now)
    session.execute(update(TokenRow).where(TokenRow.id == token.id, older).values(last_used_at=now))
    if token.device_id is not None:
        heard = (DeviceRow.id == token.device_id, DeviceRow.seen_at < now)
        session.execute(update(DeviceRow).where(*heard).values(seen_at=now))
