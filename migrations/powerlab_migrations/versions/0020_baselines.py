"""Named baselines: the sweeps that later ones are judged against."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "baseline_sweep",
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("sweep_id", sa.String(36), nullable=False),
        sa.Column("set_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("set_by", sa.String(200), nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_baseline_sweep_name")),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweep.id"], name=op.f("fk_baseline_sweep_sweep_id_sweep"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("name", "sweep_id", name=op.f("pk_baseline_sweep")),
    )
    op.create_index(op.f("ix_baseline_sweep_sweep_id"), "baseline_sweep", ["sweep_id"])


def downgrade() -> None:
    """Remove it with what it holds; the sweeps stay."""
    op.drop_table("baseline_sweep")
