"""Records of tokens and of the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class Role(StrEnum):
    """What the holder of a token may do: a viewer reads, an operator also asks for work, an admin does everything.

    An agent speaks for one device and touches nothing else; it is not even a viewer.
    """

    VIEWER = "viewer"
    OPERATOR = "operator"
    ADMIN = "admin"
    AGENT = "agent"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRequest:
    """Asks for a person's or a program's token; agents get theirs by enrolment.

    Attributes:
        name: whose it is: letters, digits and ``. _ @ -``; stands in the log of what was done.
        role: viewer, operator or admin.
        valid_s: for how many seconds; None until it is revoked.
    """

    name: str
    role: Role = Role.VIEWER
    valid_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRecord:
    """A token without its secret.

    Attributes:
        id: counts the tokens of this server.
        name: its owner; that of an agent is ``device`` and the device's id.
        role: what its holder may do.
        device_id: for which device an agent speaks; None for everybody else.
        created_at: UTC.
        expires_at: UTC; None where it holds until it is revoked.
        revoked_at: UTC; None while it is not.
        last_used_at: UTC, to the minute or so; None before its first use.
    """

    id: int
    name: str
    role: Role
    device_id: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A new token with its secret, shown this once: the server keeps a hash."""

    token: str
    record: TokenRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenPage:
    """Some tokens, newest first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[TokenRecord, ...]
    next_cursor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One line of the log of who did what.

    Attributes:
        id: grows from event to event.
        at: UTC.
        actor: the name of the token it was done with; ``local user`` on a server that asks nobody for a token,
            ``configured token`` for POWERLAB_OPERATOR_TOKEN, ``command line`` for what was done on the database itself.
        action: what was done, in words.
        subject: to what: an identifier or a name.
        detail: more about it.
    """

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEventPage:
    """Some events, newest first; ``next_cursor`` asks for those after them, None at the end."""

    items: tuple[AuditEvent, ...]
    next_cursor: str | None = None
