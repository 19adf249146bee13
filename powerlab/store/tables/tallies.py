"""Stored counts, because counting again would read everything."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, String
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.domain.run import Verdict
from powerlab.store.tables.base import Base, Uuid, one_of


class DeviceTallyRow(Base):
    """How many runs of one verdict a device has ever stored, with how many samples, and the last of them to arrive.

    Written in the transaction that stores the run, and not lowered where a run is deleted: the counts only grow.
    """

    __tablename__ = "device_tally"
    __table_args__ = (
        CheckConstraint(one_of("verdict", Verdict), name="verdict"),
        CheckConstraint("run_count >= 1 AND sample_count >= 0", name="counts"),
    )

    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id", ondelete="CASCADE"), primary_key=True)
    verdict: Mapped[str] = mapped_column(String(20), primary_key=True)
    run_count: Mapped[int] = mapped_column(BigInteger)
    sample_count: Mapped[int] = mapped_column(BigInteger)
    newest_run_id: Mapped[str | None] = mapped_column(Uuid, ForeignKey("run.id", ondelete="SET NULL"))
