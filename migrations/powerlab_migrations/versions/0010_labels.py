"""Labels of devices, and groups of devices."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "device_label",
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=63), nullable=False),
        sa.Column("value", sa.String(length=63), nullable=False),
        sa.CheckConstraint("key <> ''", name=op.f("ck_device_label_key")),
        sa.ForeignKeyConstraint(
            ["device_id"], ["device.id"], name=op.f("fk_device_label_device_id_device"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("device_id", "key", name=op.f("pk_device_label")),
    )
    op.create_index(op.f("ix_device_label_key_device_label_value"), "device_label", ["key", "value"])
    op.create_table(
        "device_group",
        sa.Column("name", sa.String(length=63), nullable=False),
        sa.Column("board", sa.String(length=100), nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_device_group_name")),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_device_group")),
    )


def downgrade() -> None:
    """Remove them with what they hold."""
    op.drop_table("device_group")
    op.drop_table("device_label")
