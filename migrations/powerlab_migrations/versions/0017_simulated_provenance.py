"""An index of both together: runs of simulated boards whose power is not simulated are hardly ever there."""

from __future__ import annotations

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_NAME = "ix_run_simulated_run_power_provenance_run_received_at"


def upgrade() -> None:
    """Make it."""
    op.create_index(op.f(_NAME), "run", ["simulated", "power_provenance", "received_at"])


def downgrade() -> None:
    """Remove it."""
    op.drop_index(op.f(_NAME), "run")
