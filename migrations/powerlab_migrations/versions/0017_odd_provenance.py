"""A short index of what is hardly ever there: runs whose power is simulated and their device not, or the reverse."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_NAME = "ix_run_odd_provenance"
_ODD = sa.text("simulated <> (power_provenance = 'simulated')")


def upgrade() -> None:
    """Make it."""
    op.create_index(op.f(_NAME), "run", ["received_at", "id"], sqlite_where=_ODD, postgresql_where=_ODD)


def downgrade() -> None:
    """Remove it."""
    op.drop_index(op.f(_NAME), "run")
