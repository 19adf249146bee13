"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Make every table."""
    _make_devices()
    _make_sweeps()
    _make_runs()


def _make_devices() -> None:
    op.create_table(
        "device",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("enrolled_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device")),
        sa.UniqueConstraint("name", name=op.f("uq_device_name")),
    )
    op.create_table(
        "device_snapshot",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("taken_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("simulated", sa.Boolean(), nullable=False),
        sa.Column("document", JSON, nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_device_snapshot_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device_snapshot")),
    )
    op.create_index(
        op.f("ix_device_snapshot_device_id_device_snapshot_taken_at"), "device_snapshot", ["device_id", "taken_at"]
    )
    op.create_table(
        "power_mode",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("snapshot_id", BIG_KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("settings", JSON, nullable=False),
        sa.Column("origin", sa.String(length=20), nullable=False),
        sa.Column("requires_reboot", sa.Boolean(), nullable=False),
        sa.Column("online_cores", sa.Integer(), nullable=True),
        sa.Column("description", sa.String(), nullable=False),
        sa.CheckConstraint("origin IN ('vendor', 'invented', 'current')", name=op.f("ck_power_mode_origin")),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["device_snapshot.id"], name=op.f("fk_power_mode_snapshot_id_device_snapshot")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_power_mode")),
        sa.UniqueConstraint("snapshot_id", "name", name=op.f("uq_power_mode_snapshot_id_name")),
    )
    op.create_table(
        "rail",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("source", sa.String(length=100), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("quantity", sa.String(length=20), nullable=False),
        sa.Column("resolution", sa.Double(), nullable=False),
        sa.Column("relative_error", sa.Double(), nullable=False),
        sa.Column("update_period_s", sa.Double(), nullable=False),
        sa.Column("provenance", sa.String(length=20), nullable=False),
        sa.CheckConstraint(
            "provenance IN ('measured', 'estimated', 'simulated', 'published')", name=op.f("ck_rail_provenance")
        ),
        sa.CheckConstraint("quantity IN ('power', 'energy')", name=op.f("ck_rail_quantity")),
        sa.CheckConstraint(
            "resolution >= 0 AND relative_error >= 0 AND update_period_s >= 0", name=op.f("ck_rail_not_negative")
        ),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_rail_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rail")),
        sa.UniqueConstraint(
            "device_id",
            "source",
            "name",
            "quantity",
            "resolution",
            "relative_error",
            "update_period_s",
            "provenance",
            name="uq_rail_description",
        ),
    )
    op.create_table(
        "agent_token",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_agent_token_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_token")),
        sa.UniqueConstraint("sha256", name=op.f("uq_agent_token_sha256")),
    )
    op.create_index(op.f("ix_agent_token_device_id"), "agent_token", ["device_id"])
    op.create_table(
        "enrolment_code",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("expires_at > created_at", name=op.f("ck_enrolment_code_expiry")),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_enrolment_code_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_enrolment_code")),
        sa.UniqueConstraint("sha256", name=op.f("uq_enrolment_code_sha256")),
    )
    op.create_table(
        "audit_event",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.String(length=200), nullable=False),
        sa.Column("action", sa.String(length=100), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("detail", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_event")),
    )
    op.create_index(op.f("ix_audit_event_at"), "audit_event", ["at"])


def _make_sweeps() -> None:
    op.create_table(
        "workload",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("engine", sa.String(length=100), nullable=False),
        sa.Column("model", sa.String(length=1000), nullable=False),
        sa.Column("precision", sa.String(length=20), nullable=False),
        sa.Column("scenario", sa.String(length=40), nullable=False),
        sa.Column("batch_size", sa.Integer(), nullable=False),
        sa.CheckConstraint("scenario IN ('single-stream')", name=op.f("ck_workload_scenario")),
        sa.CheckConstraint("batch_size >= 1", name=op.f("ck_workload_batch_size")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workload")),
        sa.UniqueConstraint(
            "engine",
            "model",
            "precision",
            "scenario",
            "batch_size",
            name=op.f("uq_workload_engine_model_precision_scenario_batch_size"),
        ),
    )
    op.create_table(
        "sweep",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("snapshot_id", BIG_KEY, nullable=False),
        sa.Column("plan", JSON, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_sweep_device_id_device")),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["device_snapshot.id"], name=op.f("fk_sweep_snapshot_id_device_snapshot")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep")),
    )
    op.create_index(op.f("ix_sweep_created_at_sweep_id"), "sweep", ["created_at", "id"])
    op.create_index(op.f("ix_sweep_device_id"), "sweep", ["device_id"])
    op.create_table(
        "job",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("sweep_id", sa.String(length=36), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("fencing_token", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.DateTime(timezone=True), nullable=True),
        sa.Column("detail", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("(state = 'running') = (deadline IS NOT NULL)", name=op.f("ck_job_deadline")),
        sa.CheckConstraint("state IN ('queued', 'running', 'done', 'failed')", name=op.f("ck_job_state")),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_job_device_id_device")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_job_sweep_id_sweep")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job")),
        sa.UniqueConstraint("sweep_id", name=op.f("uq_job_sweep_id")),
    )
    op.create_index(op.f("ix_job_device_id_job_state"), "job", ["device_id", "state"])
    op.create_table(
        "point",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("sweep_id", sa.String(length=36), nullable=False),
        sa.Column("key", sa.String(length=16), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("workload_id", BIG_KEY, nullable=False),
        sa.Column("power_mode_id", BIG_KEY, nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.CheckConstraint("threads >= 1", name=op.f("ck_point_threads")),
        sa.ForeignKeyConstraint(["power_mode_id"], ["power_mode.id"], name=op.f("fk_point_power_mode_id_power_mode")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_point_sweep_id_sweep")),
        sa.ForeignKeyConstraint(["workload_id"], ["workload.id"], name=op.f("fk_point_workload_id_workload")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_point")),
        sa.UniqueConstraint("sweep_id", "key", name=op.f("uq_point_sweep_id_key")),
        sa.UniqueConstraint("sweep_id", "position", name=op.f("uq_point_sweep_id_position")),
    )


def _make_runs() -> None:
    op.create_table(
        "run",
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("sweep_id", sa.String(length=36), nullable=False),
        sa.Column("point_id", BIG_KEY, nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.String(length=40), nullable=False),
        sa.Column("window_start_ns", sa.BigInteger(), nullable=False),
        sa.Column("window_end_ns", sa.BigInteger(), nullable=False),
        sa.Column("inference_count", sa.Integer(), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=False),
        sa.Column("findings", JSON, nullable=False),
        sa.Column("total", JSON, nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("verdict IN ('valid', 'flagged', 'void', 'failed')", name=op.f("ck_run_verdict")),
        sa.CheckConstraint("repeat >= 0 AND inference_count >= 0", name=op.f("ck_run_counts")),
        sa.CheckConstraint("window_start_ns <= window_end_ns", name=op.f("ck_run_window")),
        sa.ForeignKeyConstraint(["point_id"], ["point.id"], name=op.f("fk_run_point_id_point")),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_run_sweep_id_sweep")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
        sa.UniqueConstraint("point_id", "repeat", name=op.f("uq_run_point_id_repeat")),
    )
    op.create_index(op.f("ix_run_received_at_run_id"), "run", ["received_at", "id"])
    op.create_index(op.f("ix_run_sweep_id"), "run", ["sweep_id"])
    op.create_table(
        "run_metric",
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("unit", sa.String(length=20), nullable=False),
        sa.Column("low", sa.Double(), nullable=True),
        sa.Column("high", sa.Double(), nullable=True),
        sa.Column("provenance", sa.String(length=20), nullable=False),
        sa.CheckConstraint(
            "provenance IN ('measured', 'estimated', 'simulated', 'published')", name=op.f("ck_run_metric_provenance")
        ),
        sa.CheckConstraint("(low IS NULL) = (high IS NULL)", name=op.f("ck_run_metric_interval_is_whole")),
        sa.CheckConstraint(
            "low IS NULL OR (low <= value AND value <= high)", name=op.f("ck_run_metric_interval_holds_value")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_run_metric_run_id_run")),
        sa.PrimaryKeyConstraint("run_id", "name", name=op.f("pk_run_metric")),
    )
    op.create_index(op.f("ix_run_metric_name_run_metric_value"), "run_metric", ["name", "value"])
    op.create_table(
        "trace_chunk",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("run_id", sa.String(length=36), nullable=False),
        sa.Column("rail_id", BIG_KEY, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("t_first_ns", sa.BigInteger(), nullable=False),
        sa.Column("t_last_ns", sa.BigInteger(), nullable=False),
        sa.Column("sample_count", sa.Integer(), nullable=False),
        sa.Column("value_min", sa.Double(), nullable=False),
        sa.Column("value_max", sa.Double(), nullable=False),
        sa.Column("value_sum", sa.Double(), nullable=False),
        sa.Column("read_cost_ns", sa.BigInteger(), nullable=False),
        sa.Column("codec", sa.String(length=40), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("uri", sa.String(length=1000), nullable=True),
        sa.CheckConstraint("(payload IS NULL) <> (uri IS NULL)", name=op.f("ck_trace_chunk_place")),
        sa.CheckConstraint("sample_count >= 1", name=op.f("ck_trace_chunk_sample_count")),
        sa.CheckConstraint("t_first_ns <= t_last_ns", name=op.f("ck_trace_chunk_times")),
        sa.CheckConstraint("value_min <= value_max", name=op.f("ck_trace_chunk_values")),
        sa.ForeignKeyConstraint(["rail_id"], ["rail.id"], name=op.f("fk_trace_chunk_rail_id_rail")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_trace_chunk_run_id_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trace_chunk")),
        sa.UniqueConstraint("run_id", "rail_id", "position", name=op.f("uq_trace_chunk_run_id_rail_id_position")),
    )


def downgrade() -> None:
    """Drop every table, the referring ones first."""
    for table in (
        "trace_chunk",
        "run_metric",
        "run",
        "point",
        "job",
        "sweep",
        "workload",
        "audit_event",
        "enrolment_code",
        "agent_token",
        "rail",
        "power_mode",
        "device_snapshot",
        "device",
    ):
        op.drop_table(table)
