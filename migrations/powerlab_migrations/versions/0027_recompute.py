"""Whether steps of training compute activations again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_UNIQUE = "uq_workload_description"
_DESCRIPTION = [
    *("engine", "model", "precision", "scenario", "batch_size", "slices", "preparation", "latency_bound_ms"),
    *("processor", "kind", "optimizer"),
]
_CHECK = "ck_workload_recompute"


def upgrade() -> None:
    """Add the column; so far every activation was kept."""
    with op.batch_alter_table("workload") as table:
        table.add_column(sa.Column("recompute", sa.String(20), nullable=False, server_default="no"))
    with op.batch_alter_table("workload") as table:
        table.alter_column("recompute", existing_type=sa.String(20), existing_nullable=False, server_default=None)
        table.drop_constraint(_UNIQUE, type_="unique")
        table.create_unique_constraint(_UNIQUE, [*_DESCRIPTION, "recompute"])
        table.create_check_constraint(op.f(_CHECK), "recompute IN ('no', 'yes')")


def downgrade() -> None:
    """Forget it, where no two workloads differ in it alone."""
    with op.batch_alter_table("workload") as table:
        table.drop_constraint(op.f(_CHECK), type_="check")
        table.drop_constraint(_UNIQUE, type_="unique")
        table.drop_column("recompute")
        table.create_unique_constraint(_UNIQUE, _DESCRIPTION)
