"""Named baselines: the sweeps that later ones are judged against."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.domain.selector import LONGEST
from powerlab.store.tables.base import Base, Uuid


class BaselineSweepRow(Base):
    """A sweep of a baseline. Device and models are the sweep's own, so a baseline holds sweeps of many of them."""

    __tablename__ = "baseline_sweep"
    __table_args__ = (CheckConstraint("name <> ''", name="name"),)

    name: Mapped[str] = mapped_column(String(LONGEST), primary_key=True)
    sweep_id: Mapped[str] = mapped_column(
        Uuid, ForeignKey("sweep.id", ondelete="CASCADE"), primary_key=True, index=True
    )
    set_at: Mapped[datetime]
    set_by: Mapped[str] = mapped_column(String(200))
