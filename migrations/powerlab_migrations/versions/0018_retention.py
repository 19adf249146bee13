"""Trace chunks lie by the months in which their runs arrived, and what is kept no longer is written down."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True)
_COLUMNS = (
    *("id", "run_id", "rail_id", "part", "position", "t_first_ns", "t_last_ns", "sample_count", "value_min"),
    *("value_max", "value_sum", "read_cost_ns", "codec", "sha256", "payload", "uri"),
)
_PLACE = ("run_id", "rail_id", "part", "position")
_MONTH = "received_at"
_OWN_MONTHS = """
DO $$
DECLARE first timestamp;
BEGIN
    FOR first IN SELECT DISTINCT date_trunc('month', received_at AT TIME ZONE 'UTC') FROM run LOOP
        EXECUTE format(
            'CREATE TABLE %I PARTITION OF trace_chunk FOR VALUES FROM (%L) TO (%L)',
            'trace_chunk_' || to_char(first, 'YYYYMM'),
            first AT TIME ZONE 'UTC', (first + interval '1 month') AT TIME ZONE 'UTC'
        );
    END LOOP;
END $$"""


def upgrade() -> None:
    """Make the table of chunks anew and move its rows; each says when its run arrived."""
    op.create_table(
        "retirement",
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("before", _TIME, nullable=False),
        sa.Column("retired_at", _TIME, nullable=False),
        sa.Column("last_id", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('traces', 'events', 'audit')", name=op.f("ck_retirement_kind")),
        sa.CheckConstraint("last_id >= 0", name=op.f("ck_retirement_last_id")),
        sa.PrimaryKeyConstraint("kind", name=op.f("pk_retirement")),
    )
    _aside(op.f("uq_trace_chunk_run_id_rail_id_part_position"))
    _make(by_month=True)
    if _on_postgresql():
        op.execute("CREATE TABLE trace_chunk_default PARTITION OF trace_chunk DEFAULT")
        op.execute(_OWN_MONTHS)
    own = ", ".join(f"old.{name}" for name in _COLUMNS)
    op.execute(
        f"INSERT INTO trace_chunk ({', '.join(_COLUMNS)}, {_MONTH}) SELECT {own}, run.received_at "  # noqa: S608
        "FROM trace_chunk_old AS old JOIN run ON run.id = old.run_id"
    )
    _done()


def downgrade() -> None:
    """Put the rows into a plain table; what was retired stays away."""
    _aside(op.f("uq_trace_chunk_received_at_run_id_rail_id_part_position"))
    _make(by_month=False)
    names = ", ".join(_COLUMNS)
    op.execute(f"INSERT INTO trace_chunk ({names}) SELECT {names} FROM trace_chunk_old")  # noqa: S608
    _done()
    op.drop_table("retirement")


def _on_postgresql() -> bool:
    return op.get_context().dialect.name == "postgresql"


def _aside(unique: str) -> None:
    """Rename the table; its indexes and its sequence, whose names PostgreSQL wants to be unique, make room."""
    op.rename_table("trace_chunk", "trace_chunk_old")
    if _on_postgresql():
        for name in ("pk_trace_chunk", unique):
            op.drop_constraint(name, "trace_chunk_old")
        op.execute("ALTER SEQUENCE trace_chunk_id_seq RENAME TO trace_chunk_old_id_seq")


def _make(*, by_month: bool) -> None:
    """Make the table, with or without months; a month stands before the samples, which SQLite reads in order."""
    on_postgresql = _on_postgresql()
    month = [_MONTH] if by_month else []
    if by_month:
        run = sa.ForeignKeyConstraint(
            ["run_id", _MONTH], ["run.id", f"run.{_MONTH}"], name=op.f("fk_trace_chunk_run_id_received_at_run")
        )
    else:
        run = sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_trace_chunk_run_id_run"))
    op.create_table(
        "trace_chunk",
        sa.Column("id", _KEY, nullable=False, autoincrement=True),
        sa.Column("run_id", sa.String(36), nullable=False),
        *(sa.Column(name, _TIME, nullable=False) for name in month),
        sa.Column("rail_id", _KEY, nullable=False),
        sa.Column("part", sa.String(20), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("t_first_ns", sa.BigInteger(), nullable=False),
        sa.Column("t_last_ns", sa.BigInteger(), nullable=False),
        sa.Column("sample_count", sa.Integer(), nullable=False),
        sa.Column("value_min", sa.Double(), nullable=False),
        sa.Column("value_max", sa.Double(), nullable=False),
        sa.Column("value_sum", sa.Double(), nullable=False),
        sa.Column("read_cost_ns", sa.BigInteger(), nullable=False),
        sa.Column("codec", sa.String(40), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.Column("uri", sa.String(1000), nullable=True),
        sa.CheckConstraint("part IN ('run', 'idle-before', 'idle-after')", name=op.f("ck_trace_chunk_part")),
        sa.CheckConstraint("(payload IS NULL) <> (uri IS NULL)", name=op.f("ck_trace_chunk_place")),
        sa.CheckConstraint("sample_count >= 1", name=op.f("ck_trace_chunk_sample_count")),
        sa.CheckConstraint("t_first_ns <= t_last_ns", name=op.f("ck_trace_chunk_times")),
        sa.CheckConstraint("value_min <= value_max", name=op.f("ck_trace_chunk_values")),
        sa.ForeignKeyConstraint(["rail_id"], ["rail.id"], name=op.f("fk_trace_chunk_rail_id_rail")),
        run,
        sa.PrimaryKeyConstraint("id", *(month if on_postgresql else ()), name=op.f("pk_trace_chunk")),
        sa.UniqueConstraint(*month, *_PLACE, name=op.f("_".join(["uq_trace_chunk", *month, *_PLACE]))),
        postgresql_partition_by=f"RANGE ({_MONTH})" if by_month else None,
    )


def _done() -> None:
    """Remove the old table; the new one's identifiers go on where its ended."""
    op.drop_table("trace_chunk_old")
    if _on_postgresql():
        op.execute("SELECT setval('trace_chunk_id_seq', greatest(1, (SELECT max(id) FROM trace_chunk)), true)")
