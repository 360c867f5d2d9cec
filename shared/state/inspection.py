"""
`python -m shared.state.inspection`: the checks of the masters' database before a master starts.

The settings come in JSON over standard input; the problems go to standard output, as a list in JSON. It runs as the account of the master.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from sqlalchemy import Connection, text

from ..database.inspection import Problem, schema_problems, server_problems
from ..database.postgresql import DatabaseLimits
from ..settings import MasterSettings
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
        return [Problem("error", err.message, _HINT)]


def _problems(connection: Connection) -> list[Problem]:
    name = f"the masters' database {connection.scalar(text('SELECT current_database()'))}"
    return [*server_problems(connection, name, "state"), *schema_problems(connection, SCHEMA, name, "state", _BACKUP)]


def main() -> int:
    """Print the problems; return 0."""
    settings = MasterSettings.model_validate(json.loads(sys.stdin.buffer.read()))
    json.dump([asdict(problem) for problem in inspect_state(settings.state)], sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
