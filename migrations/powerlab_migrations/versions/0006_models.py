"""Models: files of networks, in pieces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "model",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("byte_count", sa.BigInteger(), nullable=False),
        sa.Column("uploaded_bytes", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("length(sha256) = 64", name=op.f("ck_model_sha256")),
        sa.CheckConstraint("byte_count >= 1", name=op.f("ck_model_byte_count")),
        sa.CheckConstraint(
            "uploaded_bytes >= 0 AND uploaded_bytes <= byte_count", name=op.f("ck_model_uploaded_bytes")
        ),
        sa.CheckConstraint(
            "(completed_at IS NULL) <> (expires_at IS NULL)", name=op.f("ck_model_complete_or_expiring")
        ),
        sa.CheckConstraint(
            "completed_at IS NULL OR uploaded_bytes = byte_count", name=op.f("ck_model_complete_is_whole")
        ),
        sa.PrimaryKeyConstraint("sha256", name=op.f("pk_model")),
    )
    op.create_index(op.f("ix_model_completed_at_model_sha256"), "model", ["completed_at", "sha256"])
    op.create_index(op.f("ix_model_name"), "model", ["name"])
    op.create_table(
        "model_piece",
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("position >= 0", name=op.f("ck_model_piece_position")),
        sa.CheckConstraint("length(payload) BETWEEN 1 AND 1048576", name=op.f("ck_model_piece_payload")),
        sa.ForeignKeyConstraint(
            ["sha256"], ["model.sha256"], name=op.f("fk_model_piece_sha256_model"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sha256", "position", name=op.f("pk_model_piece")),
    )


def downgrade() -> None:
    """Remove the tables and all models with them."""
    op.drop_table("model_piece")
    op.drop_table("model")
