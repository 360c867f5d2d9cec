"""
Paths of facts that no node has any more.

The paths of one fact are looked for in the values of all nodes until each of them has turned up, which it mostly does after few nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial

from sqlalchemy import Connection, delete, select

from ..commands.commands import Json
from ..database.async_engine import AsyncConnection
from ..database.engine import Database
from ..database.tables import fact_paths, facts
from ..writing.leaves import leaves

_VALUES = 100
"""Values of a fact that are looked at at once."""

_Paths = dict[tuple[str, str], int]
"""Ids of paths by pointer and type."""


def _drop_used(paths: _Paths, name: str, values: Iterable[Json]) -> None:
    """Remove the paths that occur in some values of a fact."""
    for value in values:
        for leaf in leaves(name, value):
            paths.pop((leaf.pointer, leaf.type), None)


async def collect_paths(database: Database) -> int:
    """Delete the unused paths, and return how many."""
    async with database.reading() as connection:
        names = list(await connection.scalars(select(fact_paths.c.name).distinct()))
    total = 0
    for name in names:
        async with database.reading() as connection:
            unused = await _unused_paths(connection, name)
        if unused:
            total += await database.write(partial(_delete, name, unused))
    return total


async def _unused_paths(connection: AsyncConnection, name: str) -> _Paths:
    known = await connection.execute(select(fact_paths.c.pointer, fact_paths.c.type, fact_paths.c.id).where(fact_paths.c.name == name))
    paths = {(pointer, type): id for pointer, type, id in known}
    after = 0
    while paths:
        of_name = (facts.c.name == name) & (facts.c.node_id > after)
        statement = select(facts.c.node_id, facts.c.value).where(of_name).order_by(facts.c.node_id).limit(_VALUES)
        rows = (await connection.execute(statement)).all()
        if not rows:
            break
        await asyncio.to_thread(_drop_used, paths, name, [row.value for row in rows])
        after = rows[-1].node_id
    return paths


def _delete(name: str, paths: _Paths, connection: Connection) -> int:
    """Delete those paths of a fact that no command has used in between."""
    ids = sorted(paths.values())
    locked = set(connection.scalars(select(fact_paths.c.id).where(fact_paths.c.id.in_(ids)).with_for_update(skip_locked=True)))
    paths = {key: id for key, id in paths.items() if id in locked}
    rows = connection.execute(select(facts.c.value).where(facts.c.name == name).execution_options(yield_per=_VALUES))
    _drop_used(paths, name, rows.scalars())
    if not paths:
        return 0
    return connection.execute(delete(fact_paths).where(fact_paths.c.id.in_(sorted(paths.values())))).rowcount
