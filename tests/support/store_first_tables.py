"""The first tables of the store, as version 001 of them made them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic.migration import MigrationContext
from alembic.operations import Operations
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql import JSONB

from store.database.schema import SCHEMA

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
JSON = sa.Text().with_variant(JSONB(), "postgresql")


def create_first_tables(connection: Connection) -> None:
    """Create the tables in an empty database, under their version."""
    op = Operations(MigrationContext.configure(connection))
    op.create_table(
        "environments",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("name", name="uq_environments_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "fact_paths",
        sa.Column("id", KEY, nullable=False),
        sa.Column("path", JSON, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("depth", sa.Integer(), nullable=False),
        sa.Column("pointer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_fact_paths"),
        sa.UniqueConstraint("name", "pointer", "type", name="uq_fact_paths_name_pointer_type"),
    )
    op.create_index("ix_fact_paths_path", "fact_paths", ["path"])
    op.create_table(
        "nodes",
        sa.Column("id", KEY, nullable=False),
        sa.Column("certname", sa.Text(), nullable=False),
        sa.Column("deactivated", sa.BigInteger()),
        sa.Column("expired", sa.BigInteger()),
        sa.Column("expires_facts", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("expires_facts_updated", sa.BigInteger()),
        sa.Column("latest_report_id", KEY),
        sa.Column("latest_report_time", sa.BigInteger()),
        sa.PrimaryKeyConstraint("id", name="pk_nodes"),
        sa.UniqueConstraint("certname", name="uq_nodes_certname"),
    )
    op.create_table(
        "packages",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("provider", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_packages"),
        sa.UniqueConstraint("name", "version", "provider", name="uq_packages_name_version_provider"),
    )
    op.create_table(
        "parameter_sets",
        sa.Column("id", KEY, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("parameters", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_parameter_sets"),
        sa.UniqueConstraint("hash", name="uq_parameter_sets_hash"),
    )
    op.create_table(
        "producers",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_producers"),
        sa.UniqueConstraint("name", name="uq_producers_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "catalog_inputs",
        sa.Column("node_id", KEY, nullable=False),
        sa.Column("producer_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("catalog_uuid", sa.Text(), nullable=False),
        sa.Column("inputs", JSON, nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_catalog_inputs_node_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node_id", name="pk_catalog_inputs"),
    )
    op.create_table(
        "catalogs",
        sa.Column("node_id", KEY, nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("producer_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("environment_id", KEY),
        sa.Column("producer_id", KEY),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("edges_hash", sa.Text()),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("transaction_uuid", sa.Text()),
        sa.Column("catalog_uuid", sa.Text()),
        sa.Column("code_id", sa.Text()),
        sa.Column("job_id", sa.Text()),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_catalogs_node_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], name="fk_catalogs_environment_id"),
        sa.ForeignKeyConstraint(["producer_id"], ["producers.id"], name="fk_catalogs_producer_id"),
        sa.PrimaryKeyConstraint("node_id", name="pk_catalogs"),
    )
    op.create_table(
        "facts",
        sa.Column("node_id", KEY, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", JSON, nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_facts_node_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("node_id", "name", name="pk_facts"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_facts_name", "facts", ["name"])
    op.create_table(
        "factsets",
        sa.Column("node_id", KEY, nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("producer_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("environment_id", KEY),
        sa.Column("producer_id", KEY),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("packages_hash", sa.Text()),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_factsets_node_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], name="fk_factsets_environment_id"),
        sa.ForeignKeyConstraint(["producer_id"], ["producers.id"], name="fk_factsets_producer_id"),
        sa.PrimaryKeyConstraint("node_id", name="pk_factsets"),
    )
    op.create_table(
        "node_packages",
        sa.Column("node_id", KEY, nullable=False),
        sa.Column("package_id", KEY, nullable=False),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_node_packages_node_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["package_id"], ["packages.id"], name="fk_node_packages_package_id"),
        sa.PrimaryKeyConstraint("node_id", "package_id", name="pk_node_packages"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_node_packages_package_id", "node_packages", ["package_id"])
    op.create_table(
        "reports",
        sa.Column("id", KEY, nullable=False),
        sa.Column("node_id", KEY, nullable=False),
        sa.Column("hash", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), server_default="agent", nullable=False),
        sa.Column("puppet_version", sa.Text(), nullable=False),
        sa.Column("report_format", sa.Integer(), nullable=False),
        sa.Column("configuration_version", sa.Text(), nullable=False),
        sa.Column("start_time", sa.BigInteger(), nullable=False),
        sa.Column("end_time", sa.BigInteger(), nullable=False),
        sa.Column("producer_timestamp", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.Column("environment_id", KEY),
        sa.Column("producer_id", KEY),
        sa.Column("status", sa.Text()),
        sa.Column("noop", sa.Boolean()),
        sa.Column("noop_pending", sa.Boolean()),
        sa.Column("corrective_change", sa.Boolean()),
        sa.Column("transaction_uuid", sa.Text()),
        sa.Column("catalog_uuid", sa.Text()),
        sa.Column("code_id", sa.Text()),
        sa.Column("job_id", sa.Text()),
        sa.Column("cached_catalog_status", sa.Text()),
        sa.Column("logs", sa.LargeBinary()),
        sa.Column("metrics", sa.LargeBinary()),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_reports_node_id", ondelete="CASCADE"),
        sa.UniqueConstraint("hash", name="uq_reports_hash"),
        sa.ForeignKeyConstraint(["environment_id"], ["environments.id"], name="fk_reports_environment_id"),
        sa.ForeignKeyConstraint(["producer_id"], ["producers.id"], name="fk_reports_producer_id"),
        sa.PrimaryKeyConstraint("id", name="pk_reports"),
    )
    op.create_index("ix_reports_node_id_producer_timestamp", "reports", ["node_id", "producer_timestamp"])
    op.create_index("ix_reports_producer_timestamp", "reports", ["producer_timestamp"])
    op.create_table(
        "resources",
        sa.Column("id", KEY, nullable=False),
        sa.Column("node_id", KEY, nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("parameter_set_id", KEY, nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("exported", sa.Boolean(), nullable=False),
        sa.Column("file", sa.Text()),
        sa.Column("line", sa.Integer()),
        sa.ForeignKeyConstraint(["node_id"], ["nodes.id"], name="fk_resources_node_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["parameter_set_id"], ["parameter_sets.id"], name="fk_resources_parameter_set_id"),
        sa.PrimaryKeyConstraint("id", name="pk_resources"),
        sa.UniqueConstraint("node_id", "type", "title", name="uq_resources_node_id_type_title"),
    )
    op.create_index("ix_resources_exported", "resources", ["type"], sqlite_where=sa.text("exported"), postgresql_where=sa.text("exported"))
    op.create_index("ix_resources_parameter_set_id", "resources", ["parameter_set_id"])
    op.create_index("ix_resources_type_title", "resources", ["type", "title"])
    op.create_table(
        "edges",
        sa.Column("source_id", KEY, nullable=False),
        sa.Column("target_id", KEY, nullable=False),
        sa.Column("relationship", sa.SmallInteger(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["resources.id"], name="fk_edges_source_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["target_id"], ["resources.id"], name="fk_edges_target_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("source_id", "target_id", "relationship", name="pk_edges"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_edges_target_id", "edges", ["target_id"])
    op.create_table(
        "events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("report_id", KEY, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("timestamp", sa.BigInteger(), nullable=False),
        sa.Column("resource_type", sa.Text(), nullable=False),
        sa.Column("resource_title", sa.Text(), nullable=False),
        sa.Column("property", sa.Text()),
        sa.Column("name", sa.Text()),
        sa.Column("new_value", JSON),
        sa.Column("old_value", JSON),
        sa.Column("message", sa.Text()),
        sa.Column("file", sa.Text()),
        sa.Column("line", sa.Integer()),
        sa.Column("containment_path", JSON),
        sa.Column("containing_class", sa.Text()),
        sa.Column("corrective_change", sa.Boolean()),
        sa.ForeignKeyConstraint(["report_id"], ["reports.id"], name="fk_events_report_id", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    op.create_index("ix_events_report_id", "events", ["report_id"])
    op.create_index("ix_events_resource_type_resource_title", "events", ["resource_type", "resource_title"])
    op.create_index("ix_events_timestamp", "events", ["timestamp"])
    SCHEMA.create_version(connection, "001")
