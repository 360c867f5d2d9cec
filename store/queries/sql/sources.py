"""The sources of each entity's rows: its tables, joined, and the expressions of its fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

from sqlalchemy import Boolean, FromClause, Table, and_, case, func, null, select, type_coerce
from sqlalchemy.sql.selectable import NamedFromClause

from ...database.columns import JsonColumn
from ...database.tables import (
    NO_CERTNAME,
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
from ..schema.entities import ENTITIES
from .dialects import Sql
from .expressions import Expression


@dataclass(frozen=True, slots=True)
class NamedRow:
    """A row of a table of names that a row of an entity may refer to: an environment, or a producer."""

    names: Table
    key: Expression
    name: Expression

    def is_named(self, name: Expression) -> Expression:
        """
        Return whether the name is that one; NULL where the entity's row refers to none.

        The key is compared, not the name. A database that knows how few names there are would otherwise begin with those of them,
        and read and sort all that refers to them, where the first rows of an index are enough.
        """
        names = self.names.alias()
        return self.key == select(func.coalesce(func.max(names.c.id), 0)).where(names.c.name == name).scalar_subquery()


@dataclass(frozen=True, slots=True)
class EntitySource:
    """
    The rows of an entity.

    `node` is the row's node, where it has one; `report`, `event` and `path` are the keys of its report, its event and the path of its leaf.
    `named` has the objects that the fields name, as far as these are in tables of their own.
    """

    tables: FromClause
    fields: Mapping[str, Expression]
    node: NamedFromClause | None = None
    report: Expression | None = None
    event: Expression | None = None
    path: Expression | None = None
    named: Mapping[str, NamedRow] = field(default_factory=dict)


@lru_cache(256)
def entity_source(entity: str, sql: Sql, number: int) -> EntitySource:
    """
    Return a source of an entity. Each number stands for tables of its own: a query and its subqueries must not mix theirs up.

    Building a source takes longer than all the rest of a statement, so they are cached.
    """
    return _BUILDERS[entity](sql)


def _columns(entity: str, row: NamedFromClause) -> dict[str, Expression]:
    """Return the fields of an entity that are columns of the same name in its table."""
    return {field.name: row.c[field.name] for field in ENTITIES[entity].fields if field.name in row.c}


def _visible_nodes() -> NamedFromClause:
    """Return the nodes without the hidden one, which has nothing but resources."""
    return select(nodes).where(nodes.c.certname != NO_CERTNAME).subquery()


def _optional(tables: FromClause, table: Table, key: Expression) -> tuple[FromClause, NamedRow]:
    """Return the tables with one more, whose row is found by its key, or is missing; and that row."""
    other = table.alias()
    return tables.outerjoin(other, other.c.id == key), NamedRow(table, key, other.c.name)


def _nodes(sql: Sql) -> EntitySource:
    node, catalog, factset, report = _visible_nodes(), catalogs.alias(), factsets.alias(), reports.alias()
    tables: FromClause = (
        node.outerjoin(catalog, catalog.c.node_id == node.c.id)
        .outerjoin(factset, factset.c.node_id == node.c.id)
        .outerjoin(report, report.c.id == node.c.latest_report_id)
    )
    tables, catalog_environment = _optional(tables, environments, catalog.c.environment_id)
    tables, facts_environment = _optional(tables, environments, factset.c.environment_id)
    tables, report_environment = _optional(tables, environments, report.c.environment_id)
    fields = {
        "certname": node.c.certname,
        "deactivated": node.c.deactivated,
        "expired": node.c.expired,
        "catalog_timestamp": catalog.c.received,
        "facts_timestamp": factset.c.received,
        "report_timestamp": report.c.end_time,
        "catalog_environment": catalog_environment.name,
        "facts_environment": facts_environment.name,
        "report_environment": report_environment.name,
        "latest_report_status": report.c.status,
        "latest_report_hash": report.c.hash,
        "latest_report_job_id": report.c.job_id,
        "cached_catalog_status": report.c.cached_catalog_status,
        "latest_report_noop": report.c.noop,
        "latest_report_noop_pending": report.c.noop_pending,
        "latest_report_corrective_change": _unknown_boolean(),
        "expires_facts": node.c.expires_facts,
        "expires_facts_updated": node.c.expires_facts_updated,
    }
    named = {
        "catalog_environment": catalog_environment,
        "facts_environment": facts_environment,
        "report_environment": report_environment,
    }
    return EntitySource(tables, fields, node, named=named)


def _unknown_boolean() -> Expression:
    """Return the expression for corrective_change: PuppetDB's open edition always answers with null."""
    return type_coerce(null(), Boolean)


def _facts(sql: Sql) -> EntitySource:
    fact, node, factset = facts.alias(), nodes.alias(), factsets.alias()
    tables: FromClause = fact.join(node, node.c.id == fact.c.node_id).outerjoin(factset, factset.c.node_id == fact.c.node_id)
    tables, environment = _optional(tables, environments, factset.c.environment_id)
    fields = {"certname": node.c.certname, "name": fact.c.name, "environment": environment.name, "value": fact.c.value}
    return EntitySource(tables, fields, node, named={"environment": environment})


def _fact_names(sql: Sql) -> EntitySource:
    names = select(fact_paths.c.name).distinct().subquery()
    return EntitySource(names, {"name": names.c.name})


def _fact_paths(sql: Sql) -> EntitySource:
    path = fact_paths.alias()
    return EntitySource(path, {"path": path.c.path, "name": path.c.name, "type": path.c.type, "depth": path.c.depth})


def _fact_contents(sql: Sql) -> EntitySource:
    fact, node, factset, path = facts.alias(), nodes.alias(), factsets.alias(), fact_paths.alias()
    is_there = sql.leaf_type(fact.c.value, path.c.path, path.c.pointer) == path.c.type
    tables: FromClause = (
        fact.join(path, and_(path.c.name == fact.c.name, is_there))
        .join(node, node.c.id == fact.c.node_id)
        .outerjoin(factset, factset.c.node_id == fact.c.node_id)
    )
    tables, environment = _optional(tables, environments, factset.c.environment_id)
    fields = {
        "certname": node.c.certname,
        "name": fact.c.name,
        "environment": environment.name,
        "path": path.c.path,
        "value": sql.at_path(fact.c.value, path.c.path, path.c.pointer),
    }
    return EntitySource(tables, fields, node, path=path.c.id, named={"environment": environment})


def _facts_of(node: NamedFromClause, sql: Sql) -> Expression:
    fact = facts.alias()
    return select(sql.object_of(fact.c.name, fact.c.value)).where(fact.c.node_id == node.c.id).scalar_subquery()


def _factsets(sql: Sql) -> EntitySource:
    factset, node = factsets.alias(), nodes.alias()
    tables: FromClause = factset.join(node, node.c.id == factset.c.node_id)
    tables, environment = _optional(tables, environments, factset.c.environment_id)
    tables, producer = _optional(tables, producers, factset.c.producer_id)
    fields = {
        "certname": node.c.certname,
        "timestamp": factset.c.received,
        "producer_timestamp": factset.c.producer_timestamp,
        "producer": producer.name,
        "environment": environment.name,
        "hash": factset.c.hash,
        "facts": _facts_of(node, sql),
    }
    return EntitySource(tables, fields, node, named={"environment": environment, "producer": producer})


def _inventory(sql: Sql) -> EntitySource:
    factset, node = factsets.alias(), nodes.alias()
    trusted = facts.alias()
    tables: FromClause = factset.join(node, node.c.id == factset.c.node_id)
    tables, environment = _optional(tables, environments, factset.c.environment_id)
    value = select(trusted.c.value).where(trusted.c.node_id == node.c.id, trusted.c.name == "trusted").scalar_subquery()
    fields = {
        "certname": node.c.certname,
        "timestamp": factset.c.received,
        "environment": environment.name,
        "facts": _facts_of(node, sql),
        "trusted": type_coerce(value, JsonColumn),
    }
    return EntitySource(tables, fields, node, named={"environment": environment})


def _catalogs(sql: Sql) -> EntitySource:
    catalog, node = catalogs.alias(), nodes.alias()
    tables: FromClause = catalog.join(node, node.c.id == catalog.c.node_id)
    tables, environment = _optional(tables, environments, catalog.c.environment_id)
    tables, producer = _optional(tables, producers, catalog.c.producer_id)
    fields = {
        "certname": node.c.certname,
        "environment": environment.name,
        "producer": producer.name,
        **_columns("catalogs", catalog),
        "resources": _array_of(
            _resources(sql), ("resource", "type", "title", "tags", "exported", "file", "line", "parameters"), node.c.id, sql
        ),
        "edges": _array_of(_edges(sql), ("source_type", "source_title", "target_type", "target_title", "relationship"), node.c.id, sql),
    }
    return EntitySource(tables, fields, node, named={"environment": environment, "producer": producer})


def _array_of(source: EntitySource, names: tuple[str, ...], key: Expression, sql: Sql) -> Expression:
    """Return the rows of a source that belong to a node as JSON."""
    assert source.node is not None
    return _json_rows(source, {name: source.fields[name] for name in names}, source.node.c.id == key, sql)


def _json_rows(source: EntitySource, fields: Mapping[str, Expression], where: Expression, sql: Sql) -> Expression:
    members = {name: (field, isinstance(field.type, JsonColumn), isinstance(field.type, Boolean)) for name, field in fields.items()}
    return select(sql.array_of(members)).select_from(source.tables).where(where).scalar_subquery()


def _catalog_inputs(sql: Sql) -> EntitySource:
    inputs, node = catalog_inputs.alias(), nodes.alias()
    tables = inputs.join(node, node.c.id == inputs.c.node_id)
    fields = {"certname": node.c.certname, **_columns("catalog_inputs", inputs)}
    return EntitySource(tables, fields, node)


def _catalog_input_contents(sql: Sql) -> EntitySource:
    inputs, node = catalog_inputs.alias(), nodes.alias()
    pair = sql.members(inputs.c.inputs)
    tables = inputs.join(node, node.c.id == inputs.c.node_id).join(pair, and_(True))
    value = type_coerce(pair.c.value, JsonColumn)
    fields = {
        "certname": node.c.certname,
        "producer_timestamp": inputs.c.producer_timestamp,
        "catalog_uuid": inputs.c.catalog_uuid,
        "type": sql.path_element(value, 0),
        "name": sql.path_element(value, 1),
    }
    return EntitySource(tables, fields, node)


def _resources(sql: Sql) -> EntitySource:
    resource, node, parameters, catalog = resources.alias(), _visible_nodes(), parameter_sets.alias(), catalogs.alias()
    tables: FromClause = (
        resource.join(node, node.c.id == resource.c.node_id)
        .outerjoin(parameters, parameters.c.id == resource.c.parameter_set_id)
        .outerjoin(catalog, catalog.c.node_id == resource.c.node_id)
    )
    tables, environment = _optional(tables, environments, catalog.c.environment_id)
    fields = {
        "certname": node.c.certname,
        "environment": environment.name,
        "resource": parameters.c.hash,
        **_columns("resources", resource),
        "tag": resource.c.tags,
        "parameters": parameters.c.parameters,
    }
    return EntitySource(tables, fields, node, named={"environment": environment})


def _edges(sql: Sql) -> EntitySource:
    edge, source, target, node = edges.alias(), resources.alias(), resources.alias(), _visible_nodes()
    tables: FromClause = (
        edge.join(source, source.c.id == edge.c.source_id)
        .join(target, target.c.id == edge.c.target_id)
        .join(node, node.c.id == source.c.node_id)
    )
    fields = {
        "certname": node.c.certname,
        "relationship": case(dict(enumerate(RELATIONSHIPS)), value=edge.c.relationship),
        "source_type": source.c.type,
        "source_title": source.c.title,
        "target_type": target.c.type,
        "target_title": target.c.title,
    }
    return EntitySource(tables, fields, node)


def _reports(sql: Sql) -> EntitySource:
    report, node = reports.alias(), nodes.alias()
    tables: FromClause = report.join(node, node.c.id == report.c.node_id)
    tables, environment = _optional(tables, environments, report.c.environment_id)
    tables, producer = _optional(tables, producers, report.c.producer_id)
    inner = _plain_events()
    assert inner.report is not None
    fields = {
        "certname": node.c.certname,
        "receive_time": report.c.received,
        "environment": environment.name,
        "producer": producer.name,
        **_columns("reports", report),
        "corrective_change": _unknown_boolean(),
        "resource_events": _json_rows(inner, inner.fields, inner.report == report.c.id, sql),
    }
    return EntitySource(tables, fields, node, report=report.c.id, named={"environment": environment, "producer": producer})


def _plain_events() -> EntitySource:
    """Return the events without their reports and nodes."""
    event = events.alias()
    fields = {**_columns("events", event), "corrective_change": _unknown_boolean()}
    return EntitySource(event, fields, report=event.c.report_id, event=event.c.id)


def _events(sql: Sql) -> EntitySource:
    inner, report, node = _plain_events(), reports.alias(), nodes.alias()
    assert inner.report is not None
    tables: FromClause = inner.tables.join(report, report.c.id == inner.report).join(node, node.c.id == report.c.node_id)
    tables, environment = _optional(tables, environments, report.c.environment_id)
    fields = {
        **inner.fields,
        "certname": node.c.certname,
        "report": report.c.hash,
        "run_start_time": report.c.start_time,
        "run_end_time": report.c.end_time,
        "report_receive_time": report.c.received,
        "configuration_version": report.c.configuration_version,
        "environment": environment.name,
    }
    return EntitySource(tables, fields, node, report=inner.report, event=inner.event, named={"environment": environment})


def _names(table: Table, sql: Sql) -> EntitySource:
    names = table.alias()
    return EntitySource(names, {"name": names.c.name})


def _packages(sql: Sql) -> EntitySource:
    package = packages.alias()
    return EntitySource(package, _package_fields(package))


def _package_fields(package: NamedFromClause) -> dict[str, Expression]:
    return {"package_name": package.c.name, "version": package.c.version, "provider": package.c.provider}


def _package_inventory(sql: Sql) -> EntitySource:
    pair, package, node = node_packages.alias(), packages.alias(), nodes.alias()
    tables = pair.join(package, package.c.id == pair.c.package_id).join(node, node.c.id == pair.c.node_id)
    return EntitySource(tables, {"certname": node.c.certname, **_package_fields(package)}, node)


_BUILDERS: dict[str, Callable[[Sql], EntitySource]] = {
    "nodes": _nodes,
    "facts": _facts,
    "fact_names": _fact_names,
    "fact_paths": _fact_paths,
    "fact_contents": _fact_contents,
    "factsets": _factsets,
    "inventory": _inventory,
    "catalogs": _catalogs,
    "catalog_inputs": _catalog_inputs,
    "catalog_input_contents": _catalog_input_contents,
    "resources": _resources,
    "edges": _edges,
    "reports": _reports,
    "events": _events,
    "environments": partial(_names, environments),
    "producers": partial(_names, producers),
    "packages": _packages,
    "package_inventory": _package_inventory,
}
