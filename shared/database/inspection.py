"""Checks of a database before it is used. They change nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, text

from .schema import ANOTHER_ENCODING, NEWER, Schema, UnknownSchema, encoding_problem


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault because of which a database cannot be used (error), or that the administrator should know (warning), with its remedy."""

    severity: Literal["error", "warning"]
    message: str
    hint: str = ""


def server_problems(connection: Connection, name: str, setting: str) -> Iterator[Problem]:
    """
    Yield the faults that make a PostgreSQL database unusable, independent of its tables.

    Args:
        name: The database, as messages call it.
        setting: The setting that names it.
    """
    if connection.scalar(text("SELECT pg_is_in_recovery()")):
        yield Problem(
            "error", f"{_capitalized(name)} is on a standby, which cannot be written", f"Name the primary in the setting {setting}."
        )
    if problem := encoding_problem(connection):
        yield Problem("error", f"{_capitalized(name)} {problem}", f"{_capitalized(ANOTHER_ENCODING)}.")
    if not connection.scalar(text("SELECT coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)")):
        user = connection.scalar(text("SELECT current_user"))
        yield Problem("error", f"{user} may not make tables in {name}", f"As its owner: GRANT CREATE ON SCHEMA public TO {user}.")


def schema_problems(connection: Connection, schema: Schema, name: str, setting: str, backup: str) -> Iterator[Problem]:
    """
    Yield the problems of a database's tables; there are none without tables, which the first use makes.

    Args:
        backup: The advice before tables are migrated.
    """
    try:
        version = schema.version(connection)
    except UnknownSchema as err:
        yield Problem("error", f"{name}: {err}", f"The setting is {setting}.")
        return
    if version in (None, schema.newest):
        return
    if schema.can_be_upgraded(version or ""):
        yield Problem("warning", f"{name}: the tables are of version {version}, and the next start brings them to {schema.newest}", backup)
    else:
        yield Problem("error", f"{name}: {NEWER}", f"Its tables are of version {version}, this program's of {schema.newest}.")


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]
