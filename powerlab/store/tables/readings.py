"""Telemetry of devices: the readings of the last minutes, the phase of a sweep, and who is being watched."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.domain.phase import RunPhase
from powerlab.domain.quantity import Provenance
from powerlab.store.tables.base import Base, BigKey, Json, Uuid, one_of


class DeviceReadingRow(Base):
    """What a device read at one moment; its columns are what a list of devices shows of ``document``."""

    __tablename__ = "device_reading"
    __table_args__ = (
        Index(None, "device_id", "at"),
        Index(None, "at"),
        CheckConstraint(one_of("provenance", Provenance), name="provenance"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id", ondelete="CASCADE"))
    at: Mapped[datetime]
    power_w: Mapped[float | None]
    provenance: Mapped[str | None] = mapped_column(String(20))
    hottest_c: Mapped[float | None]
    clock_mhz: Mapped[float | None]
    mode: Mapped[str] = mapped_column(String(200))
    document: Mapped[dict[str, Any]] = mapped_column(Json)


class DevicePhaseRow(Base):
    """What a device's sweep was doing when its agent said so last."""

    __tablename__ = "device_phase"
    __table_args__ = (CheckConstraint(one_of("phase", RunPhase), name="phase"),)

    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id", ondelete="CASCADE"), primary_key=True)
    sweep_id: Mapped[str] = mapped_column(Uuid)
    phase: Mapped[str] = mapped_column(String(20))
    since: Mapped[datetime]
    ends_at: Mapped[datetime | None]
    point: Mapped[dict[str, Any] | None] = mapped_column(Json)
    run_index: Mapped[int]
    run_count: Mapped[int]


class DeviceWatchRow(Base):
    """A device that somebody watches, until the server that serves them stops saying so."""

    __tablename__ = "device_watch"

    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id", ondelete="CASCADE"), primary_key=True)
    until: Mapped[datetime]
