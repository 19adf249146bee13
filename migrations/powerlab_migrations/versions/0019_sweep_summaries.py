"""The summaries of sweeps that are over; servers fill the table while they run."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "sweep_summary",
        sa.Column("sweep_id", sa.String(36), nullable=False),
        sa.Column("method", sa.Integer(), nullable=False),
        sa.Column("run_count", sa.Integer(), nullable=False),
        sa.Column("document", sa.LargeBinary(), nullable=False),
        sa.CheckConstraint("run_count >= 0", name=op.f("ck_sweep_summary_run_count")),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweep.id"], name=op.f("fk_sweep_summary_sweep_id_sweep"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("sweep_id", name=op.f("pk_sweep_summary")),
    )


def downgrade() -> None:
    """Remove it: all of it can be worked out again."""
    op.drop_table("sweep_summary")
