"""Rollouts, and what deployments and environments say of them."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Double, ForeignKey, Integer, LargeBinary, Text, false

revision = "002"
down_revision = "001"


def upgrade() -> None:
    """Add the columns and tables."""
    op.add_column("state_environments", Column("is_rolling", Boolean, nullable=False, server_default=false()))
    op.add_column("state_deployments", Column("is_rollout", Boolean, nullable=False, server_default=false()))
    op.create_table(
        "state_rollouts",
        Column("environment", Text, primary_key=True),
        Column("revision", BigInteger, nullable=False),
        Column("is_active", Boolean, nullable=False),
        Column("is_stopped", Boolean, nullable=False),
        Column("before", Text, nullable=False),
        Column("after", Text, nullable=False),
        Column("wave", Integer, nullable=False),
        Column("share", Double, nullable=False),
        Column("acted_by", Text),
        Column("body", LargeBinary, nullable=False),
    )
    op.create_table(
        "state_rollout_nodes",
        Column("environment", Text, ForeignKey("state_rollouts.environment", ondelete="CASCADE"), primary_key=True),
        Column("certname", Text, primary_key=True),
        Column("revision", BigInteger, nullable=False),
        Column("wave", Integer, nullable=False),
        Column("touched", Boolean, nullable=False),
        Column("body", LargeBinary),
    )
    op.create_table(
        "state_rollout_predictions",
        Column("environment", Text, primary_key=True),
        Column("body", LargeBinary, nullable=False),
    )
