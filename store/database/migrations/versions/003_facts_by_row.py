"""Facts in rows of their own on SQLite, apart from the keys by which they are found; an index by name that has the nodes, too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "003"
down_revision = "002"


def upgrade() -> None:
    """Rewrite the table on SQLite, and the index."""
    op.drop_index("ix_facts_name", "facts")
    if op.get_bind().dialect.name == "sqlite":
        op.rename_table("facts", "facts_by_key")
        op.create_table(
            "facts",
            sa.Column("node_id", sa.Integer(), nullable=False),
            sa.Column("name", sa.Text(), nullable=False),
            sa.Column("value", sa.Text(), nullable=False),
            sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_facts_node_id", ondelete="CASCADE"),
            sa.PrimaryKeyConstraint("node_id", "name", name="pk_facts"),
        )
        op.execute("INSERT INTO facts (node_id, name, value) SELECT node_id, name, value FROM facts_by_key")
        op.drop_table("facts_by_key")
    op.create_index("ix_facts_name", "facts", ["name", "node_id"])
