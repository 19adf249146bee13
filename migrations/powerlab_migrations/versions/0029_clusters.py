"""Several devices that train together as one sweep."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_UNIQUE = "uq_workload_description"
_DESCRIPTION = [
    *("engine", "model", "precision", "scenario", "batch_size", "slices", "preparation", "latency_bound_ms"),
    *("processor", "kind", "optimizer", "recompute", "queues"),
]


def upgrade() -> None:
    """Add the further devices of a sweep; so far each had one."""
    with op.batch_alter_table("workload") as table:
        table.add_column(sa.Column("nodes", sa.Integer(), nullable=False, server_default="1"))
    with op.batch_alter_table("workload") as table:
        table.alter_column("nodes", existing_type=sa.Integer(), existing_nullable=False, server_default=None)
        table.drop_constraint(_UNIQUE, type_="unique")
        table.create_unique_constraint(_UNIQUE, [*_DESCRIPTION, "nodes"])
        table.create_check_constraint(op.f("ck_workload_nodes"), "nodes >= 1")
    op.create_table(
        "sweep_node",
        sa.Column("sweep_id", sa.String(length=36), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("rank", sa.Integer(), nullable=False),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("fencing_token", sa.BigInteger(), nullable=True),
        sa.Column("address", sa.String(length=300), nullable=True),
        sa.Column("secret", sa.String(length=100), nullable=True),
        sa.CheckConstraint("rank >= 1", name=op.f("ck_sweep_node_rank")),
        sa.ForeignKeyConstraint(
            ["sweep_id"], ["sweep.id"], name=op.f("fk_sweep_node_sweep_id_sweep"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_sweep_node_device_id_device")),
        sa.PrimaryKeyConstraint("sweep_id", "device_id", name=op.f("pk_sweep_node")),
        sa.UniqueConstraint("sweep_id", "rank", name=op.f("uq_sweep_node_sweep_id_rank")),
    )
    op.create_index(op.f("ix_sweep_node_device_id"), "sweep_node", ["device_id"])


def downgrade() -> None:
    """Forget them, where no two workloads differ in their number alone."""
    op.drop_table("sweep_node")
    with op.batch_alter_table("workload") as table:
        table.drop_constraint(op.f("ck_workload_nodes"), type_="check")
        table.drop_constraint(_UNIQUE, type_="unique")
        table.drop_column("nodes")
        table.create_unique_constraint(_UNIQUE, _DESCRIPTION)
