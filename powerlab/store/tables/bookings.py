"""Bookings of devices."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, Connection, ForeignKey, Index, String, Table, event, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from powerlab.protocol.bookings import BookingKind
from powerlab.store.tables.base import Base, BigKey, Uuid, one_of
from powerlab.store.tables.devices import DeviceRow


class BookingRow(Base):
    """A reservation or a maintenance window of a device.

    No two of a kind overlap on a device, by ``ex_booking_overlap``: triggers of :data:`OVERLAP_TRIGGER` on SQLite, an
    exclusion constraint on PostgreSQL, which its migration makes.
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


OVERLAP_TRIGGER = (
    "CREATE TRIGGER ex_booking_overlap_{when} BEFORE {what} ON booking WHEN EXISTS (SELECT 1 FROM booking AS other "
    "WHERE other.device_id = NEW.device_id AND other.kind = NEW.kind AND other.id IS NOT NEW.id "
    "AND other.starts_at < NEW.ends_at AND NEW.starts_at < other.ends_at) "
    "BEGIN SELECT RAISE(ABORT, 'ex_booking_overlap'); END"
)
"""For a new file; the migration of older ones has a text of its own, as history does not change."""


@event.listens_for(BookingRow.__table__, "after_create")
def _make_triggers(_table: Table, connection: Connection, **_options: object) -> None:
    if connection.dialect.name == "sqlite":
        for what in ("INSERT", "UPDATE"):
            connection.execute(text(OVERLAP_TRIGGER.format(when=what.lower(), what=what)))
