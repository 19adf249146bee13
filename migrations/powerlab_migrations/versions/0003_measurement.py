"""Scenarios and more dimensions of a sweep; a run keeps its uncertainty budget, its conditions and its idle traces."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")

_RAIL = [
    *("device_id", "source", "name", "quantity", "resolution", "relative_error", "update_period_s", "provenance"),
    "offset_bound",
]
_NOT_NEGATIVE = "resolution >= 0 AND relative_error >= 0 AND update_period_s >= 0 AND offset_bound >= 0"
_WORKLOAD = ["engine", "model", "precision", "scenario", "batch_size"]
_FEEDING = ["slices", "preparation", "latency_bound_ms"]
_SCENARIOS = "scenario IN ('single-stream', 'multi-stream', 'server', 'offline')"
_QUANTITIES = "quantity IN ('power', 'energy', 'latency', 'temperature')"


def upgrade() -> None:
    """Add the columns; what was stored before had the one scenario there was, no slices and outside preparation."""
    with op.batch_alter_table("workload") as table:
        table.add_column(sa.Column("slices", sa.Integer(), nullable=False, server_default="1"))
        table.add_column(sa.Column("preparation", sa.String(length=20), nullable=False, server_default="outside"))
        table.add_column(sa.Column("latency_bound_ms", sa.Double(), nullable=False, server_default="0"))
    with op.batch_alter_table("workload") as table:
        for name, kind in (("slices", sa.Integer()), ("preparation", sa.String(20)), ("latency_bound_ms", sa.Double())):
            table.alter_column(name, existing_type=kind, existing_nullable=False, server_default=None)
        table.drop_constraint(op.f("uq_workload_engine_model_precision_scenario_batch_size"), type_="unique")
        table.create_unique_constraint("uq_workload_description", [*_WORKLOAD, *_FEEDING])
        table.drop_constraint(op.f("ck_workload_scenario"), type_="check")
        table.create_check_constraint(op.f("ck_workload_scenario"), _SCENARIOS)
        table.drop_constraint(op.f("ck_workload_batch_size"), type_="check")
        table.create_check_constraint(op.f("ck_workload_batch_size"), "batch_size >= 1 AND slices >= 1")
        table.create_check_constraint(op.f("ck_workload_latency_bound"), "latency_bound_ms >= 0")
        table.create_check_constraint(op.f("ck_workload_preparation"), "preparation IN ('outside', 'inside')")
    with op.batch_alter_table("point") as table:
        table.add_column(sa.Column("spin_us", sa.Integer(), nullable=True))
        table.add_column(sa.Column("cores", sa.String(length=200), nullable=False, server_default=""))
    with op.batch_alter_table("point") as table:
        table.alter_column("cores", existing_type=sa.String(200), existing_nullable=False, server_default=None)
    with op.batch_alter_table("run") as table:
        table.add_column(sa.Column("budget", JSON, nullable=False, server_default="[]"))
        table.add_column(sa.Column("conditions", JSON, nullable=True))
    with op.batch_alter_table("run") as table:
        table.alter_column("budget", existing_type=JSON, existing_nullable=False, server_default=None)
    with op.batch_alter_table("rail") as table:
        table.add_column(sa.Column("lag_s", sa.Double(), nullable=False, server_default="0"))
        table.add_column(sa.Column("lag_error_s", sa.Double(), nullable=False, server_default="0"))
    with op.batch_alter_table("rail") as table:
        for name in ("lag_s", "lag_error_s"):
            table.alter_column(name, existing_type=sa.Double(), existing_nullable=False, server_default=None)
        table.drop_constraint(op.f("ck_rail_quantity"), type_="check")
        table.create_check_constraint(op.f("ck_rail_quantity"), _QUANTITIES)
        table.drop_constraint(op.f("ck_rail_not_negative"), type_="check")
        table.create_check_constraint(op.f("ck_rail_not_negative"), f"{_NOT_NEGATIVE} AND lag_error_s >= 0")
        table.drop_constraint("uq_rail_description", type_="unique")
        table.create_unique_constraint("uq_rail_description", [*_RAIL, "lag_s", "lag_error_s"])
    with op.batch_alter_table("trace_chunk") as table:
        table.add_column(sa.Column("part", sa.String(length=20), nullable=False, server_default="run"))
    with op.batch_alter_table("trace_chunk") as table:
        table.alter_column("part", existing_type=sa.String(20), existing_nullable=False, server_default=None)
        table.drop_constraint(op.f("uq_trace_chunk_run_id_rail_id_position"), type_="unique")
        table.create_unique_constraint(
            op.f("uq_trace_chunk_run_id_rail_id_part_position"), ["run_id", "rail_id", "part", "position"]
        )
        table.create_check_constraint(op.f("ck_trace_chunk_part"), "part IN ('run', 'idle-before', 'idle-after')")


def downgrade() -> None:
    """Remove the columns, and with them what has no place without them: other scenarios' runs, and idle traces."""
    foreign = "SELECT id FROM workload WHERE scenario <> 'single-stream' OR slices <> 1 OR preparation <> 'outside'"
    points = f"SELECT id FROM point WHERE workload_id IN ({foreign}) OR spin_us IS NOT NULL OR cores <> ''"  # noqa: S608
    runs = f"SELECT id FROM run WHERE point_id IN ({points})"  # noqa: S608
    for statement in (
        "DELETE FROM trace_chunk WHERE part <> 'run'",
        "DELETE FROM trace_chunk WHERE rail_id IN (SELECT id FROM rail WHERE quantity IN ('latency', 'temperature'))",
        "DELETE FROM rail WHERE quantity IN ('latency', 'temperature')",
        f"DELETE FROM trace_chunk WHERE run_id IN ({runs})",  # noqa: S608
        f"DELETE FROM run_metric WHERE run_id IN ({runs})",  # noqa: S608
        f"DELETE FROM run WHERE point_id IN ({points})",  # noqa: S608
        f"DELETE FROM point WHERE workload_id IN ({foreign}) OR spin_us IS NOT NULL OR cores <> ''",  # noqa: S608
        "DELETE FROM workload WHERE scenario <> 'single-stream' OR slices <> 1 OR preparation <> 'outside'",
    ):
        op.execute(statement)
    with op.batch_alter_table("trace_chunk") as table:
        table.drop_constraint(op.f("ck_trace_chunk_part"), type_="check")
        table.drop_constraint(op.f("uq_trace_chunk_run_id_rail_id_part_position"), type_="unique")
        table.drop_column("part")
        table.create_unique_constraint(
            op.f("uq_trace_chunk_run_id_rail_id_position"), ["run_id", "rail_id", "position"]
        )
    same = " AND ".join(f"twin.{column} = own.{column}" for column in _RAIL)
    twin = f"SELECT MIN(twin.id) FROM rail AS twin JOIN rail AS own ON {same} WHERE own.id = trace_chunk.rail_id"  # noqa: S608
    op.execute(f"UPDATE trace_chunk SET rail_id = ({twin})")  # noqa: S608
    op.execute(f"DELETE FROM rail WHERE id NOT IN (SELECT MIN(id) FROM rail GROUP BY {', '.join(_RAIL)})")  # noqa: S608
    with op.batch_alter_table("rail") as table:
        table.drop_constraint(op.f("ck_rail_quantity"), type_="check")
        table.create_check_constraint(op.f("ck_rail_quantity"), "quantity IN ('power', 'energy')")
        table.drop_constraint(op.f("ck_rail_not_negative"), type_="check")
        table.drop_constraint("uq_rail_description", type_="unique")
        table.drop_column("lag_s")
        table.drop_column("lag_error_s")
        table.create_unique_constraint("uq_rail_description", _RAIL)
        table.create_check_constraint(op.f("ck_rail_not_negative"), _NOT_NEGATIVE)
    with op.batch_alter_table("run") as table:
        table.drop_column("conditions")
        table.drop_column("budget")
    with op.batch_alter_table("point") as table:
        table.drop_column("cores")
        table.drop_column("spin_us")
    with op.batch_alter_table("workload") as table:
        table.drop_constraint("uq_workload_description", type_="unique")
        for name in ("scenario", "batch_size", "latency_bound", "preparation"):
            table.drop_constraint(op.f(f"ck_workload_{name}"), type_="check")
        for column in _FEEDING:
            table.drop_column(column)
        table.create_unique_constraint(op.f("uq_workload_engine_model_precision_scenario_batch_size"), _WORKLOAD)
        table.create_check_constraint(op.f("ck_workload_scenario"), "scenario IN ('single-stream')")
        table.create_check_constraint(op.f("ck_workload_batch_size"), "batch_size >= 1")
