"""Sweeps, their points, and the jobs that bring them to a device."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column, relationship

from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario, WorkloadKind
from powerlab.protocol.records import SweepState
from powerlab.store.tables.base import Base, BigKey, Json, Uuid, one_of
from powerlab.store.tables.devices import DeviceRow, DeviceSnapshotRow, PowerModeRow


class WorkloadRow(Base):
    """A model and how it is fed; shared by every sweep that uses it."""

    __tablename__ = "workload"
    __table_args__ = (
        UniqueConstraint(
            "engine",
            "model",
            "precision",
            "scenario",
            "batch_size",
            "slices",
            "preparation",
            "latency_bound_ms",
            "processor",
            "kind",
            "optimizer",
            "recompute",
            "queues",
            "nodes",
            name="uq_workload_description",
        ),
        CheckConstraint("batch_size >= 1 AND slices >= 1", name="batch_size"),
        CheckConstraint("nodes >= 1", name="nodes"),
        CheckConstraint("latency_bound_ms >= 0", name="latency_bound"),
        CheckConstraint(one_of("preparation", Preparation), name="preparation"),
        CheckConstraint(one_of("processor", Processor), name="processor"),
        CheckConstraint(one_of("scenario", Scenario), name="scenario"),
        CheckConstraint(one_of("kind", WorkloadKind), name="kind"),
        CheckConstraint(one_of("recompute", Recompute), name="recompute"),
        CheckConstraint("queues >= 1", name="queues"),
        Index(None, "model"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    engine: Mapped[str] = mapped_column(String(100))
    model: Mapped[str] = mapped_column(String(1000))
    precision: Mapped[str] = mapped_column(String(20))
    scenario: Mapped[str] = mapped_column(String(40))
    batch_size: Mapped[int]
    slices: Mapped[int]
    preparation: Mapped[str] = mapped_column(String(20))
    latency_bound_ms: Mapped[float]
    processor: Mapped[str] = mapped_column(String(20))
    kind: Mapped[str] = mapped_column(String(20))
    optimizer: Mapped[str] = mapped_column(String(20))
    recompute: Mapped[str] = mapped_column(String(20))
    queues: Mapped[int]
    nodes: Mapped[int]


class CampaignRow(Base):
    """Sweeps of one plan on several devices; ``request`` is what was asked for, ``request_key`` as a sweep's."""

    __tablename__ = "campaign"
    __table_args__ = (UniqueConstraint("submitter", "request_key"),)

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    request: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[datetime]
    submitter: Mapped[str] = mapped_column(String(200))
    request_key: Mapped[str | None] = mapped_column(String(200))


class SweepCandidateRow(Base):
    """A device that may take a sweep, with the snapshot that the plan was checked against.

    There are such rows as long as the sweep waits for any of several devices; whoever takes it removes them.
    """

    __tablename__ = "sweep_candidate"

    sweep_id: Mapped[str] = mapped_column(Uuid, ForeignKey("sweep.id", ondelete="CASCADE"), primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"), primary_key=True, index=True)
    snapshot_id: Mapped[int] = mapped_column(BigKey, ForeignKey("device_snapshot.id"))
    device: Mapped[DeviceRow] = relationship()


class SweepNodeRow(Base):
    """A further device of a sweep that several devices carry out together; the sweep's own is the first.

    ``asked_at`` says when it asked for work last while it had none. ``address`` and ``secret`` are where the first
    device waits for it and what it must know there, under the job's lease with ``fencing_token``.
    """

    __tablename__ = "sweep_node"
    __table_args__ = (UniqueConstraint("sweep_id", "rank"), CheckConstraint("rank >= 1", name="rank"))

    sweep_id: Mapped[str] = mapped_column(Uuid, ForeignKey("sweep.id", ondelete="CASCADE"), primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"), primary_key=True, index=True)
    rank: Mapped[int]
    asked_at: Mapped[datetime | None]
    fencing_token: Mapped[int | None] = mapped_column(BigInteger)
    address: Mapped[str | None] = mapped_column(String(300))
    secret: Mapped[str | None] = mapped_column(String(100))
    device: Mapped[DeviceRow] = relationship()


class SweepRow(Base):
    """A plan for a device, checked against one of its snapshots.

    ``request_key`` is what its submitter sent as Idempotency-Key, so that asking again makes no second sweep.
    ``any_of`` is the selector of a sweep that any of several devices could take. Until one has, ``device_id`` and the
    points' modes are those of the first of its candidates.
    """

    __tablename__ = "sweep"
    __table_args__ = (
        UniqueConstraint("submitter", "request_key"),
        UniqueConstraint("id", "device_id"),
        Index(None, "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"), index=True)
    snapshot_id: Mapped[int] = mapped_column(BigKey, ForeignKey("device_snapshot.id"))
    plan: Mapped[dict[str, Any]] = mapped_column(Json)
    created_at: Mapped[datetime]
    submitter: Mapped[str] = mapped_column(String(200))
    request_key: Mapped[str | None] = mapped_column(String(200))
    cloned_from: Mapped[str | None] = mapped_column(Uuid, ForeignKey("sweep.id"))
    any_of: Mapped[dict[str, Any] | None] = mapped_column(Json)
    campaign_id: Mapped[str | None] = mapped_column(Uuid, ForeignKey("campaign.id"), index=True)
    device: Mapped[DeviceRow] = relationship()
    snapshot: Mapped[DeviceSnapshotRow] = relationship()
    job: Mapped[JobRow] = relationship(back_populates="sweep")
    candidates: Mapped[list[SweepCandidateRow]] = relationship(viewonly=True)


class PointRow(Base):
    """One place in a sweep; ``key`` is the point's content hash."""

    __tablename__ = "point"
    __table_args__ = (
        UniqueConstraint("sweep_id", "key"),
        UniqueConstraint("sweep_id", "position"),
        UniqueConstraint("id", "workload_id", "threads"),
        CheckConstraint("threads >= 1", name="threads"),
    )

    id: Mapped[int] = mapped_column(BigKey, primary_key=True)
    sweep_id: Mapped[str] = mapped_column(Uuid, ForeignKey("sweep.id"))
    key: Mapped[str] = mapped_column(String(16), index=True)
    position: Mapped[int]
    workload_id: Mapped[int] = mapped_column(BigKey, ForeignKey("workload.id"), index=True)
    power_mode_id: Mapped[int] = mapped_column(BigKey, ForeignKey("power_mode.id"), index=True)
    threads: Mapped[int]
    spin_us: Mapped[int | None]
    cores: Mapped[str] = mapped_column(String(200))
    workload: Mapped[WorkloadRow] = relationship()
    power_mode: Mapped[PowerModeRow] = relationship()


class JobRow(Base):
    """A sweep on its way to its device.

    ``fencing_token`` grows with every lease; only the holder of the newest may write. ``deadline`` says until when the
    holder is waited for; a job that was paused or cancelled meanwhile keeps it until its holder lets go.
    ``expected_s`` is how long all of its runs take, about, on the slowest device that may take it.
    """

    __tablename__ = "job"
    __table_args__ = (
        CheckConstraint(one_of("state", SweepState), name="state"),
        CheckConstraint(
            "(state <> 'running' OR deadline IS NOT NULL) "
            "AND (deadline IS NULL OR state IN ('running', 'paused', 'cancelled'))",
            name="deadline",
        ),
        CheckConstraint("(finished_at IS NOT NULL) = (state IN ('done', 'failed', 'cancelled'))", name="finished_at"),
        CheckConstraint("priority BETWEEN -1000 AND 1000", name="priority"),
        CheckConstraint("expected_s >= 0", name="expected_s"),
        Index(None, "device_id", "state"),
        Index(None, "state"),
        Index(None, "created_at", "id"),
    )

    id: Mapped[str] = mapped_column(Uuid, primary_key=True)
    sweep_id: Mapped[str] = mapped_column(Uuid, ForeignKey("sweep.id"), unique=True)
    device_id: Mapped[str] = mapped_column(Uuid, ForeignKey("device.id"))
    state: Mapped[str] = mapped_column(String(20))
    fencing_token: Mapped[int] = mapped_column(BigInteger)
    deadline: Mapped[datetime | None]
    priority: Mapped[int]
    expected_s: Mapped[float | None]
    detail: Mapped[str]
    created_at: Mapped[datetime]
    leased_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    sweep: Mapped[SweepRow] = relationship(back_populates="job")
