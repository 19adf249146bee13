"""Reservations and maintenance windows of devices, and how long jobs are expected to take."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)
# GiST knows ranges and no plain text without an extension; a range of one number is as good as that number. Two devices
# of the same 64-bit hash would exclude each other, which is refused and not harmful.
_ONE = "hashtextextended(device_id || kind, 0)::numeric"
_EXCLUDE = (
    "ALTER TABLE booking ADD CONSTRAINT ex_booking_overlap EXCLUDE USING gist "
    f"(numrange({_ONE}, {_ONE}, '[]') WITH &&, tstzrange(starts_at, ends_at) WITH &&)"
)
_TRIGGER = (
    "CREATE TRIGGER ex_booking_overlap_{when} BEFORE {what} ON booking WHEN EXISTS (SELECT 1 FROM booking AS other "
    "WHERE other.device_id = NEW.device_id AND other.kind = NEW.kind AND other.id IS NOT NEW.id "
    "AND other.starts_at < NEW.ends_at AND NEW.starts_at < other.ends_at) "
    "BEGIN SELECT RAISE(ABORT, 'ex_booking_overlap'); END"
)


def upgrade() -> None:
    """Make the table, which holds no two of a kind that overlap on a device; no job of before has an estimate."""
    op.create_table(
        "booking",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("holder", sa.String(length=200), nullable=True),
        sa.Column("starts_at", _TIME, nullable=False),
        sa.Column("ends_at", _TIME, nullable=False),
        sa.Column("reason", sa.String(length=200), nullable=False),
        sa.Column("made_by", sa.String(length=200), nullable=False),
        sa.Column("made_at", _TIME, nullable=False),
        sa.CheckConstraint("kind IN ('reservation', 'maintenance')", name=op.f("ck_booking_kind")),
        sa.CheckConstraint("(kind = 'reservation') = (holder IS NOT NULL)", name=op.f("ck_booking_holder")),
        sa.CheckConstraint("ends_at > starts_at", name=op.f("ck_booking_times")),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_booking_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_booking")),
    )
    op.create_index(op.f("ix_booking_device_id_booking_ends_at"), "booking", ["device_id", "ends_at"])
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_EXCLUDE)
    else:
        op.execute(_TRIGGER.format(when="insert", what="INSERT"))
        op.execute(_TRIGGER.format(when="update", what="UPDATE"))
    with op.batch_alter_table("job") as table:
        table.add_column(sa.Column("expected_s", sa.Double(), nullable=True))
        table.create_check_constraint(op.f("ck_job_expected_s"), "expected_s >= 0")


def downgrade() -> None:
    """Remove it: every device is everybody's."""
    with op.batch_alter_table("job") as table:
        table.drop_constraint(op.f("ck_job_expected_s"), type_="check")
        table.drop_column("expected_s")
    op.drop_table("booking")
