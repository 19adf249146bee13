"""Runs, their figures and their power traces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from powerlab.domain.power import Part
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.store.models.base import Base, BigKey, Json, Uuid, one_of
from powerlab.store.models.devices import RailRow
from powerlab.store.models.sweeps import PointRow


class RunRow(Base):
    """One measured repeat of a point, under the identifier its device gave it; never changed afterwards."""

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("point_id", "repeat"),
        CheckConstraint(one_of("verdict", Verdict), name="verdict"),
        CheckConstraint("repeat >= 0 AND inference_count >= 0", name="counts"),
        CheckConstraint("window_start_ns <= window_end_ns", name="window"),
        Index(None, "received_at", "id"),
    )

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    sweep_id: Mapped[str] = mapped_column(Uuid, ForeignKey("sweep.id"), index=True)
    point_id: Mapped[int] = mapped_column(BigKey, ForeignKey("point.id"))
    repeat: Mapped[int]
    started_at: Mapped[str] = mapped_column(String(40))
    window_start_ns: Mapped[int] = mapped_column(BigInteger)
    window_end_ns: Mapped[int] = mapped_column(BigInteger)
    inference_count: Mapped[int]
    verdict: Mapped[str] = mapped_column(String(20))
    findings: Mapped[list[dict[str, str]]] = mapped_column(Json)
    total: Mapped[dict[str, Any] | None] = mapped_column(Json)
    budget: Mapped[list[dict[str, Any]]] = mapped_column(Json)
    conditions: Mapped[dict[str, Any] | None] = mapped_column(Json)
    sha256: Mapped[str] = mapped_column(String(64))
    received_at: Mapped[datetime]
    point: Mapped[PointRow] = relationship()
    metrics: Mapped[list[RunMetricRow]] = relationship(order_by="RunMetricRow.position")


class RunMetricRow(Base):
    """One figure of a run with its unit, its 95 % interval and where it comes from."""

    __tablename__ = "run_metric"
    __table_args__ = (
        CheckConstraint(one_of("provenance", Provenance), name="provenance"),
        CheckConstraint("(low IS NULL) = (high IS NULL)", name="interval_is_whole"),
        CheckConstraint("low IS NULL OR (low <= value AND value <= high)", name="interval_holds_value"),
        Index(None, "name", "value"),
    )

    run_id: Mapped[str] = mapped_column(Uuid, ForeignKey("run.id"), primary_key=True)
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    position: Mapped[int]
    value: Mapped[float]
    unit: Mapped[str] = mapped_column(String(20))
    low: Mapped[float | None]
    high: Mapped[float | None]
    provenance: Mapped[str] = mapped_column(String(20))


class TraceChunkRow(Base):
    """Consecutive samples of one rail in one run, compressed, with what a reader needs to skip it unread.

    The samples stand in ``payload`` or, once they are moved out of the database, under ``uri``.
    """

    __tablename__ = "trace_chunk"
    __table_args__ = (
        UniqueConstraint("run_id", "rail_id", "part", "position"),
        CheckConstraint(one_of("part", Part), name="part"),
        CheckConstraint("sample_count >= 1", name="sample_count"),
        CheckConstraint("t_first_ns <= t_last_ns", name="times"),
        CheckConstraint("value_min <= value_max", name="values"),
        CheckConstraint("(payload IS NULL) <> (uri IS NULL)", name="place"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    run_id: Mapped[str] = mapped_column(Uuid, ForeignKey("run.id"))
    rail_id: Mapped[int] = mapped_column(BigKey, ForeignKey("rail.id"))
    part: Mapped[str] = mapped_column(String(20))
    position: Mapped[int]
    t_first_ns: Mapped[int] = mapped_column(BigInteger)
    t_last_ns: Mapped[int] = mapped_column(BigInteger)
    sample_count: Mapped[int]
    value_min: Mapped[float]
    value_max: Mapped[float]
    value_sum: Mapped[float]
    read_cost_ns: Mapped[int] = mapped_column(BigInteger)
    codec: Mapped[str] = mapped_column(String(40))
    sha256: Mapped[str] = mapped_column(String(64))
    payload: Mapped[bytes | None] = mapped_column(LargeBinary)
    uri: Mapped[str | None] = mapped_column(String(1000))
    rail: Mapped[RailRow] = relationship()
