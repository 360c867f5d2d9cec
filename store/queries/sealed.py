"""Looks up the sealed parameters of resources, which no query can ask for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import select

from ..database.engine import Database
from ..database.tables import parameter_sets
from ..jsontext import Json

_TOGETHER = 500  # hashes in a statement


@dataclass(frozen=True, slots=True)
class SealedParameters:
    """The sealed parameters in a database."""

    database: Database

    async def find(self, hashes: Sequence[str]) -> dict[str, Json]:
        """Return those of the resources with these hashes; nothing for a resource without any. DatabaseUnavailable."""
        found: dict[str, Json] = {}
        statement = select(parameter_sets.c.hash, parameter_sets.c.sealed).where(parameter_sets.c.sealed.is_not(None))
        async with self.database.reading() as connection:
            for start in range(0, len(hashes), _TOGETHER):
                wanted = parameter_sets.c.hash.in_(hashes[start : start + _TOGETHER])
                found.update((digest, sealed) for digest, sealed in await connection.execute(statement.where(wanted)))
        return found
