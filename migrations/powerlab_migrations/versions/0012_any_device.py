"""Sweeps that wait for any of several devices, and campaigns of sweeps."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the tables; no sweep of before waits for any device but its own."""
    op.create_table(
        "campaign",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("request", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submitter", sa.String(length=200), nullable=False),
        sa.Column("request_key", sa.String(length=200), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_campaign")),
        sa.UniqueConstraint("submitter", "request_key", name=op.f("uq_campaign_submitter_request_key")),
    )
    with op.batch_alter_table("sweep") as table:
        table.add_column(sa.Column("any_of", JSON, nullable=True))
        table.add_column(sa.Column("campaign_id", sa.String(length=36), nullable=True))
        table.create_foreign_key(op.f("fk_sweep_campaign_id_campaign"), "campaign", ["campaign_id"], ["id"])
        table.create_index(op.f("ix_sweep_campaign_id"), ["campaign_id"])
    op.create_table(
        "sweep_candidate",
        sa.Column("sweep_id", sa.String(length=36), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("snapshot_id", BIG_KEY, nullable=False),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweep.id"], name=op.f("fk_sweep_candidate_sweep_id_sweep"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_sweep_candidate_device_id_device")),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["device_snapshot.id"], name=op.f("fk_sweep_candidate_snapshot_id_device_snapshot")
        ),
        sa.PrimaryKeyConstraint("sweep_id", "device_id", name=op.f("pk_sweep_candidate")),
    )
    op.create_index(op.f("ix_sweep_candidate_device_id"), "sweep_candidate", ["device_id"])


def downgrade() -> None:
    """Leave every sweep with the device that it names, the first of those that it waited for."""
    op.drop_table("sweep_candidate")
    with op.batch_alter_table("sweep") as table:
        table.drop_index(op.f("ix_sweep_campaign_id"))
        table.drop_constraint(op.f("fk_sweep_campaign_id_campaign"), type_="foreignkey")
        table.drop_column("campaign_id")
        table.drop_column("any_of")
    op.drop_table("campaign")
