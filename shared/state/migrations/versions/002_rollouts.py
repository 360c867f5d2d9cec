"""Rollouts, and what deployments and environments say of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "002"
down_revision = "001"


def upgrade() -> None:
    """Add the columns and tables."""
    op.add_column("state_environments", sa.Column("is_rolling", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("state_deployments", sa.Column("is_rollout", sa.Boolean, nullable=False, server_default=sa.false()))
    op.create_table(
        "state_rollouts",
        sa.Column("environment", sa.Text, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("is_active", sa.Boolean, nullable=False),
        sa.Column("is_stopped", sa.Boolean, nullable=False),
        sa.Column("before", sa.Text, nullable=False),
        sa.Column("after", sa.Text, nullable=False),
        sa.Column("wave", sa.Integer, nullable=False),
        sa.Column("share", sa.Double, nullable=False),
        sa.Column("acted_by", sa.Text),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "state_rollout_nodes",
        sa.Column("environment", sa.Text, sa.ForeignKey("state_rollouts.environment", ondelete="CASCADE"), primary_key=True),
        sa.Column("certname", sa.Text, primary_key=True),
        sa.Column("revision", sa.BigInteger, nullable=False),
        sa.Column("wave", sa.Integer, nullable=False),
        sa.Column("touched", sa.Boolean, nullable=False),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_table(
        "state_rollout_predictions",
        sa.Column("environment", sa.Text, primary_key=True),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
