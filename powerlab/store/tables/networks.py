"""Uploaded models: ONNX files identified by SHA-256."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Index, LargeBinary, String
from sqlalchemy.orm import Mapped, mapped_column

from powerlab.store.tables.base import Base

PIECE_BYTES = 1 << 20
"""Every piece of a file but the last holds so many bytes: a byte's place follows from its number."""


class ModelRow(Base):
    """A file that is whole and verified, or one on its way with a time at which it is given up."""

    __tablename__ = "model"
    __table_args__ = (
        CheckConstraint("length(sha256) = 64", name="sha256"),
        CheckConstraint("byte_count >= 1", name="byte_count"),
        CheckConstraint("uploaded_bytes >= 0 AND uploaded_bytes <= byte_count", name="uploaded_bytes"),
        CheckConstraint("(completed_at IS NULL) <> (expires_at IS NULL)", name="complete_or_expiring"),
        CheckConstraint("completed_at IS NULL OR uploaded_bytes = byte_count", name="complete_is_whole"),
        Index(None, "completed_at", "sha256"),
        Index(None, "name"),
    )

    sha256: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(100))
    byte_count: Mapped[int] = mapped_column(BigInteger)
    uploaded_bytes: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]
    completed_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]


class ModelPieceRow(Base):
    """A part of a file; ``position`` counts from 0."""

    __tablename__ = "model_piece"
    __table_args__ = (
        CheckConstraint("position >= 0", name="position"),
        CheckConstraint(f"length(payload) BETWEEN 1 AND {PIECE_BYTES}", name="payload"),
    )

    sha256: Mapped[str] = mapped_column(String(64), ForeignKey("model.sha256", ondelete="CASCADE"), primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes] = mapped_column(LargeBinary)
