"""How many runs and samples every device has stored, and its newest run, without reading them all."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_NEWEST = """
    SELECT late.id FROM run AS late JOIN sweep AS own ON own.id = late.sweep_id
    WHERE own.device_id = sweep.device_id AND late.verdict = run.verdict
    ORDER BY late.received_at DESC, late.id DESC LIMIT 1"""
_SAMPLES = "SELECT run_id, sum(sample_count) AS sample_count FROM trace_chunk GROUP BY run_id"


def upgrade() -> None:
    """Make the table and count what is there."""
    op.create_table(
        "device_tally",
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("verdict", sa.String(length=20), nullable=False),
        sa.Column("run_count", sa.BigInteger(), nullable=False),
        sa.Column("sample_count", sa.BigInteger(), nullable=False),
        sa.Column("newest_run_id", sa.String(length=36), nullable=True),
        sa.CheckConstraint("verdict IN ('valid', 'flagged', 'void', 'failed')", name=op.f("ck_device_tally_verdict")),
        sa.CheckConstraint("run_count >= 1 AND sample_count >= 0", name=op.f("ck_device_tally_counts")),
        sa.ForeignKeyConstraint(
            ["device_id"], ["device.id"], name=op.f("fk_device_tally_device_id_device"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["newest_run_id"], ["run.id"], name=op.f("fk_device_tally_newest_run_id_run"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("device_id", "verdict", name=op.f("pk_device_tally")),
    )
    op.execute(
        "INSERT INTO device_tally (device_id, verdict, run_count, sample_count, newest_run_id) "  # noqa: S608
        f"SELECT sweep.device_id, run.verdict, count(*), coalesce(sum(samples.sample_count), 0), ({_NEWEST}) "
        f"FROM run JOIN sweep ON sweep.id = run.sweep_id LEFT JOIN ({_SAMPLES}) AS samples ON samples.run_id = run.id "
        "GROUP BY sweep.device_id, run.verdict"
    )


def downgrade() -> None:
    """Remove the table; what it counts is still there to be counted."""
    op.drop_table("device_tally")
