"""
Writing a large catalog on SQLite: in slices next to the old one, which it then replaces at once.

SQLite has one writer, so that the commands of all nodes wait for a transaction. The slices belong to a node without a certname, which no
query sees. The last one gives this node the certname and all else that is stored of the old node, whose resources are then removed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update

from ..commands.commands import PayloadRejected, ReplaceCatalog, ResourceEntry, ResourceName
from ..commands.hashes import resource_hash
from ..database.tables import NO_CERTNAME, metadata, nodes, resources
from ..jsontext import dump_json
from .catalogs import NEW_EDGES, NEW_RESOURCES, RELATIONSHIP_NUMBERS, REMOVED_RESOURCES, resource_values
from .shared_rows import NameIds, SharedRows

SLICE = 2_500
"""Resources, or edges, that are written or removed in one transaction."""

SLICE_BYTES = 8 * 2**20
"""Bytes of the parameters and tags of the resources that are written in one transaction; also the most that one resource may have."""

_HIDDEN = select(nodes.c.id).where(nodes.c.certname == NO_CERTNAME)

_ADDED = select(resources.c.type, resources.c.title, resources.c.id).where(
    (resources.c.node_id == bindparam("node")) & (resources.c.id > bindparam("after"))
)

_SOME = select(resources.c.id).where(resources.c.node_id == bindparam("node")).limit(SLICE)

_REMOVE_EDGES = text(
    "DELETE FROM edges WHERE (source_id, target_id, relationship) IN (SELECT source_id, target_id, relationship FROM edges "
    "WHERE source_id IN (SELECT id FROM resources WHERE node_id = :node LIMIT :slice) LIMIT :slice)"
)

_MOVED = [table for table in metadata.sorted_tables if "node_id" in table.c and table is not resources]

_STATE = [column for column in nodes.c if column not in (nodes.c.id, nodes.c.certname)]


def write_in_slices(
    command: ReplaceCatalog, names: NameIds, replace: Callable[[Connection, int], None]
) -> Generator[None, Connection, None]:
    """
    Write a catalog; each connection sent into the generator is one transaction.

    Args:
        replace: Replaces the node's stored data by a hidden node, if the command is not older.
    Raises:
        PayloadRejected: A resource is too large, or its name too long; nothing has been written.
    """
    NEW_RESOURCES.check_keys({"type": [entry.type for entry in command.resources], "title": [entry.title for entry in command.resources]})
    slices = list(_slices(command.resources))
    connection = yield
    while _remove_slice(connection):  # of an attempt that did not come to its end
        connection = yield
    node = connection.execute(insert(nodes).values(certname=NO_CERTNAME, expires_facts=False)).inserted_primary_key
    assert node is not None
    ids: dict[ResourceName, int] = {}
    for entries in slices:
        hashes = [resource_hash(entry.type, entry.title, entry.parameters, entry.sealed) for entry in entries]
        shared = SharedRows(names, parameters=dict(zip(hashes, entries, strict=True)))
        shared.resolve(connection)
        rows = (
            {"node_id": node.id, "type": entry.type, "title": entry.title, "parameter_set_id": shared.parameter_ids[digest]}
            | resource_values(entry)
            for entry, digest in zip(entries, hashes, strict=True)
        )
        # SQLite numbers rows upwards, so the new ones are those above.
        after = connection.scalar(select(func.max(resources.c.id))) or 0
        NEW_RESOURCES.insert(connection, list(rows))
        ids.update(((type, title), id) for type, title, id in connection.execute(_ADDED, {"node": node.id, "after": after}))
        connection = yield
    for start in range(0, len(command.edges), SLICE):
        some = command.edges[start : start + SLICE]
        NEW_EDGES.insert(
            connection,
            [
                {"source_id": ids[edge.source], "target_id": ids[edge.target], "relationship": RELATIONSHIP_NUMBERS[edge.relationship]}
                for edge in some
            ],
        )
        connection = yield
    replace(connection, node.id)
    connection = yield
    while _remove_slice(connection):
        connection = yield


def _slices(resources: Sequence[ResourceEntry]) -> Iterator[Sequence[ResourceEntry]]:
    """Yield the resources of one transaction after the other."""
    start, size = 0, 0
    for end, entry in enumerate(resources):
        length = len(dump_json([entry.parameters, entry.sealed, entry.tags]))
        if length > SLICE_BYTES:
            message = f"the resource {entry.type}[{entry.title}] has {length} bytes of parameters and tags"
            raise PayloadRejected(f"{message}; at most {SLICE_BYTES} are allowed")
        size += length
        if end > start and (size > SLICE_BYTES or end - start == SLICE):
            yield resources[start:end]
            start, size = end, length
    if len(resources) > start:
        yield resources[start:]


def take_place(connection: Connection, node: int, certname: str, hidden: int) -> None:
    """Give a hidden node the certname and all that is stored of a node but its resources; that one is hidden then."""
    for table in _MOVED:
        connection.execute(update(table).where(table.c.node_id == node).values(node_id=hidden))
    state = connection.execute(select(*_STATE).where(nodes.c.id == node)).one()
    changes = ((node, {"certname": " ", "expires_facts": False}), (hidden, {"certname": certname, **state._mapping}))
    for id, values in (*changes, (node, {"certname": NO_CERTNAME})):
        connection.execute(update(nodes).where(nodes.c.id == id).values(values))


def _remove_slice(connection: Connection) -> bool:
    """Remove some rows of the hidden node, finally the node itself; return whether there were any."""
    node = connection.scalar(_HIDDEN)
    if node is None:
        return False
    if connection.execute(_REMOVE_EDGES, {"node": node, "slice": SLICE}).rowcount < SLICE:
        some = connection.scalars(_SOME, {"node": node}).all()
        REMOVED_RESOURCES.delete(connection, [(id,) for id in some])
        if len(some) < SLICE:
            connection.execute(delete(nodes).where(nodes.c.id == node))
    return True
