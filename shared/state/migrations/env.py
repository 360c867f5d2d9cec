"""The environment of Alembic's scripts: it gives them the connection that `shared.database.schema` has opened."""

from __future__ import annotations

from alembic import context

attributes = context.config.attributes
context.configure(connection=attributes["connection"], version_table=attributes["version_table"], transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
