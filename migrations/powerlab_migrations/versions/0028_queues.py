"""Over how many queues of a graphics processor the slices of a batch are spread."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_UNIQUE = "uq_workload_description"
_DESCRIPTION = [
    *("engine", "model", "precision", "scenario", "batch_size", "slices", "preparation", "latency_bound_ms"),
    *("processor", "kind", "optimizer", "recompute"),
]


def upgrade() -> None:
    """Add them; so far there was one."""
    with op.batch_alter_table("workload") as table:
        table.add_column(sa.Column("queues", sa.Integer(), nullable=False, server_default="1"))
    with op.batch_alter_table("workload") as table:
        table.alter_column("queues", existing_type=sa.Integer(), existing_nullable=False, server_default=None)
        table.drop_constraint(_UNIQUE, type_="unique")
        table.create_unique_constraint(_UNIQUE, [*_DESCRIPTION, "queues"])
        table.create_check_constraint(op.f("ck_workload_queues"), "queues >= 1")


def downgrade() -> None:
    """Forget them, where no two workloads differ in them alone."""
    with op.batch_alter_table("workload") as table:
        table.drop_constraint(op.f("ck_workload_queues"), type_="check")
        table.drop_constraint(_UNIQUE, type_="unique")
        table.drop_column("queues")
        table.create_unique_constraint(_UNIQUE, _DESCRIPTION)
