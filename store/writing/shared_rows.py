"""
Rows that many nodes share: names of environments and producers, paths of facts, packages, parameters of resources.

A batch looks up all that it needs at once and inserts what is missing, in the same order as every other batch; thus of two batches that
run at the same time one may wait for rows of the other, but never both. The rows are locked against being deleted as unused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Column, Connection, Table

from ..commands.commands import ResourceEntry
from ..database.bulk import BulkInsert, BulkLookup
from ..database.columns import JsonText
from ..database.tables import environments, fact_paths, packages, parameter_sets, producers
from .leaves import Leaf
from .nodes import StartAgain

_MAX_NAMES = 10_000

MAX_NEW = 5_000
"""Shared rows of a kind that SQLite inserts in one transaction. They have no effect until another row refers to them."""

Package = tuple[str, str, str]

_Key = tuple[str, ...]


class _SharedTable:
    """The statements that find rows of a table by their unique columns, and insert them."""

    def __init__(self, table: Table, *keys: Column[str]) -> None:
        self.lookup = BulkLookup(table, *keys)
        self.new = BulkInsert(table, ignore_existing=True)


_ENVIRONMENTS = _SharedTable(environments, environments.c.name)
_PRODUCERS = _SharedTable(producers, producers.c.name)
_PARAMETER_SETS = _SharedTable(parameter_sets, parameter_sets.c.hash)
_PACKAGES = _SharedTable(packages, packages.c.name, packages.c.version, packages.c.provider)
_PATHS = _SharedTable(fact_paths, fact_paths.c.name, fact_paths.c.pointer, fact_paths.c.type)


@dataclass(slots=True)
class NameIds:
    """The ids of environments and producers that earlier batches have met."""

    environments: dict[str, int] = field(default_factory=dict)
    producers: dict[str, int] = field(default_factory=dict)

    def keep(self, needed: SharedRows) -> None:
        """Remember the ids that a batch has met, after it has been committed."""
        for known, new in ((self.environments, needed.environments), (self.producers, needed.producers)):
            # Emptied instead of bounded: environments are few, unless a site makes one for each branch.
            if len(known) > _MAX_NAMES:
                known.clear()
            known.update({name: id for name, id in new.items() if id})

    def forget(self) -> None:
        """Forget all ids, for one of them is no longer there."""
        self.environments.clear()
        self.producers.clear()


@dataclass(slots=True)
class SharedRows:
    """The shared rows that a batch needs, and their ids once they are resolved."""

    names: NameIds
    environments: dict[str, int] = field(default_factory=dict)
    producers: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, ResourceEntry] = field(default_factory=dict)
    """The resources whose parameters are needed, by their hashes."""
    packages: set[Package] = field(default_factory=set)
    leaves: set[Leaf] = field(default_factory=set)
    parameter_ids: dict[str, int] = field(default_factory=dict)
    package_ids: dict[_Key, int] = field(default_factory=dict)

    def need_names(self, environment: str | None, producer: str | None) -> None:
        """Say that the rows of an environment and of a producer are needed."""
        if environment is not None:
            self.environments[environment] = self.names.environments.get(environment, 0)
        if producer is not None:
            self.producers[producer] = self.names.producers.get(producer, 0)

    def resolve(self, connection: Connection) -> None:
        """Find the ids of all needed rows, and insert missing ones; raise Unresolved."""
        for table, ids in ((_ENVIRONMENTS, self.environments), (_PRODUCERS, self.producers)):
            found = _resolve(connection, table, [(name,) for name, id in ids.items() if not id], lambda key: {"name": key[0]})
            ids.update({name: id for (name,), id in found.items()})
        found = _resolve(connection, _PARAMETER_SETS, [(key,) for key in self.parameters], self._parameter_row)
        self.parameter_ids.update({key: id for (key,), id in found.items()})
        self.package_ids.update(_resolve(connection, _PACKAGES, self.packages, _package_row))
        paths: dict[_Key, Leaf] = {leaf[:3]: leaf for leaf in self.leaves}
        _resolve(connection, _PATHS, paths, lambda key: _path_row(paths[key]))

    def _parameter_row(self, key: _Key) -> dict[str, object]:
        entry = self.parameters[key[0]]
        return {"hash": key[0], "parameters": entry.parameters, "sealed": entry.sealed}

    def environment_id(self, name: str | None) -> int | None:
        """Return the id of an environment; None where there is none."""
        return None if name is None else self.environments[name]

    def producer_id(self, name: str | None) -> int | None:
        """Return the id of a producer; None where there is none."""
        return None if name is None else self.producers[name]


class Unresolved(Exception):
    """Many shared rows are missing: too many for one transaction of SQLite."""

    def __init__(self, table: _SharedTable, rows: Sequence[Mapping[str, object]]) -> None:
        self._table = table
        self._rows = rows

    def write_in_slices(self) -> Generator[None, Connection, None]:
        """Insert the rows; each connection that is sent is one transaction."""
        for start in range(0, len(self._rows), MAX_NEW):
            connection = yield
            self._table.new.insert(connection, self._rows[start : start + MAX_NEW])


def _package_row(key: _Key) -> dict[str, object]:
    return {"name": key[0], "version": key[1], "provider": key[2]}


def _path_row(leaf: Leaf) -> dict[str, object]:
    return {
        "path": JsonText(leaf.path),
        "type": leaf.type,
        "name": leaf.name,
        "depth": leaf.depth,
        "pointer": leaf.pointer,
    }


def _resolve(
    connection: Connection, table: _SharedTable, keys: Collection[_Key], row: Callable[[_Key], Mapping[str, object]]
) -> dict[_Key, int]:
    if not keys:
        return {}
    # The same order in every batch, which rules out deadlocks.
    wanted = sorted(keys)
    ids = table.lookup.find(connection, wanted)
    missing = [key for key in wanted if key not in ids]
    if connection.dialect.name == "sqlite" and len(missing) > MAX_NEW:
        raise Unresolved(table, [row(key) for key in missing])
    if missing:
        table.new.insert(connection, [row(key) for key in missing])
        ids.update(table.lookup.find(connection, missing))
    if len(ids) < len(wanted):
        raise StartAgain  # somebody has just deleted one of them as unused
    return ids
