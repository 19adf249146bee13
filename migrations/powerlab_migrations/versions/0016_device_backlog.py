"""What agents say that they have not uploaded yet."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_COUNTS = ("runs", "refused_runs", "chunks", "size_bytes", "shed_runs")


def upgrade() -> None:
    """Make the table; no agent has said anything yet."""
    op.create_table(
        "device_backlog",
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("said_at", _TIME, nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in _COUNTS),
        sa.Column("oldest_since", _TIME, nullable=True),
        sa.CheckConstraint(" AND ".join(f"{name} >= 0" for name in _COUNTS), name=op.f("ck_device_backlog_counts")),
        sa.CheckConstraint("oldest_since IS NULL OR runs > 0", name=op.f("ck_device_backlog_oldest_since")),
        sa.ForeignKeyConstraint(
            ["device_id"], ["device.id"], name=op.f("fk_device_backlog_device_id_device"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("device_id", name=op.f("pk_device_backlog")),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("device_backlog")
