"""Where the scripts begin: with the first tables. `shared.database.schema` gives an empty database the newest ones at once."""

from __future__ import annotations

from typing import NoReturn

from alembic.util import CommandError

revision = "001"
down_revision = None


def upgrade() -> NoReturn:
    """Refuse a database without a version of its tables."""
    raise CommandError("there are no older tables")
