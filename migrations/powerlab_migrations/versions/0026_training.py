"""What is done with a workload's model: inference, or training by an optimizer."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None

_UNIQUE = "uq_workload_description"
_DESCRIPTION = [
    *("engine", "model", "precision", "scenario", "batch_size", "slices", "preparation", "latency_bound_ms"),
    "processor",
]
_NEW = {"kind": "inference", "optimizer": ""}
"""Both columns, and what every workload had until now."""


def upgrade() -> None:
    """Add both; so far nothing was trained."""
    with op.batch_alter_table("workload") as table:
        for name, value in _NEW.items():
            table.add_column(sa.Column(name, sa.String(20), nullable=False, server_default=value))
    with op.batch_alter_table("workload") as table:
        for name in _NEW:
            table.alter_column(name, existing_type=sa.String(20), existing_nullable=False, server_default=None)
        table.drop_constraint(_UNIQUE, type_="unique")
        table.create_unique_constraint(_UNIQUE, [*_DESCRIPTION, *_NEW])
        table.create_check_constraint(op.f("ck_workload_kind"), "kind IN ('inference', 'train')")


def downgrade() -> None:
    """Forget them, where no two workloads differ in them alone."""
    with op.batch_alter_table("workload") as table:
        table.drop_constraint(op.f("ck_workload_kind"), type_="check")
        table.drop_constraint(_UNIQUE, type_="unique")
        for name in _NEW:
            table.drop_column(name)
        table.create_unique_constraint(_UNIQUE, _DESCRIPTION)
