"""Orders to run, and the nodes that they are for."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, DateTime, ForeignKey, Text

revision = "003"
down_revision = "002"


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "state_orders",
        Column("id", Text, primary_key=True),
        Column("body", Text, nullable=False),
        Column("concurrency", BigInteger, nullable=False),
        Column("follow", Boolean, nullable=False),
        Column("ends", DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "state_order_nodes",
        Column("id", Text, ForeignKey("state_orders.id", ondelete="CASCADE"), primary_key=True),
        Column("node", Text, primary_key=True),
        Column("state", Text, nullable=False),
        Column("result", Text),
    )
