"""One table for every token, agents' and people's; a key that signs the sessions of the dashboards."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

BIG_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
LIVE = sa.text("revoked_at IS NULL")
_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Make the tables, and move the agents' tokens over; each device keeps the newest of those that still hold."""
    op.create_table(
        "token",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("role", sa.String(length=20), nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=True),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("expires_at", _TIME, nullable=True),
        sa.Column("revoked_at", _TIME, nullable=True),
        sa.Column("last_used_at", _TIME, nullable=True),
        sa.CheckConstraint("role IN ('viewer', 'operator', 'admin', 'agent')", name=op.f("ck_token_role")),
        sa.CheckConstraint("(role = 'agent') = (device_id IS NOT NULL)", name=op.f("ck_token_agent_has_device")),
        sa.CheckConstraint("expires_at > created_at", name=op.f("ck_token_expiry")),
        sa.CheckConstraint("length(sha256) = 64 AND name <> ''", name=op.f("ck_token_not_empty")),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_token_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_token")),
        sa.UniqueConstraint("sha256", name=op.f("uq_token_sha256")),
    )
    newest = "SELECT MAX(id) FROM agent_token WHERE revoked_at IS NULL GROUP BY device_id"
    op.execute(
        "UPDATE agent_token SET revoked_at = created_at "  # noqa: S608
        f"WHERE revoked_at IS NULL AND id NOT IN ({newest})"
    )
    op.execute(
        "INSERT INTO token (name, role, device_id, sha256, created_at, revoked_at) "
        "SELECT 'device ' || device_id, 'agent', device_id, sha256, created_at, revoked_at FROM agent_token ORDER BY id"
    )
    op.create_index(op.f("ix_token_device_id"), "token", ["device_id"])
    op.create_index("uq_token_live_name", "token", ["name"], unique=True, sqlite_where=LIVE, postgresql_where=LIVE)
    op.drop_table("agent_token")
    key = op.create_table(
        "server_key",
        sa.Column("purpose", sa.String(length=40), nullable=False),
        sa.Column("secret", sa.String(length=64), nullable=False),
        sa.CheckConstraint("length(secret) = 64", name=op.f("ck_server_key_secret")),
        sa.PrimaryKeyConstraint("purpose", name=op.f("pk_server_key")),
    )
    op.bulk_insert(key, [{"purpose": "sessions", "secret": secrets.token_hex(32)}])


def downgrade() -> None:
    """Move the agents' tokens back; people's tokens are lost, and everybody is logged out."""
    op.drop_table("server_key")
    op.create_table(
        "agent_token",
        sa.Column("id", BIG_KEY, nullable=False),
        sa.Column("device_id", sa.String(length=36), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("revoked_at", _TIME, nullable=True),
        sa.ForeignKeyConstraint(["device_id"], ["device.id"], name=op.f("fk_agent_token_device_id_device")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agent_token")),
        sa.UniqueConstraint("sha256", name=op.f("uq_agent_token_sha256")),
    )
    op.execute(
        "INSERT INTO agent_token (device_id, sha256, created_at, revoked_at) "
        "SELECT device_id, sha256, created_at, revoked_at FROM token WHERE role = 'agent' ORDER BY id"
    )
    op.create_index(op.f("ix_agent_token_device_id"), "agent_token", ["device_id"])
    op.drop_table("token")
