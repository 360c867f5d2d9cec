"""What the store has to hold after some commands, said with dictionaries; and what its tables hold, in the same form."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection, select

from store.commands.commands import (
    Command,
    ConfigureExpiration,
    DeactivateNode,
    ReplaceCatalog,
    ReplaceCatalogInputs,
    ReplaceFacts,
    StoreReport,
)
from store.commands.hashes import report_hash
from store.database.columns import json_text
from store.database.tables import (
    RELATIONSHIPS,
    catalog_inputs,
    catalogs,
    edges,
    environments,
    events,
    fact_paths,
    facts,
    factsets,
    node_packages,
    nodes,
    packages,
    parameter_sets,
    producers,
    reports,
    resources,
)
from store.writing.leaves import leaves


@dataclass
class ModelNode:
    """All that is known of one node."""

    deactivated: int | None = None
    expired: int | None = None
    expiration: tuple[bool, int | None] = (True, None)
    facts: ReplaceFacts | None = None
    catalog: ReplaceCatalog | None = None
    inputs: ReplaceCatalogInputs | None = None
    reports: dict[str, StoreReport] = field(default_factory=dict)
    latest: str | None = None


class StoreModel:
    """Nodes by their certnames, as PuppetDB's rules of precedence leave them."""

    def __init__(self) -> None:
        self.nodes: dict[str, ModelNode] = {}

    def carry_out(self, command: Command) -> None:
        """Carry out one command."""
        node = self.nodes.setdefault(command.certname, ModelNode())
        at = command.producer_timestamp
        if isinstance(command, ConfigureExpiration):
            if node.expiration[1] is None or at > node.expiration[1]:
                node.expiration = (command.expires_facts, at)
            return
        if isinstance(command, DeactivateNode):
            known = [it.producer_timestamp for it in (node.facts, node.catalog, *node.reports.values()) if it is not None]
            if max(known, default=at) <= at:
                node.deactivated = max(node.deactivated or at, at)
            return
        if any(time is not None and time < at for time in (node.deactivated, node.expired)):
            node.deactivated = node.expired = None
        if isinstance(command, ReplaceFacts):
            if node.facts is None or at >= node.facts.producer_timestamp:
                node.facts = command
        elif isinstance(command, ReplaceCatalog):
            if node.catalog is None or at >= node.catalog.producer_timestamp:
                node.catalog = command
        elif isinstance(command, ReplaceCatalogInputs):
            if node.inputs is None or at > node.inputs.producer_timestamp:
                node.inputs = command
        else:
            digest = report_hash(command)
            if digest not in node.reports:
                node.reports[digest] = command
                latest = node.reports.get(node.latest or "")
                if command.type == "agent" and (latest is None or at > latest.producer_timestamp):
                    node.latest = digest


def _by(rows: Iterable[Any]) -> dict[int, list[Any]]:
    groups: dict[int, list[Any]] = {}
    for key, *row in rows:
        groups.setdefault(key, []).append(row[0] if len(row) == 1 else tuple(row))
    return groups


def stored_nodes(connection: Connection) -> dict[str, ModelNode]:
    """Return what the tables hold, in the form of `in_order`."""
    rows = connection.execute
    environment = {None: None, **dict(iter(rows(select(environments.c.id, environments.c.name))))}
    producer = {None: None, **dict(iter(rows(select(producers.c.id, producers.c.name))))}
    values = _by(rows(select(facts.c.node_id, facts.c.name, facts.c.value)))
    known_paths = set(rows(select(fact_paths.c.name, fact_paths.c.pointer, fact_paths.c.type)))
    inventory = _by(
        rows(
            select(node_packages.c.node_id, packages.c.name, packages.c.version, packages.c.provider).join(
                packages, packages.c.id == node_packages.c.package_id
            )
        )
    )
    entries = {
        row.id: row
        for row in rows(
            select(resources, parameter_sets.c.parameters).join(parameter_sets, parameter_sets.c.id == resources.c.parameter_set_id)
        )
    }
    links = list(rows(select(edges)))
    happened = _by(rows(select(events.c.report_id, *(column for column in events.c if column.name not in ("id", "report_id")))))
    result = {}
    for node in rows(select(nodes)):
        stored = ModelNode(node.deactivated, node.expired, (node.expires_facts, node.expires_facts_updated))
        for row in rows(select(factsets).where(factsets.c.node_id == node.id)):
            of_node = dict(values.get(node.id, []))
            for name, value in of_node.items():
                assert {(leaf.name, leaf.pointer, leaf.type) for leaf in leaves(name, value)} <= known_paths
            stored.facts = ReplaceFacts(
                node.certname,
                environment[row.environment_id],
                producer[row.producer_id],
                row.producer_timestamp,
                {name: json_text(value) for name, value in of_node.items()},
                tuple(sorted(inventory.get(node.id, []))),
            )
        for row in rows(select(catalogs).where(catalogs.c.node_id == node.id)):
            own = {key: entry for key, entry in entries.items() if entry.node_id == node.id}
            stored.catalog = ReplaceCatalog(
                node.certname,
                row.version,
                environment[row.environment_id],
                producer[row.producer_id],
                row.producer_timestamp,
                row.transaction_uuid,
                row.catalog_uuid,
                row.code_id,
                row.job_id,
                sorted((it.type, it.title, it.exported, tuple(it.tags), json_text(it.parameters), it.file, it.line) for it in own.values()),
                sorted(
                    (*own[it.source_id][2:4], *own[it.target_id][2:4], RELATIONSHIPS[it.relationship])
                    for it in links
                    if it.source_id in own
                ),
            )
        for row in rows(select(catalog_inputs).where(catalog_inputs.c.node_id == node.id)):
            stored.inputs = ReplaceCatalogInputs(
                node.certname, row.producer_timestamp, row.catalog_uuid, tuple((kind, name) for kind, name in row.inputs)
            )
        for row in rows(select(reports).where(reports.c.node_id == node.id)):
            stored.reports[row.hash] = StoreReport(
                node.certname,
                environment[row.environment_id],
                producer[row.producer_id],
                row.producer_timestamp,
                row.type,
                row.puppet_version,
                row.report_format,
                row.configuration_version,
                row.start_time,
                row.end_time,
                row.status,
                row.noop,
                row.noop_pending,
                row.corrective_change,
                row.transaction_uuid,
                row.catalog_uuid,
                row.code_id,
                row.job_id,
                row.cached_catalog_status,
                sorted((status, title, new) for status, _, _, title, _, _, new, *_ in happened.get(row.id, [])),
                row.logs,
                row.metrics,
            )
            if row.id == node.latest_report_id:
                assert row.producer_timestamp == node.latest_report_time
                stored.latest = row.hash
        result[node.certname] = stored
    return result


def in_order(model: StoreModel) -> dict[str, ModelNode]:
    """Return the nodes of the model with sorted sequences, and with texts for JSON, so that 1, 1.0 and true differ."""
    result = {}
    for certname, node in model.nodes.items():
        ordered = replace(node)
        if node.facts is not None:
            ordered.facts = replace(node.facts, values={name: json_text(value) for name, value in node.facts.values.items()})
        if node.catalog is not None:
            ordered.catalog = replace(
                node.catalog,
                resources=sorted(
                    (it.type, it.title, it.exported, it.tags, json_text(it.parameters), it.file, it.line) for it in node.catalog.resources
                ),
                edges=sorted((*it.source, *it.target, it.relationship) for it in node.catalog.edges),
            )
        ordered.reports = {
            digest: replace(report, events=sorted((it.status, it.resource_title, it.new_value) for it in report.events))
            for digest, report in node.reports.items()
        }
        result[certname] = ordered
    return result
