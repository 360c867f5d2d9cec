"""Writing the facts and packages of a node: only the differences from the stored ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from sqlalchemy import Connection, Text, bindparam, cast, insert, select, type_coerce

from ..commands.commands import Json, ReplaceFacts
from ..commands.hashes import factset_hash, json_hash
from ..database.bulk import BulkDelete, BulkInsert, BulkUpdate
from ..database.columns import JsonText, json_text
from ..database.tables import facts, factsets, node_packages, packages
from ..jsontext import load_stored
from .leaves import Leaf, PathRoom, leaves
from .nodes import NodeState
from .shared_rows import Package, SharedRows

_STORED = {
    "sqlite": select(facts.c.name, type_coerce(facts.c.value, Text)).where(facts.c.node_id == bindparam("node")),
    "postgresql": select(facts.c.name, cast(facts.c.value, Text)).where(facts.c.node_id == bindparam("node")),
}

_REMOVED_FACTS = BulkDelete(facts.c.node_id, facts.c.name)

_STORED_PACKAGES = (
    select(packages.c.id, packages.c.name, packages.c.version, packages.c.provider)
    .join(node_packages, node_packages.c.package_id == packages.c.id)
    .where(node_packages.c.node_id == bindparam("node"))
)

_NEW_FACTS = BulkInsert(facts)

_CHANGED_FACTS = BulkUpdate([facts.c.node_id, facts.c.name], [facts.c.value])

_NEW_PACKAGES = BulkInsert(node_packages)

_REMOVED_PACKAGES = BulkDelete(node_packages.c.node_id, node_packages.c.package_id)

_CHANGED_FACTSETS = BulkUpdate([factsets.c.node_id], [column for column in factsets.c if column.name != "node_id"])


MANY_FACTS = 2_000
"""Beyond this many facts of a node their texts and paths are made before the transaction, for which all others wait on SQLite."""

MAX_TOGETHER = 20_000
"""Facts and packages of a node that SQLite adds, changes and removes in one transaction; where there are more, packages have their own."""


class FactsAndPackages(Exception):
    """More facts and packages change than one transaction should write: the facts are written alone, with the packages as they are."""


class NewFacts:
    """The facts of a command in the form that is stored."""

    def __init__(self, command: ReplaceFacts) -> None:
        self._command = command
        self._leaves: dict[str, set[Leaf]] = {}
        self._room = PathRoom()

    @cached_property
    def hash(self) -> str:
        """The identity of the facts with their packages."""
        return self.hash_with(self._command.packages)

    def hash_with(self, packages: Sequence[Package]) -> str:
        """Return the identity that the facts have with other packages, which are sorted."""
        command = self._command
        return factset_hash(command.certname, command.environment, command.values, packages)

    @cached_property
    def packages_hash(self) -> str | None:
        """The identity of the packages; None where there are none."""
        return json_hash(self._command.packages) if self._command.packages else None

    @cached_property
    def texts(self) -> Mapping[str, JsonText]:
        """The facts' values by name."""
        return {name: json_text(value) for name, value in self._command.values.items()}

    def prepare(self) -> None:
        """Make the hashes, the texts, and the paths to the leaves of all facts."""
        _ = self.hash, self.packages_hash
        self._leaves = {name: self.leaves(name) for name in self.texts}

    def leaves(self, name: str) -> set[Leaf]:
        """Return the paths to the leaves of a fact; raises PayloadRejected when those of all facts are too long."""
        found = self._leaves.get(name)
        return set(leaves(name, self._command.values[name], self._room)) if found is None else found


class FactsChange:
    """
    The difference between the facts of a command and the stored ones.

    Args:
        new: The facts, where they have been prepared.
        keep_packages: Leave the packages as they are.
    Raises:
        FactsAndPackages: SQLite would write too many rows in this transaction.
    """

    def __init__(
        self, connection: Connection, node: NodeState, shared: SharedRows, new: NewFacts | None, *, keep_packages: bool = False
    ) -> None:
        assert node.facts is not None
        self.node = node
        self.command, self.received = node.facts
        command = self.command
        new = new or NewFacts(command)
        self.hash, self.packages_hash = new.hash, new.packages_hash
        self.changed: Mapping[str, JsonText] = {}
        self.added: set[str] = set()
        self.removed: list[str] = []
        self.added_packages: set[Package] = set()
        self.removed_packages: list[int] = []
        shared.need_names(command.environment, command.producer)
        if self.hash == node.facts_hash:
            return
        self._compare_facts({} if node.facts_hash is None else _stored_facts(connection, node.id), new, shared)
        if self.packages_hash == node.packages_hash:
            return
        stored = {} if node.packages_hash is None else _stored_packages(connection, node.id)
        if keep_packages:
            self.packages_hash = node.packages_hash
            self.hash = new.hash_with(sorted(stored))
            return
        self._compare_packages(stored)
        facts_changes, package_changes = len(self.changed) + len(self.removed), len(self.added_packages) + len(self.removed_packages)
        if connection.dialect.name == "sqlite" and facts_changes and facts_changes + package_changes > MAX_TOGETHER:
            raise FactsAndPackages
        shared.packages |= self.added_packages

    def _compare_facts(self, stored: Mapping[str, str], new: NewFacts, shared: SharedRows) -> None:
        self.changed = {name: text for name, text in new.texts.items() if stored.get(name) != text}
        self.added = self.changed.keys() - stored.keys()
        self.removed = sorted(stored.keys() - new.texts.keys())
        for name, text in self.changed.items():
            if name in self.added:
                shared.leaves |= new.leaves(name)
            elif not text[0] == stored[name][0] == '"':  # a path that the node had is known; a string has but one
                old: Json = load_stored(stored[name].encode())
                shared.leaves |= new.leaves(name) - set(leaves(name, old))

    def _compare_packages(self, stored: Mapping[Package, int]) -> None:
        wanted = set(self.command.packages)
        self.added_packages = wanted - stored.keys()
        self.removed_packages = sorted(id for package, id in stored.items() if package not in wanted)

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
        _REMOVED_PACKAGES.delete(connection, [(node, id) for id in self.removed_packages])
        if self.added_packages:
            ids = sorted(shared.package_ids[package] for package in self.added_packages)
            _NEW_PACKAGES.insert(connection, [{"node_id": node, "package_id": id} for id in ids])


def write_facts(connection: Connection, changes: Sequence[FactsChange], shared: SharedRows) -> None:
    """Write the differences."""
    rows = [(change, change.row(shared)) for change in changes]
    if new := [row for change, row in rows if change.node.facts_hash is None]:
        connection.execute(insert(factsets), new)
    _CHANGED_FACTSETS.update(connection, [row for change, row in rows if change.node.facts_hash is not None])
    _REMOVED_FACTS.delete(connection, [(change.node.id, name) for change in changes for name in change.removed])
    changed: list[dict[str, object]] = []
    added: list[dict[str, object]] = []
    for change in changes:
        for name, value in sorted(change.changed.items()):
            (added if name in change.added else changed).append({"node_id": change.node.id, "name": name, "value": value})
    _CHANGED_FACTS.update(connection, changed)
    _NEW_FACTS.insert(connection, added)
    for change in changes:
        change.write_packages(connection, shared)


def _stored_packages(connection: Connection, node: int) -> dict[Package, int]:
    rows = connection.execute(_STORED_PACKAGES, {"node": node}).all()  # row by row it takes five times as long
    return {(name, version, provider): id for id, name, version, provider in rows}


def _stored_facts(connection: Connection, node: int) -> dict[str, str]:
    dialect = connection.dialect.name
    stored: dict[str, str] = dict(map(tuple, connection.execute(_STORED[dialect], {"node": node}).all()))
    if dialect == "sqlite":
        return stored
    return {name: json_text(load_stored(text.encode())) for name, text in stored.items()}  # jsonb has an order and spaces of its own
