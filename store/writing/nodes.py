"""The nodes of a batch of commands: their stored state, and the commands that have an effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text

from ..commands.commands import (
    ConfigureExpiration,
    DeactivateNode,
    ReceivedCommand,
    ReplaceCatalog,
    ReplaceCatalogInputs,
    ReplaceFacts,
    StoreReport,
)
from ..database.bulk import BulkUpdate
from ..database.tables import catalog_inputs, catalogs, factsets, nodes, reports, same_names


class StartAgain(Exception):
    """Another transaction has changed data that this one relied on: the same commands must start again."""


@dataclass(slots=True)
class NodeState:
    """
    A node, and the changes that the commands of a batch make to it.

    The commands are read in their order. Of those that replace facts, catalog or inputs only the newest remains to be written.
    """

    id: int
    certname: str
    deactivated: int | None = None
    expired: int | None = None
    expires_facts: bool = True
    expires_facts_updated: int | None = None
    latest_report_id: int | None = None
    latest_report_time: int | None = None
    facts_time: int | None = None
    facts_hash: str | None = None
    packages_hash: str | None = None
    catalog_time: int | None = None
    catalog_hash: str | None = None
    edges_hash: str | None = None
    inputs_time: int | None = None
    reports_time: int | None = None
    """The producer's time of the newest report of any type; known only where a command deactivates the node."""

    facts: tuple[ReplaceFacts, int] | None = None
    """The facts to be written, and when they were received."""
    catalog: tuple[ReplaceCatalog, int] | None = None
    inputs: ReplaceCatalogInputs | None = None
    reports: list[tuple[StoreReport, int]] = field(default_factory=list)
    is_changed: bool = False
    """True: the row of the node itself must be written."""

    def take(self, received: ReceivedCommand) -> None:
        """Take the next command into account."""
        command = received.command
        match command:
            case ReplaceFacts():
                self._activate(command.producer_timestamp)
                # By the producer's time, as in PuppetDB: commands may arrive out of order, for instance from two masters.
                if self.facts_time is None or command.producer_timestamp >= self.facts_time:
                    self.facts_time, self.facts = command.producer_timestamp, (command, received.received)
            case ReplaceCatalog():
                self._activate(command.producer_timestamp)
                if self.catalog_time is None or command.producer_timestamp >= self.catalog_time:
                    self.catalog_time, self.catalog = command.producer_timestamp, (command, received.received)
            case ReplaceCatalogInputs():
                self._activate(command.producer_timestamp)
                if self.inputs_time is None or command.producer_timestamp > self.inputs_time:
                    self.inputs_time, self.inputs = command.producer_timestamp, command
            case StoreReport():
                self._activate(command.producer_timestamp)
                self.reports_time = max(self.reports_time or command.producer_timestamp, command.producer_timestamp)
                self.reports.append((command, received.received))
            case DeactivateNode():
                self._deactivate(command.producer_timestamp)
            case ConfigureExpiration():
                if self.expires_facts_updated is None or command.producer_timestamp > self.expires_facts_updated:
                    self.expires_facts_updated, self.expires_facts = command.producer_timestamp, command.expires_facts
                    self.is_changed = True

    def _activate(self, at: int) -> None:
        # A node that sends data again is active again.
        if any(time is not None and time < at for time in (self.deactivated, self.expired)):
            self.deactivated = self.expired = None
            self.is_changed = True

    def _deactivate(self, at: int) -> None:
        times = (self.facts_time, self.catalog_time, self.reports_time)
        if any(time is not None and time > at for time in times):
            return  # the node has been heard of since
        if self.deactivated is None or self.deactivated < at:
            self.deactivated = at
            self.is_changed = True

    def take_report(self, report_id: int, at: int) -> None:
        """Remember the report of an agent that has been written, if it is the newest one."""
        if self.latest_report_time is None or at > self.latest_report_time:
            self.latest_report_id, self.latest_report_time = report_id, at
            self.is_changed = True


_CERTNAMES = nodes.c.certname.in_(bindparam("certnames", expanding=True))

_STATES = (
    select(
        nodes.c.id,
        nodes.c.certname,
        nodes.c.deactivated,
        nodes.c.expired,
        nodes.c.expires_facts,
        nodes.c.expires_facts_updated,
        nodes.c.latest_report_id,
        nodes.c.latest_report_time,
        factsets.c.producer_timestamp,
        factsets.c.hash,
        factsets.c.packages_hash,
        catalogs.c.producer_timestamp,
        catalogs.c.hash,
        catalogs.c.edges_hash,
        catalog_inputs.c.producer_timestamp,
    )
    .select_from(nodes.outerjoin(factsets).outerjoin(catalogs).outerjoin(catalog_inputs))
    .where(_CERTNAMES)
)

_LOCKED = select(nodes.c.id).where(_CERTNAMES).order_by(nodes.c.certname).with_for_update(key_share=True)

_IDS = select(nodes.c.id, nodes.c.certname).where(_CERTNAMES)

_NEW = text("INSERT INTO nodes (certname) VALUES (:certname) ON CONFLICT DO NOTHING").execution_options(preserve_rowcount=True)

_REMOVE_INPUTS = delete(catalog_inputs).where(catalog_inputs.c.node_id == bindparam("node"))

_NEWEST_REPORTS = (
    select(reports.c.node_id, func.max(reports.c.producer_timestamp))
    .where(reports.c.node_id.in_(bindparam("ids", expanding=True)))
    .group_by(reports.c.node_id)
)

_CHANGED = BulkUpdate([nodes.c.id], [column for column in nodes.c if column.name not in ("id", "certname")])

_OF_STATE = same_names(nodes, NodeState)


def lock_nodes(connection: Connection, commands: Sequence[ReceivedCommand]) -> list[NodeState]:
    """
    Return the nodes of a batch of commands, sorted by certname, with the commands taken into account; unknown nodes are created.

    The nodes are locked until the transaction ends. Every batch locks in the same order, known nodes before new ones, and waits for no
    node while it holds rows that batches share: so no two batches wait for each other.
    """
    # Sorted, so that all writers lock nodes in the same order.
    certnames = sorted({received.command.certname for received in commands})
    # SQLite has a single writer, so there is nothing to lock.
    is_shared = connection.dialect.name == "postgresql"
    locked = set(connection.scalars(_LOCKED, {"certnames": certnames})) if is_shared else set()
    states = {row[1]: NodeState(*row) for row in connection.execute(_STATES, {"certnames": certnames})}
    if is_shared and any(state.id not in locked for state in states.values()):
        raise StartAgain  # somebody else has created one of them after the others were looked for, so that it is not locked
    unknown = [certname for certname in certnames if certname not in states]
    if unknown:
        created = connection.execute(_NEW, [{"certname": certname} for certname in unknown])
        if created.rowcount < len(unknown):
            raise StartAgain  # somebody else has just created one of them
        states |= {row.certname: NodeState(row.id, row.certname) for row in connection.execute(_IDS, {"certnames": unknown})}
    deactivated = {received.command.certname for received in commands if isinstance(received.command, DeactivateNode)}
    if deactivated:
        by_id = {states[certname].id: states[certname] for certname in deactivated}
        for node_id, newest in connection.execute(_NEWEST_REPORTS, {"ids": sorted(by_id)}):
            by_id[node_id].reports_time = newest
    for received in commands:
        states[received.command.certname].take(received)
    return [states[certname] for certname in certnames]


def write_nodes(connection: Connection, states: Sequence[NodeState]) -> None:
    """Write the rows of the nodes themselves, where they have changed."""
    _CHANGED.update(connection, [{name: getattr(state, name) for name in _OF_STATE} for state in states if state.is_changed])


def write_inputs(connection: Connection, states: Sequence[NodeState]) -> None:
    """Write the inputs of catalogs, each set in place of the node's older one."""
    rows = [
        {"node_id": state.id, **{name: getattr(state.inputs, name) for name in ("producer_timestamp", "catalog_uuid", "inputs")}}
        for state in states
        if state.inputs
    ]
    if rows:
        connection.execute(_REMOVE_INPUTS, [{"node": row["node_id"]} for row in rows])
        connection.execute(insert(catalog_inputs), rows)
