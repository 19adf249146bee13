"""The authenticated sender of a request."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.protocol.access import Role, TokenRecord

_RANKS = {Role.VIEWER: 1, Role.OPERATOR: 2, Role.ADMIN: 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A person, a program or an agent.

    Attributes:
        name: how the log of what was done calls them.
        role: what they may do.
        device_id: the device an agent speaks for; None for everybody else.
        token_id: the token they proved themselves with; None where it is in no table.
    """

    name: str
    role: Role
    device_id: str | None = None
    token_id: int | None = None

    def may_act_as(self, role: Role) -> bool:
        """Return whether this role is theirs or below theirs; an agent is an agent and nothing else."""
        if Role.AGENT in (self.role, role):
            return self.role is role
        return _RANKS[self.role] >= _RANKS[role]


LOCAL_USER = Principal(name="local user", role=Role.ADMIN)
"""Whoever reaches a server that asks nobody for a token: it listens on loopback alone."""

CONFIGURED = Principal(name="configured token", role=Role.ADMIN)
"""The holder of the token in the server's environment."""


def principal_of(token: TokenRecord) -> Principal:
    """Return the holder of a token."""
    return Principal(name=token.name, role=token.role, device_id=token.device_id, token_id=token.id)
