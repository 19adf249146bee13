"""Layer profiles: what every layer of a network costs on a device."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "layer_profile",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("document", JSON, nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_layer_profile_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_layer_profile")),
    )
    op.create_index(op.f("ix_layer_profile_created_at_layer_profile_id"), "layer_profile", ["created_at", "id"])
    op.create_index(op.f("ix_layer_profile_device_id"), "layer_profile", ["device_id"])


def downgrade() -> None:
    """Remove the table and all profiles with it."""
    op.drop_table("layer_profile")
