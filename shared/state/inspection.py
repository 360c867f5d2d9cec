"""Checks of the masters' database before a master uses it. They change nothing."""

from __future__ import annotations

from sqlalchemy import Connection, text

from ..database.inspection import Problem, schema_problems, server_problems
from ..database.postgresql import DatabaseLimits
from .database import StateAway, StateDatabase
from .tables import SCHEMA

_LIMITS = DatabaseLimits(connect_timeout=5)
_BACKUP = "Back it up first (pg_dump): an older version of this program does not read it afterwards."
_HINT = "The setting is state: postgresql://USER@HOST/DATABASE. Does psql with that address answer, from this account?"


def inspect_state(address: str) -> list[Problem]:
    """Return the problems of the database of the setting `state`. Blocks."""
    try:
        return StateDatabase.open(address, _LIMITS, keep_alive=False).look(_problems)
    except StateAway as err:
        return [Problem("error", f"{err.message}: {err.reason}", _HINT)]


def _problems(connection: Connection) -> list[Problem]:
    name = f"the masters' database {connection.scalar(text('SELECT current_database()'))}"
    return [*server_problems(connection, name, "state"), *schema_problems(connection, SCHEMA, name, "state", _BACKUP)]
