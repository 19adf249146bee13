"""Events: what happened, in the order of commits."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KINDS = (
    *("sweep.created", "sweep.started", "sweep.queued", "sweep.paused", "sweep.cancelled", "sweep.finished"),
    *("sweep.failed", "run.stored", "device.enrolled", "device.seen"),
)


def upgrade() -> None:
    """Make the table; what happened before is not in it."""
    op.create_table(
        "event",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=40), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("sweep_id", sa.String(length=36), nullable=True),
        sa.Column("run_id", sa.String(length=36), nullable=True),
        sa.Column("detail", sa.String(), nullable=False),
        sa.CheckConstraint(f"kind IN ({', '.join(map(repr, KINDS))})", name=op.f("ck_event_kind")),
        sa.ForeignKeyConstraint(
            ["device_id"], ["device.id"], name=op.f("fk_event_device_id_device"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["sweep_id"], ["sweep.id"], name=op.f("fk_event_sweep_id_sweep"), ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_event_run_id_run"), ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_event")),
    )
    op.create_index(op.f("ix_event_sweep_id"), "event", ["sweep_id"])
    op.create_index(op.f("ix_event_run_id"), "event", ["run_id"])


def downgrade() -> None:
    """Remove the table."""
    op.drop_table("event")
