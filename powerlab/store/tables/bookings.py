"""Bookings of devices."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column, relationship

from powerlab.protocol.bookings import BookingKind
from powerlab.store.tables.base import Base, BigKey, Uuid, one_of
from powerlab.store.tables.devices import DeviceRow


class BookingRow(Base):
    """A reservation or a maintenance window of a device.

    No two of a kind overlap on a device: the migration makes an exclusion constraint (PostgreSQL) or triggers (SQLite),
    ``ex_booking_overlap``.
    """

    __tablename__ = "booking"
    __table_args__ = (
        CheckConstraint(one_of("kind", BookingKind), name="kind"),
        CheckConstraint("(kind = 'reservation') = (holder IS NOT NULL)", name="holder"),
        CheckConstraint("ends_at > starts_at", name="times"),
        Index(None, "device_id", "ends_at"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"))
    kind: Mapped[str] = mapped_column(String(20))
    holder: Mapped[str | None] = mapped_column(String(200))
    starts_at: Mapped[datetime]
    ends_at: Mapped[datetime]
    reason: Mapped[str] = mapped_column(String(200))
    made_by: Mapped[str] = mapped_column(String(200))
    made_at: Mapped[datetime]
    device: Mapped[DeviceRow] = relationship()
