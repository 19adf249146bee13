"""Runs, their metrics and their power traces."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    String,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, foreign, mapped_column, relationship

from powerlab.domain.power import Part
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab.store.tables.base import Base, BigKey, Json, Uuid, one_of
from powerlab.store.tables.devices import RailRow
from powerlab.store.tables.sweeps import PointRow

FILTER_COLUMNS = ("device_id", "workload_id", "threads", "mode", "verdict", "simulated", "power_provenance")
"""What runs are looked for by."""


class RunRow(Base):
    """One measured repeat of a point, under the identifier its device gave it; never changed afterwards.

    What runs are looked for by stands in the row itself, copied from sweep, point and figures: with the time of arrival
    behind it in an index, the next page of any filter is read where it lies, however many runs there are.
    """

    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("point_id", "repeat"),
        UniqueConstraint("received_at", "id"),
        ForeignKeyConstraint(["sweep_id", "device_id"], ["sweep.id", "sweep.device_id"]),
        ForeignKeyConstraint(
            ["point_id", "workload_id", "threads"], ["point.id", "point.workload_id", "point.threads"]
        ),
        CheckConstraint(one_of("verdict", Verdict), name="verdict"),
        CheckConstraint(one_of("power_provenance", Provenance), name="power_provenance"),
        CheckConstraint("repeat >= 0 AND inference_count >= 0", name="counts"),
        CheckConstraint("window_start_ns <= window_end_ns", name="window"),
        *(Index(None, name, "received_at") for name in FILTER_COLUMNS),
        Index(None, "simulated", "power_provenance", "received_at"),  # both together: hardly ever there, if they differ
    )

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    sweep_id: Mapped[str] = mapped_column(Uuid, index=True)
    point_id: Mapped[int] = mapped_column(BigKey)
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
    device_id: Mapped[str] = mapped_column(Uuid)
    workload_id: Mapped[int] = mapped_column(BigKey)
    threads: Mapped[int]
    mode: Mapped[str] = mapped_column(String(200))
    simulated: Mapped[bool]
    power_provenance: Mapped[str | None] = mapped_column(String(20))
    point: Mapped[PointRow] = relationship(primaryjoin=lambda: foreign(RunRow.point_id) == PointRow.id, viewonly=True)
    metrics: Mapped[list[RunMetricRow]] = relationship(order_by="RunMetricRow.position")


class RunMetricRow(Base):
    """One figure of a run with its unit, its 95 % interval and where it comes from."""

    __tablename__ = "run_metric"
    __table_args__ = (
        ForeignKeyConstraint(["run_id", "received_at"], ["run.id", "run.received_at"]),
        CheckConstraint(one_of("provenance", Provenance), name="provenance"),
        CheckConstraint("(low IS NULL) = (high IS NULL)", name="interval_is_whole"),
        CheckConstraint("low IS NULL OR (low <= value AND value <= high)", name="interval_holds_value"),
        Index(None, "name", "received_at", "value"),
    )

    run_id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    name: Mapped[str] = mapped_column(String(100), primary_key=True)
    position: Mapped[int]
    value: Mapped[float]
    unit: Mapped[str] = mapped_column(String(20))
    low: Mapped[float | None]
    high: Mapped[float | None]
    provenance: Mapped[str] = mapped_column(String(20))
    received_at: Mapped[datetime]


class TraceChunkRow(Base):
    """Consecutive samples of one rail in one run, compressed, with what a reader needs to skip it unread.

    ``received_at`` is that of the run: PostgreSQL keeps each month's chunks in a partition of their own, and as a run
    has one such time, a place in it is taken once, whenever a chunk comes. It leads the index, where chunks are then
    added beside the last ones; :func:`powerlab.store.traces.rows.of_run` asks by it. The samples stand in ``payload``
    or, once they are moved out of the database, under ``uri``.
    """

    __tablename__ = "trace_chunk"
    __table_args__ = (
        UniqueConstraint("received_at", "run_id", "rail_id", "part", "position"),
        ForeignKeyConstraint(["run_id", "received_at"], ["run.id", "run.received_at"]),
        CheckConstraint(one_of("part", Part), name="part"),
        CheckConstraint("sample_count >= 1", name="sample_count"),
        CheckConstraint("t_first_ns <= t_last_ns", name="times"),
        CheckConstraint("value_min <= value_max", name="values"),
        CheckConstraint("(payload IS NULL) <> (uri IS NULL)", name="place"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    run_id: Mapped[str] = mapped_column(Uuid)
    received_at: Mapped[datetime]
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
