"""Upload backlogs that agents reported."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.store.tables.base import Base, Uuid


class DeviceBacklogRow(Base):
    """What a device's agent said last; a device whose agent never said has no row, which is not the same as nothing."""

    __tablename__ = "device_backlog"
    __table_args__ = (
        CheckConstraint(
            "runs >= 0 AND refused_runs >= 0 AND chunks >= 0 AND size_bytes >= 0 AND shed_runs >= 0", name="counts"
        ),
        CheckConstraint("oldest_since IS NULL OR runs > 0", name="oldest_since"),
    )

    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id", ondelete="CASCADE"), primary_key=True)
    said_at: Mapped[datetime]
    runs: Mapped[int] = mapped_column(BigInteger)
    refused_runs: Mapped[int] = mapped_column(BigInteger)
    chunks: Mapped[int] = mapped_column(BigInteger)
    size_bytes: Mapped[int] = mapped_column(BigInteger)
    oldest_since: Mapped[datetime | None]
    shed_runs: Mapped[int] = mapped_column(BigInteger)
