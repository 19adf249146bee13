"""Traces of clocks, and what is recorded while a device warms up and cools down."""

from __future__ import annotations

from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None

_QUANTITIES = ("power", "energy", "latency", "temperature")
_PARTS = ("run", "idle-before", "idle-after")
_NEW_QUANTITIES, _NEW_PARTS = ("clock",), ("cool-down", "warm-up")


def _allow(table_name: str, column: str, values: tuple[str, ...]) -> None:
    name = op.f(f"ck_{table_name}_{column}")
    with op.batch_alter_table(table_name) as table:
        table.drop_constraint(name, type_="check")
        table.create_check_constraint(name, f"{column} IN ({', '.join(map(repr, values))})")


def upgrade() -> None:
    """Allow them."""
    _allow("rail", "quantity", (*_QUANTITIES, *_NEW_QUANTITIES))
    _allow("trace_chunk", "part", (*_PARTS, *_NEW_PARTS))


def downgrade() -> None:
    """Delete them; no figure was made of them."""
    op.execute("DELETE FROM trace_chunk WHERE part IN ('cool-down', 'warm-up')")
    op.execute("DELETE FROM trace_chunk WHERE rail_id IN (SELECT id FROM rail WHERE quantity = 'clock')")
    op.execute("DELETE FROM rail WHERE quantity = 'clock'")
    _allow("trace_chunk", "part", _PARTS)
    _allow("rail", "quantity", _QUANTITIES)
