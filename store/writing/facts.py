"""Writing the facts and packages of a node: only the differences from the stored ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, Text, bindparam, cast, delete, insert, select, type_coerce

from ..commands.commands import Json
from ..commands.hashes import factset_hash, json_hash
from ..database.bulk import BulkInsert, BulkUpdate
from ..database.columns import JsonText, json_text
from ..database.tables import facts, factsets, node_packages, packages
from ..jsontext import load_stored
from .leaves import PathRoom, leaves
from .nodes import NodeState
from .shared_rows import Package, SharedRows

_STORED = {
    "sqlite": select(facts.c.name, type_coerce(facts.c.value, Text)).where(facts.c.node_id == bindparam("node")),
    "postgresql": select(facts.c.name, cast(facts.c.value, Text)).where(facts.c.node_id == bindparam("node")),
}

_REMOVE_FACT = delete(facts).where((facts.c.node_id == bindparam("node")) & (facts.c.name == bindparam("fact")))

_STORED_PACKAGES = (
    select(packages.c.id, packages.c.name, packages.c.version, packages.c.provider)
    .join(node_packages, node_packages.c.package_id == packages.c.id)
    .where(node_packages.c.node_id == bindparam("node"))
)

_NEW_FACTS = BulkInsert(facts)

_CHANGED_FACTS = BulkUpdate([facts.c.node_id, facts.c.name], [facts.c.value])

_NEW_PACKAGES = BulkInsert(node_packages)

_REMOVE_PACKAGE = delete(node_packages).where(
    (node_packages.c.node_id == bindparam("node")) & (node_packages.c.package_id == bindparam("package"))
)

_CHANGED_FACTSETS = BulkUpdate([factsets.c.node_id], [column for column in factsets.c if column.name != "node_id"])


class FactsChange:
    """The difference between the facts of a command and the stored ones."""

    def __init__(self, connection: Connection, node: NodeState, shared: SharedRows) -> None:
        assert node.facts is not None
        self.node = node
        self.command, self.received = node.facts
        command = self.command
        self.hash = factset_hash(command.certname, command.environment, command.values, command.packages)
        self.packages_hash = json_hash(command.packages) if command.packages else None
        self.changed: dict[str, JsonText] = {}
        self.added: set[str] = set()
        self.removed: list[str] = []
        self.added_packages: set[Package] = set()
        self.removed_packages: list[int] = []
        shared.need_names(command.environment, command.producer)
        if self.hash != node.facts_hash:
            self._compare_facts({} if node.facts_hash is None else _stored_facts(connection, node.id), shared)
            if self.packages_hash != node.packages_hash:
                self._compare_packages(connection, shared)

    def _compare_facts(self, stored: Mapping[str, str], shared: SharedRows) -> None:
        room = PathRoom()
        for name, value in self.command.values.items():
            text = json_text(value)
            before = stored.get(name)
            if before == text:
                continue
            self.changed[name] = text
            found = set(leaves(name, value, room))
            if before is None:
                self.added.add(name)
            else:  # a path that the node had is known
                old: Json = load_stored(before.encode())
                found -= set(leaves(name, old))
            shared.leaves |= found
        self.removed = sorted(stored.keys() - self.command.values.keys())

    def _compare_packages(self, connection: Connection, shared: SharedRows) -> None:
        stored: dict[Package, int] = {}
        if self.node.packages_hash is not None:
            stored = {
                (name, version, provider): id
                for id, name, version, provider in connection.execute(_STORED_PACKAGES, {"node": self.node.id})
            }
        wanted = set(self.command.packages)
        self.added_packages = wanted - stored.keys()
        self.removed_packages = sorted(id for package, id in stored.items() if package not in wanted)
        shared.packages |= self.added_packages

    def row(self, shared: SharedRows) -> dict[str, object]:
        """Return the row of `factsets`."""
        return {
            "node_id": self.node.id,
            "received": self.received,
            "producer_timestamp": self.command.producer_timestamp,
            "environment_id": shared.environment_id(self.command.environment),
            "producer_id": shared.producer_id(self.command.producer),
            "hash": self.hash,
            "packages_hash": self.packages_hash,
        }

    def write_packages(self, connection: Connection, shared: SharedRows) -> None:
        """Write the packages that differ."""
        node = self.node.id
        if self.removed_packages:
            connection.execute(_REMOVE_PACKAGE, [{"node": node, "package": id} for id in self.removed_packages])
        if self.added_packages:
            ids = sorted(shared.package_ids[package] for package in self.added_packages)
            _NEW_PACKAGES.insert(connection, [{"node_id": node, "package_id": id} for id in ids])


def write_facts(connection: Connection, changes: Sequence[FactsChange], shared: SharedRows) -> None:
    """Write the differences."""
    rows = [(change, change.row(shared)) for change in changes]
    if new := [row for change, row in rows if change.node.facts_hash is None]:
        connection.execute(insert(factsets), new)
    _CHANGED_FACTSETS.update(connection, [row for change, row in rows if change.node.facts_hash is not None])
    if removed := [{"node": change.node.id, "fact": name} for change in changes for name in change.removed]:
        connection.execute(_REMOVE_FACT, removed)
    changed: list[dict[str, object]] = []
    added: list[dict[str, object]] = []
    for change in changes:
        for name, value in sorted(change.changed.items()):
            (added if name in change.added else changed).append({"node_id": change.node.id, "name": name, "value": value})
    _CHANGED_FACTS.update(connection, changed)
    _NEW_FACTS.insert(connection, added)
    for change in changes:
        change.write_packages(connection, shared)


def _stored_facts(connection: Connection, node: int) -> dict[str, str]:
    dialect = connection.dialect.name
    stored: dict[str, str] = dict(map(tuple, connection.execute(_STORED[dialect], {"node": node}).all()))
    if dialect == "sqlite":
        return stored
    return {name: json_text(load_stored(text.encode())) for name, text in stored.items()}  # jsonb has an order and spaces of its own
