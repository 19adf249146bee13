"""Writes to the audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from powerlab.store.tables import AuditEventRow

COMMAND_LINE = "command line"
"""Who acts where a command works on the database itself, without a server."""


def record(session: Session, now: datetime, actor: str, action: str, subject: str, **detail: Any) -> None:
    """Write down one event; it is stored or undone together with what it describes."""
    session.add(AuditEventRow(at=now, actor=actor, action=action, subject=subject, detail=detail))
