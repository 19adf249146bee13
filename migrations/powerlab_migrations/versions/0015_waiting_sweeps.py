"""Events of sweeps whose devices wait, for a reboot or until they are cool enough."""

from __future__ import annotations

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_NEW = "sweep.waiting"
_KINDS = (
    *("sweep.created", "sweep.started", _NEW, "sweep.queued", "sweep.paused", "sweep.cancelled", "sweep.finished"),
    *("sweep.failed", "run.stored", "device.enrolled", "device.seen"),
)


def upgrade() -> None:
    """Let there be such events."""
    _allow(_KINDS)


def downgrade() -> None:
    """Remove them: a server of before does not know what they are."""
    op.execute(f"DELETE FROM event WHERE kind = '{_NEW}'")  # noqa: S608
    _allow(tuple(kind for kind in _KINDS if kind != _NEW))


def _allow(kinds: tuple[str, ...]) -> None:
    with op.batch_alter_table("event") as table:
        table.drop_constraint(op.f("ck_event_kind"), type_="check")
        table.create_check_constraint(op.f("ck_event_kind"), f"kind IN ({', '.join(map(repr, kinds))})")
