"""A rail says in what share of its time its sensor looks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None

_NAME = "uq_rail_description"
_DESCRIPTION = [
    *("device_id", "source", "name", "quantity", "resolution", "relative_error", "update_period_s", "provenance"),
    *("offset_bound", "lag_s", "lag_error_s"),
]


def upgrade() -> None:
    """Add the column: nobody knew of it, so what is stored says all of the time."""
    with op.batch_alter_table("rail") as rail:
        rail.add_column(sa.Column("seen_share", sa.Double(), nullable=False, server_default="1"))
    with op.batch_alter_table("rail") as rail:
        rail.alter_column("seen_share", existing_type=sa.Double(), existing_nullable=False, server_default=None)
        rail.drop_constraint(_NAME, type_="unique")
        rail.create_unique_constraint(_NAME, [*_DESCRIPTION, "seen_share"])
        rail.create_check_constraint(op.f("ck_rail_seen_share"), "seen_share > 0 AND seen_share <= 1")


def downgrade() -> None:
    """Remove the column; rails that differ in nothing else become one."""
    same = " AND ".join(f"twin.{column} = own.{column}" for column in _DESCRIPTION)
    first_twin = f"SELECT MIN(twin.id) FROM rail AS twin JOIN rail AS own ON {same} WHERE own.id = trace_chunk.rail_id"  # noqa: S608
    op.execute(f"UPDATE trace_chunk SET rail_id = ({first_twin})")  # noqa: S608
    op.execute(f"DELETE FROM rail WHERE id NOT IN (SELECT MIN(id) FROM rail GROUP BY {', '.join(_DESCRIPTION)})")  # noqa: S608
    with op.batch_alter_table("rail") as rail:
        rail.drop_constraint(op.f("ck_rail_seen_share"), type_="check")
        rail.drop_constraint(_NAME, type_="unique")
        rail.drop_column("seen_share")
        rail.create_unique_constraint(_NAME, _DESCRIPTION)
