"""Records of removed data."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from sqlalchemy import BigInteger, CheckConstraint, String
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.store.tables.base import Base, one_of


class Kind(StrEnum):
    """What may be kept for some months only: samples of runs, events for live readers, the log of who did what."""

    TRACES = "traces"
    EVENTS = "events"
    AUDIT = "audit"


class RetirementRow(Base):
    """Nothing of a kind is kept that is older than ``before``, which never goes back.

    ``last_id`` is the last event that went; 0 where none has, and for what is not read by its number.
    """

    __tablename__ = "retirement"
    __table_args__ = (
        CheckConstraint(one_of("kind", Kind), name="kind"),
        CheckConstraint("last_id >= 0", name="last_id"),
    )

    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    before: Mapped[datetime]
    retired_at: Mapped[datetime]
    last_id: Mapped[int] = mapped_column(BigInteger)
