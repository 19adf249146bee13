"""Events, for readers that follow them live."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.protocol.events import EventKind
from powerlab.store.tables.base import Base, BigKey, Uuid, one_of


class EventRow(Base):
    """One event; never changed, and gone with what it tells of.

    Ids grow in the order of commits: :mod:`powerlab.store.events` sees to that.
    """

    __tablename__ = "event"
    __table_args__ = (CheckConstraint(one_of("kind", EventKind), name="kind"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    at: Mapped[datetime]
    kind: Mapped[str] = mapped_column(String(40))
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id", ondelete="CASCADE"))
    sweep_id: Mapped[str | None] = mapped_column(Uuid, ForeignKey("sweep.id", ondelete="CASCADE"), index=True)
    run_id: Mapped[str | None] = mapped_column(Uuid, ForeignKey("run.id", ondelete="CASCADE"), index=True)
    detail: Mapped[str]
