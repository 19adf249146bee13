"""Indexes for the filters of the API's lists."""

from __future__ import annotations

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_INDEXES = (
    ("workload", "model"),
    ("point", "workload_id"),
    ("point", "power_mode_id"),
    ("point", "key"),
    ("power_mode", "name"),
    ("job", "state"),
)


def upgrade() -> None:
    """Make them."""
    for table, column in _INDEXES:
        op.create_index(op.f(f"ix_{table}_{column}"), table, [column])


def downgrade() -> None:
    """Remove them."""
    for table, column in _INDEXES:
        op.drop_index(op.f(f"ix_{table}_{column}"), table)
