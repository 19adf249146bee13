"""Sweeps can be paused, cancelled, asked for twice without being made twice, and repeated; jobs have a priority."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_HELD = "deadline IS NULL OR state IN ('running', 'paused', 'cancelled')"
_OVER = "state IN ('done', 'failed', 'cancelled')"
_STATES = "'queued', 'running', {}'done', 'failed'"


def upgrade() -> None:
    """Add the columns; what there is was asked for by the operator, who was the only one who could."""
    with op.batch_alter_table("sweep") as table:
        table.add_column(sa.Column("submitter", sa.String(length=200), nullable=False, server_default="operator"))
        table.add_column(sa.Column("request_key", sa.String(length=200), nullable=True))
        table.add_column(sa.Column("cloned_from", sa.String(length=36), nullable=True))
    with op.batch_alter_table("sweep") as table:
        table.alter_column("submitter", existing_type=sa.String(200), existing_nullable=False, server_default=None)
        table.create_unique_constraint(op.f("uq_sweep_submitter_request_key"), ["submitter", "request_key"])
        table.create_foreign_key(op.f("fk_sweep_cloned_from_sweep"), "sweep", ["cloned_from"], ["id"])
    with op.batch_alter_table("job") as table:
        table.add_column(sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
        table.add_column(sa.Column("leased_at", sa.DateTime(timezone=True), nullable=True))
    op.execute(f"UPDATE job SET finished_at = created_at WHERE finished_at IS NULL AND {_OVER}")  # noqa: S608
    op.execute(f"UPDATE job SET finished_at = NULL WHERE NOT ({_OVER})")  # noqa: S608
    with op.batch_alter_table("job") as table:
        table.alter_column("priority", existing_type=sa.Integer(), existing_nullable=False, server_default=None)
        table.drop_constraint(op.f("ck_job_state"), type_="check")
        table.drop_constraint(op.f("ck_job_deadline"), type_="check")
        states = _STATES.format("'paused', 'cancelled', ")
        table.create_check_constraint(op.f("ck_job_state"), f"state IN ({states})")
        table.create_check_constraint(
            op.f("ck_job_deadline"), f"(state <> 'running' OR deadline IS NOT NULL) AND ({_HELD})"
        )
        table.create_check_constraint(op.f("ck_job_finished_at"), f"(finished_at IS NOT NULL) = ({_OVER})")
        table.create_check_constraint(op.f("ck_job_priority"), "priority BETWEEN -1000 AND 1000")
        table.create_index(op.f("ix_job_created_at_job_id"), ["created_at", "id"])


def downgrade() -> None:
    """Remove them; a paused or cancelled sweep becomes a failed one, so that no device begins it unasked."""
    op.execute(
        "UPDATE job SET state = 'failed', deadline = NULL, finished_at = COALESCE(finished_at, created_at) "
        "WHERE state IN ('paused', 'cancelled')"
    )
    with op.batch_alter_table("job") as table:
        table.drop_index(op.f("ix_job_created_at_job_id"))
        for name in ("state", "deadline", "finished_at", "priority"):
            table.drop_constraint(op.f(f"ck_job_{name}"), type_="check")
        table.drop_column("leased_at")
        table.drop_column("priority")
        table.create_check_constraint(op.f("ck_job_state"), f"state IN ({_STATES.format('')})")
        table.create_check_constraint(op.f("ck_job_deadline"), "(state = 'running') = (deadline IS NOT NULL)")
    with op.batch_alter_table("sweep") as table:
        table.drop_constraint(op.f("fk_sweep_cloned_from_sweep"), type_="foreignkey")
        table.drop_constraint(op.f("uq_sweep_submitter_request_key"), type_="unique")
        for column in ("cloned_from", "request_key", "submitter"):
            table.drop_column(column)
