"""Telemetry of devices: readings of the last minutes, the phase of a sweep, and which devices are watched."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_PHASES = ("preparing", "loading", "cooling", "idle", "warm-up", "timed", "between")
_PROVENANCES = ("measured", "estimated", "simulated", "published")


def _one_of(column: str, values: tuple[str, ...]) -> str:
    return f"{column} IN ({', '.join(repr(value) for value in values)})"


def _device(table: str) -> sa.ForeignKeyConstraint:
    name = op.f(f"fk_{table}_device_id_device")
    return sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=name, ondelete="CASCADE")


def upgrade() -> None:
    """Make the tables; no agent has sent anything yet."""
    op.create_table(
        "device_reading",
        sa.Column("id", _KEY, nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("power_w", sa.Double(), nullable=True),
        sa.Column("provenance", sa.String(length=20), nullable=True),
        sa.Column("hottest_c", sa.Double(), nullable=True),
        sa.Column("clock_mhz", sa.Double(), nullable=True),
        sa.Column("mode", sa.String(length=200), nullable=False),
        sa.Column("document", _JSON, nullable=False),
        sa.CheckConstraint(_one_of("provenance", _PROVENANCES), name=op.f("ck_device_reading_provenance")),
        _device("device_reading"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_device_reading")),
    )
    op.create_index(op.f("ix_device_reading_at"), "device_reading", ["at"])
    op.create_index(op.f("ix_device_reading_device_id_device_reading_at"), "device_reading", ["device_id", "at"])
    op.create_table(
        "device_phase",
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("sweep_id", sa.String(length=36), nullable=False),
        sa.Column("phase", sa.String(length=20), nullable=False),
        sa.Column("since", _TIME, nullable=False),
        sa.Column("ends_at", _TIME, nullable=True),
        sa.Column("point", _JSON, nullable=True),
        sa.Column("run_index", sa.Integer(), nullable=False),
        sa.Column("run_count", sa.Integer(), nullable=False),
        sa.CheckConstraint(_one_of("phase", _PHASES), name=op.f("ck_device_phase_phase")),
        _device("device_phase"),
        sa.PrimaryKeyConstraint("device_id", name=op.f("pk_device_phase")),
    )
    op.create_table(
        "device_watch",
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("until", _TIME, nullable=False),
        _device("device_watch"),
        sa.PrimaryKeyConstraint("device_id", name=op.f("pk_device_watch")),
    )


def downgrade() -> None:
    """Remove them."""
    op.drop_table("device_watch")
    op.drop_table("device_phase")
    op.drop_table("device_reading")
