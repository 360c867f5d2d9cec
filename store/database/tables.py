"""
The tables of the store.

A node has one set of facts, one catalog and one set of inputs, the newest, and many reports. Data that many nodes share are stored
once: names of environments and producers, parameters of resources, paths of facts, packages. A command writes only what differs
from what is stored, so that a node of which nothing has changed costs a few rows.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    event,
    text,
)

from ..commands.commands import Relationship
from .columns import JsonColumn, Key, Microseconds, PackedJson

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

RELATIONSHIPS: tuple[str, ...] = get_args(Relationship)
"""The relationships of edges, by the number that stands in the table."""


def _node(*, primary: bool = False) -> Column[int]:
    return Column("node_id", Key, ForeignKey("nodes.id", ondelete="CASCADE"), primary_key=primary, nullable=False)


def _names(table: str) -> Table:
    # Writers remember the ids of names: SQLite shall not give the id of a deleted row to another one.
    columns = (Column("id", Key, primary_key=True), Column("name", Text, nullable=False, unique=True))
    return Table(table, metadata, *columns, sqlite_autoincrement=True)


environments = _names("environments")

producers = _names("producers")

nodes = Table(
    "nodes",
    metadata,
    Column("id", Key, primary_key=True),
    Column("certname", Text, nullable=False, unique=True),
    Column("deactivated", Microseconds),
    Column("expired", Microseconds),
    Column("expires_facts", Boolean, nullable=False, server_default=text("true")),
    Column("expires_facts_updated", Microseconds),
    # The newest report of an agent by its producer's time. No foreign key: reports go in batches.
    Column("latest_report_id", Key),
    Column("latest_report_time", Microseconds),
)

NO_CERTNAME = ""
"""The certname of a node that no query shows: it has the resources of a large catalog that is being written, or that was replaced."""

factsets = Table(
    "factsets",
    metadata,
    _node(primary=True),
    Column("received", Microseconds, nullable=False),
    Column("producer_timestamp", Microseconds, nullable=False),
    Column("environment_id", Key, ForeignKey("environments.id")),
    Column("producer_id", Key, ForeignKey("producers.id")),
    Column("hash", Text, nullable=False),
    Column("packages_hash", Text),
)
"""`packages_hash` is equal for equal packages, and NULL where the node has none."""

facts = Table(
    "facts",
    metadata,
    _node(primary=True),
    Column("name", Text, primary_key=True),
    Column("value", JsonColumn, nullable=False),
    Index("ix_facts_name", "name", "node_id"),
)
"""
A row for each fact at the top level.

SQLite shall find it by an index without the values: in a table that is ordered by its key it reads a large value at each comparison.
"""

fact_paths = Table(
    "fact_paths",
    metadata,
    Column("id", Key, primary_key=True),
    Column("path", JsonColumn, nullable=False, index=True),
    Column("type", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("pointer", Text, nullable=False),
    UniqueConstraint("name", "pointer", "type"),
)
"""
Every path to a leaf that some node's facts have, with its type (`string`, `integer`, `float`, `boolean`, `null`).

`depth` is 0 for a leaf at the top level. `pointer` leads from the value of the fact `name` to the leaf: SQLite's JSON path (`$."a"[0]`).
"""

catalogs = Table(
    "catalogs",
    metadata,
    _node(primary=True),
    Column("received", Microseconds, nullable=False),
    Column("producer_timestamp", Microseconds, nullable=False),
    Column("environment_id", Key, ForeignKey("environments.id")),
    Column("producer_id", Key, ForeignKey("producers.id")),
    Column("hash", Text, nullable=False),
    Column("edges_hash", Text),
    Column("version", Text, nullable=False),
    Column("transaction_uuid", Text),
    Column("catalog_uuid", Text),
    Column("code_id", Text),
    Column("job_id", Text),
)
"""`edges_hash` is equal for equal edges."""

parameter_sets = Table(
    "parameter_sets",
    metadata,
    Column("id", Key, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    Column("parameters", JsonColumn, nullable=False),
    Column("sealed", JsonColumn(none_as_null=True)),
)
"""
The parameters of resources; equal resources of many nodes share a row.

`hash` is the resource's own: SHA-1 of `[type, title, parameters]`. `sealed` are parameters that only masters can open: no query has this
column.
"""

resources = Table(
    "resources",
    metadata,
    Column("id", Key, primary_key=True),
    _node(),
    Column("type", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("parameter_set_id", Key, ForeignKey("parameter_sets.id"), nullable=False, index=True),
    Column("tags", JsonColumn, nullable=False),
    Column("exported", Boolean, nullable=False),
    Column("file", Text),
    Column("line", Integer),
    UniqueConstraint("node_id", "type", "title"),
    Index("ix_resources_type_title", "type", "title"),
)
_exported = Index("ix_resources_exported", resources.c.type, sqlite_where=resources.c.exported)


@event.listens_for(resources, "before_create")
def _(_: Table, connection: Connection, **_options: object) -> None:
    if connection.dialect.name == "postgresql":  # said earlier, it would load that dialect into each store on SQLite: 3 MB
        _exported.dialect_options["postgresql"]["where"] = resources.c.exported


edges = Table(
    "edges",
    metadata,
    Column("source_id", Key, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True),
    Column("target_id", Key, ForeignKey("resources.id", ondelete="CASCADE"), primary_key=True, index=True),
    Column("relationship", SmallInteger, primary_key=True),
    sqlite_with_rowid=False,
)
"""`relationship` is an index into RELATIONSHIPS. An edge belongs to the node of its resources."""

reports = Table(
    "reports",
    metadata,
    Column("id", Key, primary_key=True),
    _node(),
    Column("hash", Text, nullable=False, unique=True),
    Column("type", Text, nullable=False, server_default="agent"),
    Column("puppet_version", Text, nullable=False),
    Column("report_format", Integer, nullable=False),
    Column("configuration_version", Text, nullable=False),
    Column("start_time", Microseconds, nullable=False),
    Column("end_time", Microseconds, nullable=False, index=True),
    Column("producer_timestamp", Microseconds, nullable=False, index=True),
    Column("received", Microseconds, nullable=False),
    Column("environment_id", Key, ForeignKey("environments.id")),
    Column("producer_id", Key, ForeignKey("producers.id")),
    Column("status", Text),
    Column("noop", Boolean),
    Column("noop_pending", Boolean),
    Column("corrective_change", Boolean),
    Column("transaction_uuid", Text),
    Column("catalog_uuid", Text),
    Column("code_id", Text),
    Column("job_id", Text),
    Column("cached_catalog_status", Text),
    Column("logs", PackedJson),
    Column("metrics", PackedJson),
    Index("ix_reports_node_id_producer_timestamp", "node_id", "producer_timestamp"),
)

events = Table(
    "events",
    metadata,
    Column("id", Key, primary_key=True),
    Column("report_id", Key, ForeignKey("reports.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("status", Text, nullable=False),
    Column("timestamp", Microseconds, nullable=False, index=True),
    Column("resource_type", Text, nullable=False),
    Column("resource_title", Text, nullable=False),
    Column("property", Text),
    Column("name", Text),
    Column("new_value", JsonColumn),
    Column("old_value", JsonColumn),
    Column("message", Text),
    Column("file", Text),
    Column("line", Integer),
    Column("containment_path", JsonColumn(none_as_null=True)),
    Column("containing_class", Text),
    Column("corrective_change", Boolean),
    Index("ix_events_resource_type_resource_title", "resource_type", "resource_title"),
)

packages = Table(
    "packages",
    metadata,
    Column("id", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("provider", Text, nullable=False),
    UniqueConstraint("name", "version", "provider"),
)

node_packages = Table(
    "node_packages",
    metadata,
    _node(primary=True),
    Column("package_id", Key, ForeignKey("packages.id"), primary_key=True, index=True),
    sqlite_with_rowid=False,
)

catalog_inputs = Table(
    "catalog_inputs",
    metadata,
    _node(primary=True),
    Column("producer_timestamp", Microseconds, nullable=False),
    Column("catalog_uuid", Text, nullable=False),
    Column("inputs", JsonColumn, nullable=False),
)
"""`inputs` are distinct pairs of a type and a name, sorted."""


def same_names(table: Table, record: type[Any]) -> tuple[str, ...]:
    """Return the names of the columns of a table that are also fields of a dataclass."""
    return tuple(field.name for field in fields(record) if field.name in table.c)
