"""Writing the catalog of a node: of resources and edges that it has already, only those that differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlalchemy import Connection, Text, bindparam, cast, insert, select, true, type_coerce

from ..commands.commands import ReplaceCatalog, ResourceEntry, ResourceName
from ..commands.hashes import catalog_hash, json_hash, resource_hash
from ..database.bulk import BulkDelete, BulkInsert, BulkUpdate
from ..database.columns import JsonText, json_text
from ..database.tables import RELATIONSHIPS, catalogs, edges, parameter_sets, resources, same_names
from ..jsontext import load_stored
from .nodes import NodeState
from .shared_rows import SharedRows

RELATIONSHIP_NUMBERS = {name: number for number, name in enumerate(RELATIONSHIPS)}

_STORED = {
    dialect: select(
        resources.c.id,
        resources.c.type,
        resources.c.title,
        resources.c.parameter_set_id,
        parameter_sets.c.hash,
        tags,
        resources.c.exported,
        resources.c.file,
        resources.c.line,
    )
    .join(parameter_sets, parameter_sets.c.id == resources.c.parameter_set_id)
    .where(resources.c.node_id == bindparam("node"))
    for dialect, tags in (("sqlite", type_coerce(resources.c.tags, Text)), ("postgresql", cast(resources.c.tags, Text)))
}

_IDS = select(resources.c.id, resources.c.type, resources.c.title).where(resources.c.node_id == bindparam("node"))

NEW_RESOURCES = BulkInsert(resources)

NEW_EDGES = BulkInsert(edges)

_CHANGED_RESOURCES = BulkUpdate(
    [resources.c.id], [column for column in resources.c if column.name not in ("id", "node_id", "type", "title")]
)

_CHANGED_PARAMETERS = BulkUpdate([resources.c.id], [resources.c.parameter_set_id])

REMOVED_RESOURCES = BulkDelete(resources.c.id)

_STORED_EDGES = (
    select(edges.c.source_id, edges.c.target_id, edges.c.relationship)
    .join(resources, resources.c.id == edges.c.source_id)
    .where(resources.c.node_id == bindparam("node"))
)

MAX_ROWS = 10_000
"""Resources, and edges, of a catalog that SQLite compares and changes in one transaction."""

MAX_BYTES = 8 * 2**20
"""Bytes of a catalog that SQLite compares and changes in one transaction."""

MAX_CHANGES = 5_000
"""Resources, and edges, that SQLite adds, changes and removes in one transaction."""

_MANY_ROWS = (
    select(true()).where(resources.c.node_id == bindparam("node")).offset(MAX_ROWS).limit(1),
    select(true())
    .select_from(resources.join(edges, edges.c.source_id == resources.c.id))
    .where(resources.c.node_id == bindparam("node"))
    .offset(MAX_ROWS)
    .limit(1),
)

_REMOVED_EDGES = BulkDelete(edges.c.source_id, edges.c.target_id, edges.c.relationship)

_CHANGED_CATALOGS = BulkUpdate([catalogs.c.node_id], [column for column in catalogs.c if column.name != "node_id"])


_OF_COMMAND = same_names(catalogs, ReplaceCatalog)


class _StoredResource(NamedTuple):
    id: int
    parameter_set_id: int
    hash: str
    tags: str
    exported: bool
    file: str | None
    line: int | None


class CatalogTooLarge(Exception):
    """A catalog is too large to be written in one transaction."""


class CatalogChange:
    """
    The difference between the catalog of a command and the stored one.

    Args:
        written_edges: The `edges_hash` of the new one, where its resources and edges are stored already.
    Raises:
        CatalogTooLarge: SQLite, on which all others wait for a transaction, would write too many rows in this one.
    """

    def __init__(self, connection: Connection, node: NodeState, shared: SharedRows, written_edges: str | None = None) -> None:
        assert node.catalog is not None
        self.node = node
        self.command, self.received = node.catalog
        command = self.command
        self.hash = command.hash or catalog_hash(command)
        self.edges_hash = node.edges_hash
        self.is_written = written_edges is not None
        self.changed: list[tuple[ResourceEntry, str, _StoredResource | None]] = []
        """Resources to be written, with their hashes and what is stored of them."""
        self.changed_parameters: list[tuple[int, str]] = []
        """The ids of resources of which nothing but the parameters has changed, with their hashes."""
        self.ids: dict[ResourceName, int] = {}
        self.removed: list[int] = []
        shared.need_names(command.environment, command.producer)
        # Nearly all catalogs are unchanged: then not a single resource is read.
        if self.hash != node.catalog_hash:
            if written_edges is None and connection.dialect.name == "sqlite" and _is_large(connection, node.id, command):
                raise CatalogTooLarge
            self.edges_hash = written_edges or edges_hash(command)
            if written_edges is None:
                self._compare_resources(connection, shared)
                _check_changes(connection, len(self.changed) + len(self.changed_parameters) + len(self.removed))

    def _compare_resources(self, connection: Connection, shared: SharedRows) -> None:
        stored = {} if self.node.catalog_hash is None else _stored_resources(connection, self.node.id)
        self.ids = {name: resource.id for name, resource in stored.items()}
        known = {resource.hash: resource.parameter_set_id for resource in stored.values()}
        # Parameter sets that the node has already need no look-up.
        shared.parameter_ids.update(known)
        for resource in self.command.resources:
            digest = resource_hash(resource.type, resource.title, resource.parameters, resource.sealed)
            # What remains in `stored` afterwards has to be removed.
            before = stored.pop((resource.type, resource.title), None)
            if (
                before is None
                or before.exported != resource.exported
                or before.line != resource.line
                or before.file != resource.file
                or before.tags != _tags_text(resource.tags)
            ):
                self.changed.append((resource, digest, before))
            elif before.hash != digest:
                self.changed_parameters.append((before.id, digest))
            else:
                continue
            if digest not in known:
                shared.parameters[digest] = resource
        self.removed = [resource.id for resource in stored.values()]

    def row(self, shared: SharedRows) -> dict[str, object]:
        """Return the row of `catalogs`."""
        command = self.command
        return {
            "node_id": self.node.id,
            "received": self.received,
            "environment_id": shared.environment_id(command.environment),
            "producer_id": shared.producer_id(command.producer),
            **{name: getattr(command, name) for name in _OF_COMMAND},
            "hash": self.hash,
            "edges_hash": self.edges_hash,
        }

    def changed_rows(self, shared: SharedRows) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        """Return the rows of resources to be changed, and of those to be added."""
        changed, added = [], []
        for resource, digest, before in self.changed:
            values = {
                "parameter_set_id": shared.parameter_ids[digest],
                **resource_values(resource),
            }
            if before is None:
                added.append({"node_id": self.node.id, "type": resource.type, "title": resource.title, **values})
            else:
                changed.append({"id": before.id, **values})
        return changed, added

    def write_edges(self, connection: Connection) -> None:
        """Write the edges that differ, between resources that have been written."""
        if self.is_written or self.edges_hash == self.node.edges_hash:
            return
        # Inserted rows get their ids from the database.
        if any(before is None for _, _, before in self.changed):
            self.ids = {(type, title): id for id, type, title in connection.execute(_IDS, {"node": self.node.id}).all()}
        ids = self.ids
        wanted = {(ids[edge.source], ids[edge.target], RELATIONSHIP_NUMBERS[edge.relationship]) for edge in self.command.edges}
        stored: set[tuple[int, int, int]] = set()
        if self.node.edges_hash is not None:
            rows = connection.execute(_STORED_EDGES, {"node": self.node.id}).all()
            stored = {(source, target, kind) for source, target, kind in rows}
        removed = sorted(stored - wanted)
        added = [{"source_id": source, "target_id": target, "relationship": kind} for source, target, kind in sorted(wanted - stored)]
        _check_changes(connection, len(removed) + len(added))
        _REMOVED_EDGES.delete(connection, removed)
        NEW_EDGES.insert(connection, added)


def _is_large(connection: Connection, node: int, command: ReplaceCatalog) -> bool:
    """Return whether a catalog has more than MAX_BYTES, or it or the one that it replaces more than MAX_ROWS resources or edges."""
    if command.size > MAX_BYTES or max(len(command.resources), len(command.edges)) > MAX_ROWS:
        return True
    return any(connection.scalar(statement, {"node": node}) for statement in _MANY_ROWS)


def _check_changes(connection: Connection, changes: int) -> None:
    if connection.dialect.name == "sqlite" and changes > MAX_CHANGES:
        raise CatalogTooLarge


def write_catalogs(connection: Connection, changes: Sequence[CatalogChange], shared: SharedRows) -> None:
    """Write the differences."""
    rows = [(change, change.row(shared)) for change in changes]
    if new := [row for change, row in rows if change.node.catalog_hash is None]:
        connection.execute(insert(catalogs), new)
    _CHANGED_CATALOGS.update(connection, [row for change, row in rows if change.node.catalog_hash is not None])
    REMOVED_RESOURCES.delete(connection, [(id,) for change in changes for id in change.removed])
    for change in changes:
        changed, added = change.changed_rows(shared)
        _CHANGED_RESOURCES.update(connection, changed)
        ids = shared.parameter_ids
        _CHANGED_PARAMETERS.update(connection, [{"id": id, "parameter_set_id": ids[digest]} for id, digest in change.changed_parameters])
        NEW_RESOURCES.insert(connection, added)
        change.write_edges(connection)


def resource_values(resource: ResourceEntry) -> dict[str, object]:
    """Return the columns of a resource in addition to its name and parameters."""
    return {"tags": _tags_text(resource.tags), "exported": resource.exported, "file": resource.file, "line": resource.line}


@lru_cache(4096)
def _tags_text(tags: tuple[str, ...]) -> JsonText:
    """Return tags as they are stored. Many resources have the same ones."""
    return json_text(tags)


def _stored_resources(connection: Connection, node: int) -> dict[ResourceName, _StoredResource]:
    dialect = connection.dialect.name
    rows = connection.execute(_STORED[dialect], {"node": node}).all()
    if dialect == "sqlite":
        return {(type, title): _StoredResource(id, *rest) for id, type, title, *rest in rows}
    return {
        (type, title): _StoredResource(id, parameter_set_id, digest, json_text(load_stored(tags.encode())), exported, file, line)
        for id, type, title, parameter_set_id, digest, tags, exported, file, line in rows
    }


def edges_hash(catalog: ReplaceCatalog) -> str:
    names = sorted((*edge.source, *edge.target, edge.relationship) for edge in catalog.edges)
    return json_hash(names)
