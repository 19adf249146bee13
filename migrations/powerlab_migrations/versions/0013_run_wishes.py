"""What runs are looked for by stands in the run, their time of arrival in their figures; indexes by all of it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_COLUMNS: dict[str, tuple[Any, str]] = {
    "device_id": (sa.String(36), "SELECT device_id FROM sweep WHERE sweep.id = run.sweep_id"),
    "workload_id": (
        sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
        "SELECT workload_id FROM point WHERE point.id = run.point_id",
    ),
    "threads": (sa.Integer(), "SELECT threads FROM point WHERE point.id = run.point_id"),
    "mode": (
        sa.String(200),
        "SELECT name FROM power_mode JOIN point ON point.power_mode_id = power_mode.id WHERE point.id = run.point_id",
    ),
    "simulated": (
        sa.Boolean(),
        "SELECT simulated FROM device_snapshot JOIN sweep ON sweep.snapshot_id = device_snapshot.id "
        "WHERE sweep.id = run.sweep_id",
    ),
    "power_provenance": (
        sa.String(20),
        "SELECT min(provenance) FROM run_metric WHERE run_metric.run_id = run.id AND run_metric.name IN ('power_w', "
        "'idle_power_w', 'energy_per_image_j', 'energy_above_idle_per_image_j', 'efficiency_img_per_s_per_w')",
    ),
}
_WISHES = ("device_id", "workload_id", "threads", "mode", "verdict", "simulated", "power_provenance")
_RECEIVED = "SELECT received_at FROM run WHERE run.id = run_metric.run_id"
_TIME = sa.DateTime(timezone=True)
_PROVENANCES = "power_provenance IN ('measured', 'estimated', 'simulated', 'published')"
_EVENTS = ("actor", "action", "subject")


def upgrade() -> None:
    """Copy it there, and hold the copies to what they are copies of."""
    with op.batch_alter_table("run") as table:
        for name, (kind, _) in _COLUMNS.items():
            table.add_column(sa.Column(name, kind, nullable=True))
    op.execute(f"UPDATE run SET {', '.join(f'{name} = ({found})' for name, (_, found) in _COLUMNS.items())}")  # noqa: S608
    with op.batch_alter_table("run_metric") as table:
        table.add_column(sa.Column("received_at", _TIME, nullable=True))
    op.execute(f"UPDATE run_metric SET received_at = ({_RECEIVED})")  # noqa: S608
    with op.batch_alter_table("sweep") as table:
        table.create_unique_constraint(op.f("uq_sweep_id_device_id"), ["id", "device_id"])
    with op.batch_alter_table("point") as table:
        table.create_unique_constraint(op.f("uq_point_id_workload_id_threads"), ["id", "workload_id", "threads"])
    op.drop_index(op.f("ix_run_metric_name_run_metric_value"), "run_metric")
    op.drop_index(op.f("ix_run_received_at_run_id"), "run")
    with op.batch_alter_table("run") as table:
        for name, (kind, _) in _COLUMNS.items():
            if name != "power_provenance":
                table.alter_column(name, existing_type=kind, nullable=False)
        table.drop_constraint(op.f("fk_run_sweep_id_sweep"), type_="foreignkey")
        table.drop_constraint(op.f("fk_run_point_id_point"), type_="foreignkey")
        table.create_foreign_key(
            op.f("fk_run_sweep_id_device_id_sweep"), "sweep", ["sweep_id", "device_id"], ["id", "device_id"]
        )
        three = ["workload_id", "threads"]
        table.create_foreign_key(
            op.f("fk_run_point_id_workload_id_threads_point"), "point", ["point_id", *three], ["id", *three]
        )
        table.create_unique_constraint(op.f("uq_run_received_at_id"), ["received_at", "id"])
        table.create_check_constraint(op.f("ck_run_power_provenance"), _PROVENANCES)
    with op.batch_alter_table("run_metric") as table:
        table.alter_column("received_at", existing_type=_TIME, nullable=False)
        table.drop_constraint(op.f("fk_run_metric_run_id_run"), type_="foreignkey")
        own = ["received_at"]
        table.create_foreign_key(op.f("fk_run_metric_run_id_received_at_run"), "run", ["run_id", *own], ["id", *own])
    for name in _WISHES:
        op.create_index(op.f(f"ix_run_{name}_run_received_at"), "run", [name, "received_at"])
    op.create_index(
        op.f("ix_run_metric_name_run_metric_received_at_run_metric_value"), "run_metric", ["name", *own, "value"]
    )
    for name in _EVENTS:
        op.create_index(op.f(f"ix_audit_event_{name}_audit_event_at"), "audit_event", [name, "at"])


def downgrade() -> None:
    """Remove the copies."""
    for name in _EVENTS:
        op.drop_index(op.f(f"ix_audit_event_{name}_audit_event_at"), "audit_event")
    op.drop_index(op.f("ix_run_metric_name_run_metric_received_at_run_metric_value"), "run_metric")
    for name in _WISHES:
        op.drop_index(op.f(f"ix_run_{name}_run_received_at"), "run")
    with op.batch_alter_table("run_metric") as table:
        table.drop_constraint(op.f("fk_run_metric_run_id_received_at_run"), type_="foreignkey")
        table.drop_column("received_at")
        table.create_foreign_key(op.f("fk_run_metric_run_id_run"), "run", ["run_id"], ["id"])
    with op.batch_alter_table("run") as table:
        table.drop_constraint(op.f("ck_run_power_provenance"), type_="check")
        table.drop_constraint(op.f("uq_run_received_at_id"), type_="unique")
        table.drop_constraint(op.f("fk_run_point_id_workload_id_threads_point"), type_="foreignkey")
        table.drop_constraint(op.f("fk_run_sweep_id_device_id_sweep"), type_="foreignkey")
        for name in _COLUMNS:
            table.drop_column(name)
        table.create_foreign_key(op.f("fk_run_sweep_id_sweep"), "sweep", ["sweep_id"], ["id"])
        table.create_foreign_key(op.f("fk_run_point_id_point"), "point", ["point_id"], ["id"])
    with op.batch_alter_table("point") as table:
        table.drop_constraint(op.f("uq_point_id_workload_id_threads"), type_="unique")
    with op.batch_alter_table("sweep") as table:
        table.drop_constraint(op.f("uq_sweep_id_device_id"), type_="unique")
    op.create_index(op.f("ix_run_received_at_run_id"), "run", ["received_at", "id"])
    op.create_index(op.f("ix_run_metric_name_run_metric_value"), "run_metric", ["name", "value"])
