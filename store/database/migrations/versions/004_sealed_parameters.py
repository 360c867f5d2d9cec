"""Parameters of exported resources that only masters can open."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "004"
down_revision = "003"


def upgrade() -> None:
    """Add the column."""
    op.add_column("parameter_sets", sa.Column("sealed", sa.Text().with_variant(JSONB(), "postgresql")))
