"""The best points of sweeps that are over, beside their summaries."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the column; servers fill it while they run."""
    op.add_column("sweep_summary", sa.Column("answers", sa.LargeBinary(), nullable=True))


def downgrade() -> None:
    """Remove it: all of it can be worked out again."""
    with op.batch_alter_table("sweep_summary") as table:
        table.drop_column("answers")
