"""What computed a workload: the cores, or a graphics processor."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

_UNIQUE = "uq_workload_description"
_DESCRIPTION = [
    *("engine", "model", "precision", "scenario", "batch_size", "slices", "preparation", "latency_bound_ms"),
]
_CUDA = "onnxruntime-cuda"
"""Until now an engine of its own."""


def upgrade() -> None:
    """Add it; two engines ran on cards alone."""
    with op.batch_alter_table("workload") as table:
        table.add_column(sa.Column("processor", sa.String(20), nullable=False, server_default="cpu"))
    op.execute(f"UPDATE workload SET processor = 'gpu' WHERE engine IN ('{_CUDA}', 'onnxruntime-tensorrt')")  # noqa: S608
    with op.batch_alter_table("workload") as table:
        table.alter_column("processor", existing_type=sa.String(20), existing_nullable=False, server_default=None)
        table.drop_constraint(_UNIQUE, type_="unique")
        table.create_unique_constraint(_UNIQUE, [*_DESCRIPTION, "processor"])
        table.create_check_constraint(op.f("ck_workload_processor"), "processor IN ('cpu', 'gpu')")


def downgrade() -> None:
    """Forget it, where no two workloads differ in it alone."""
    with op.batch_alter_table("workload") as table:
        table.drop_constraint(op.f("ck_workload_processor"), type_="check")
        table.drop_constraint(_UNIQUE, type_="unique")
        table.drop_column("processor")
        table.create_unique_constraint(_UNIQUE, _DESCRIPTION)
