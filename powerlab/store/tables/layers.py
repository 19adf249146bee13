"""Layer profiles."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.store.tables.base import Base, Json, Uuid


class LayerProfileRow(Base):
    """What every layer of a network costs on a device: one document, which is read whole and never changed."""

    __tablename__ = "layer_profile"
    __table_args__ = (Index(None, "created_at", "id"),)

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"), index=True)
    created_at: Mapped[datetime]
    document: Mapped[dict[str, Any]] = mapped_column(Json)
