"""Devices, their capabilities, and their enrolment."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from powerlab.domain.mode import ModeOrigin
from powerlab.domain.power import RailQuantity
from powerlab.domain.quantity import Provenance
from powerlab.store.tables.backlogs import DeviceBacklogRow
from powerlab.store.tables.base import Base, BigKey, Json, Uuid, one_of
from powerlab.store.tables.labs import DeviceLabelRow


class DeviceRow(Base):
    """A board or host that was enrolled once; how it describes itself stands in its snapshots."""

    __tablename__ = "device"

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    name: Mapped[str] = mapped_column(String(200), unique=True)
    enrolled_at: Mapped[datetime]
    seen_at: Mapped[datetime]
    labels: Mapped[list[DeviceLabelRow]] = relationship(order_by=DeviceLabelRow.key, viewonly=True)
    backlog: Mapped[DeviceBacklogRow | None] = relationship(viewonly=True)


class DeviceSnapshotRow(Base):
    """What an agent said about its device at one time; sweeps point to the one they were checked against."""

    __tablename__ = "device_snapshot"
    __table_args__ = (Index(None, "device_id", "taken_at"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"))
    taken_at: Mapped[datetime]
    simulated: Mapped[bool]
    document: Mapped[dict[str, Any]] = mapped_column(Json)
    modes: Mapped[list[PowerModeRow]] = relationship(order_by="PowerModeRow.position")


class PowerModeRow(Base):
    """A power mode a device offered in a snapshot."""

    __tablename__ = "power_mode"
    __table_args__ = (
        UniqueConstraint("snapshot_id", "name"),
        Index(None, "name"),
        CheckConstraint(one_of("origin", ModeOrigin), name="origin"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(BigKey, ForeignKey("device_snapshot.id"))
    position: Mapped[int]
    name: Mapped[str] = mapped_column(String(200))
    settings: Mapped[list[dict[str, str]]] = mapped_column(Json)
    origin: Mapped[str] = mapped_column(String(20))
    requires_reboot: Mapped[bool]
    online_cores: Mapped[int | None]
    description: Mapped[str]


class RailRow(Base):
    """A rail with its stated errors; a rail whose resolution changes is a new row, old traces keep theirs."""

    __tablename__ = "rail"
    __table_args__ = (
        UniqueConstraint(
            "device_id",
            "source",
            "name",
            "quantity",
            "resolution",
            "relative_error",
            "update_period_s",
            "provenance",
            "offset_bound",
            "lag_s",
            "lag_error_s",
            "seen_share",
            name="uq_rail_description",
        ),
        CheckConstraint(one_of("quantity", RailQuantity), name="quantity"),
        CheckConstraint(one_of("provenance", Provenance), name="provenance"),
        CheckConstraint(
            "resolution >= 0 AND relative_error >= 0 AND update_period_s >= 0 AND offset_bound >= 0 "
            "AND lag_error_s >= 0",
            name="not_negative",
        ),
        CheckConstraint("seen_share > 0 AND seen_share <= 1", name="seen_share"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"))
    source: Mapped[str] = mapped_column(String(100))
    name: Mapped[str] = mapped_column(String(200))
    quantity: Mapped[str] = mapped_column(String(20))
    resolution: Mapped[float]
    relative_error: Mapped[float]
    update_period_s: Mapped[float]
    provenance: Mapped[str] = mapped_column(String(20))
    offset: Mapped[float] = mapped_column("offset_bound")
    lag_s: Mapped[float]
    lag_error_s: Mapped[float]
    seen_share: Mapped[float]


class EnrolmentCodeRow(Base):
    """The SHA-256 of a code that enrols one device once; with ``device_id``, one that was enrolled before."""

    __tablename__ = "enrolment_code"
    __table_args__ = (CheckConstraint("expires_at > created_at", name="expiry"),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    sha256: Mapped[str] = mapped_column(String(64), unique=True)
    device_id: Mapped[str | None] = mapped_column(Uuid, ForeignKey("device.id"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]


class AuditEventRow(Base):
    """Who did what to what, never changed afterwards."""

    __tablename__ = "audit_event"
    __table_args__ = (*(Index(None, name, "at") for name in ("actor", "action", "subject")),)

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    at: Mapped[datetime] = mapped_column(index=True)
    actor: Mapped[str] = mapped_column(String(200))
    action: Mapped[str] = mapped_column(String(100))
    subject: Mapped[str] = mapped_column(String(200))
    detail: Mapped[dict[str, Any]] = mapped_column(Json)
