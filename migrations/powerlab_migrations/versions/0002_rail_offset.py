"""A rail states the bound of its offset itself; until now it followed from the source's name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_DESCRIPTION = [
    "device_id",
    "source",
    "name",
    "quantity",
    "resolution",
    "relative_error",
    "update_period_s",
    "provenance",
]
_NOT_NEGATIVE = "resolution >= 0 AND relative_error >= 0 AND update_period_s >= 0"


def upgrade() -> None:
    """Add the column; the INA3221's bound was two of its steps, every other source's was 0."""
    with op.batch_alter_table("rail") as rail:
        rail.add_column(sa.Column("offset_bound", sa.Double(), nullable=False, server_default="0"))
    op.execute("UPDATE rail SET offset_bound = 2 * resolution WHERE source = 'ina3221'")
    with op.batch_alter_table("rail") as rail:
        rail.alter_column("offset_bound", existing_type=sa.Double(), existing_nullable=False, server_default=None)
        rail.drop_constraint("uq_rail_description", type_="unique")
        rail.create_unique_constraint("uq_rail_description", [*_DESCRIPTION, "offset_bound"])
        rail.drop_constraint(op.f("ck_rail_not_negative"), type_="check")
        rail.create_check_constraint(op.f("ck_rail_not_negative"), f"{_NOT_NEGATIVE} AND offset_bound >= 0")


def downgrade() -> None:
    """Remove the column; rails that differ in nothing else become one."""
    same = " AND ".join(f"twin.{column} = own.{column}" for column in _DESCRIPTION)
    first_twin = f"SELECT MIN(twin.id) FROM rail AS twin JOIN rail AS own ON {same} WHERE own.id = trace_chunk.rail_id"  # noqa: S608
    op.execute(f"UPDATE trace_chunk SET rail_id = ({first_twin})")  # noqa: S608
    op.execute(f"DELETE FROM rail WHERE id NOT IN (SELECT MIN(id) FROM rail GROUP BY {', '.join(_DESCRIPTION)})")  # noqa: S608
    with op.batch_alter_table("rail") as rail:
        rail.drop_constraint("uq_rail_description", type_="unique")
        rail.drop_constraint(op.f("ck_rail_not_negative"), type_="check")
        rail.create_check_constraint(op.f("ck_rail_not_negative"), _NOT_NEGATIVE)
        rail.drop_column("offset_bound")
        rail.create_unique_constraint("uq_rail_description", _DESCRIPTION)
