"""Labels and groups of devices."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, ForeignKey, Index, String
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.domain.selector import LONGEST
from powerlab.store.tables.base import Base, Json, Uuid


class DeviceLabelRow(Base):
    """A label of a device; a device has one value for a key, empty for a word that stands alone."""

    __tablename__ = "device_label"
    __table_args__ = (CheckConstraint("key <> ''", name="key"), Index(None, "key", "value"))

    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(LONGEST), primary_key=True)
    value: Mapped[str] = mapped_column(String(LONGEST))


class DeviceGroupRow(Base):
    """A named selector of devices: of one board, where ``board`` is not empty, with all of the labels."""

    __tablename__ = "device_group"
    __table_args__ = (CheckConstraint("name <> ''", name="name"),)

    name: Mapped[str] = mapped_column(String(LONGEST), primary_key=True)
    board: Mapped[str] = mapped_column(String(100))
    labels: Mapped[list[str]] = mapped_column(Json)
