"""Stored summaries of a sweep's points, so that readers need not compute them from every run."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, ForeignKey, LargeBinary
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.store.tables.base import Base, Uuid


class SweepSummaryRow(Base):
    """The summaries of a sweep that is over.

    They hold as long as the sweep has ``run_count`` runs and :data:`powerlab.analysis.summary.METHOD` is ``method``;
    else readers work them out themselves. ``document`` is what :mod:`powerlab.store.reads.sweep_results` packs, and
    ``answers`` what :mod:`powerlab.store.reads.answers` packs; NULL where an earlier powerlab made the row.
    """

    __tablename__ = "sweep_summary"
    __table_args__ = (CheckConstraint("run_count >= 0", name="run_count"),)

    sweep_id: Mapped[str] = mapped_column(Uuid, ForeignKey("sweep.id", ondelete="CASCADE"), primary_key=True)
    method: Mapped[int]
    run_count: Mapped[int]
    document: Mapped[bytes] = mapped_column(LargeBinary)
    answers: Mapped[bytes | None] = mapped_column(LargeBinary)
