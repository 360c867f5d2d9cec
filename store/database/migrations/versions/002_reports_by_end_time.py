"""An index for the newest reports by the end of their runs, by which Puppetboard sorts them."""

from __future__ import annotations

from alembic import op

revision = "002"
down_revision = "001"


def upgrade() -> None:
    """Create the index."""
    op.create_index("ix_reports_end_time", "reports", ["end_time"])
