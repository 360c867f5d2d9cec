"""The tables of the state that masters share. Each name begins with `state_`, for a store may have its tables in the same database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    DateTime,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
)
from sqlalchemy.dialects.postgresql import ARRAY

from ..database.schema import Schema

metadata = MetaData()

SCHEMA = Schema(metadata, Path(__file__).parent / "migrations", "state_version", 0x62756E72616B77)


def _instances(name: str) -> Table:
    """Declare a table of an indirection's instances, each in JSON, under its name; `digest` is the body's SHA-256."""
    return Table(
        name,
        metadata,
        Column("name", Text, primary_key=True),
        Column("digest", LargeBinary, nullable=False),
        Column("updated", DateTime(timezone=True), nullable=False, server_default=func.now()),
        Column("body", LargeBinary, nullable=False),
    )


# Nodes, facts, reports, files

facts = _instances("state_facts")
nodes = _instances("state_nodes")

reports = Table(
    "state_reports",
    metadata,
    Column("certname", Text, primary_key=True),
    # When a master received it. Two of one node differ by a microsecond at least.
    Column("received", DateTime(timezone=True), primary_key=True),
    Column("status", Text, nullable=False),
    Column("environment", Text, nullable=False),
    Column("puppet_version", Text, nullable=False),
    Column("noop", Boolean, nullable=False),
    Column("corrective_change", Boolean, nullable=False),
    Column("cached_catalog", Boolean, nullable=False),
    Column("body", LargeBinary, nullable=False),  # YAML, as in files
    Index("state_reports_received", "received"),
)

bucket_files = Table(
    "state_bucket_files",
    metadata,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    Column("algorithm", Text, nullable=False),
    Column("value", Text, nullable=False),  # the checksum in hex
    Column("size", BigInteger, nullable=False),
    Column("stored", DateTime(timezone=True), nullable=False, server_default=func.now()),
    UniqueConstraint("algorithm", "value"),
)

bucket_chunks = Table(
    "state_bucket_chunks",
    metadata,
    Column("file_id", ForeignKey(bucket_files.c.id, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("data", LargeBinary, nullable=False),
)

bucket_paths = Table(
    "state_bucket_paths",
    metadata,
    Column("file_id", ForeignKey(bucket_files.c.id, ondelete="CASCADE"), primary_key=True),
    Column("number", BigInteger, Identity(always=True), primary_key=True),  # their order
    Column("path", LargeBinary, nullable=False),  # need not be UTF-8
)

bucket_usage = Table(
    "state_bucket_usage",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("bytes", BigInteger, nullable=False),
)
"""One row: the bytes of all files in the bucket, with `ENTRY_OVERHEAD` for each. Without it they are counted once."""

# --- the certificate authority. Serials are 40 hexadecimal digits, which sort as the numbers do.

CA = Table(
    "state_ca",
    metadata,
    Column("id", Integer, primary_key=True),  # 1: there is one CA
    Column("version", BigInteger, nullable=False),  # rises with each change of what follows but the serial
    Column("certificates", Text, nullable=False),
    Column("certificates_written", DateTime(timezone=True), nullable=False),
    Column("crls", Text, nullable=False),
    Column("crls_written", DateTime(timezone=True), nullable=False),
    Column("key", Text),  # encrypted; NULL: each master has it as a file
    Column("next_serial", Text, nullable=False),
)

CA_INVENTORY = Table(
    "state_ca_inventory",
    metadata,
    Column("serial", Text, primary_key=True),
    Column("not_before", DateTime(timezone=True), nullable=False),
    Column("not_after", DateTime(timezone=True), nullable=False),
    Column("subject", Text, nullable=False),
    Column("name", Text, nullable=False, index=True),
    Column("signed_by", Text, nullable=False),  # the master's certname, "" where that is not known
)

CA_REQUESTS = Table(
    "state_ca_requests",
    metadata,
    Column("name", Text, primary_key=True),
    Column("pem", Text, nullable=False),
    Column("written", DateTime(timezone=True), nullable=False),
    Column("received_by", Text, nullable=False),
    Column("is_decided", Boolean, nullable=False),  # autosign has left it pending
)

CA_SIGNED = Table(
    "state_ca_signed",
    metadata,
    Column("name", Text, primary_key=True),
    Column("pem", Text, nullable=False),
    Column("serial", Text, nullable=False),
    Column("written", DateTime(timezone=True), nullable=False),
)

# Code: the versions of environments, the masters that have them, and the version of each run.

masters = Table(
    "state_masters",
    metadata,
    Column("certname", Text, primary_key=True),
    Column("seen", DateTime(timezone=True), nullable=False),
    Column("problem", Text, nullable=False),  # why it cannot answer with the current versions; '' when it can
)

environments = Table(
    "state_environments",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("version", Text),  # the current one; NULL: the environment was removed
    Column("deployment", BigInteger, nullable=False),  # the one that switched it, or removed it, or began its rollout
    Column("switched_at", DateTime(timezone=True), nullable=False),
    # Whether a rollout decides on the versions of new runs, or may begin to at any moment.
    Column("is_rolling", Boolean, nullable=False, server_default=false()),
)

versions = Table(
    "state_versions",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("version", Text, primary_key=True),  # the code id
    Column("commit", Text, nullable=False),
    Column("ref", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("modules", Text, nullable=False),  # the installer of its modules; '' without a Puppetfile
    Column("digest", Text, nullable=False),  # of all its files
    Column("deployment", BigInteger),  # the last one that deployed it, which is the order of versions; NULL: it never was current
    Column("deployed_at", DateTime(timezone=True), nullable=False),
    Column("replaced_at", DateTime(timezone=True)),
)

deployments = Table(
    "state_deployments",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("environment", Text, nullable=False),
    Column("version", Text, nullable=False),  # '' for the environment's removal
    Column("is_new", Boolean, nullable=False),  # False for a rollback, which leaves the order of versions as it is
    Column("adopt", Boolean, nullable=False),
    # Whether a rollout begins, for which masters need the version, rather than a switch to it.
    Column("is_rollout", Boolean, nullable=False, server_default=false()),
    Column("requested_by", Text, nullable=False),
    Column("requested_at", DateTime(timezone=True), nullable=False),
    Column("state", Text, nullable=False),  # pending, done or failed
    Column("problem", Text, nullable=False),
)
Index("state_deployments_pending", deployments.c.environment, unique=True, postgresql_where=deployments.c.state == "pending")

answers = Table(
    "state_deployment_answers",
    metadata,
    Column("deployment", BigInteger, ForeignKey(deployments.c.id, ondelete="CASCADE"), primary_key=True),
    Column("certname", Text, primary_key=True),
    Column("problem", Text, nullable=False),  # '' when the master has the version
)

pushes = Table(
    "state_pushes",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("environment", Text, nullable=False),
    Column("ref", Text, nullable=False),  # '' when the branch was removed
    Column("taken_by", Text),  # the master that deploys it
    Column("taken_run", Text),  # the start of that master's process
)
Index("state_pushes_waiting", pushes.c.environment, pushes.c.ref == "", unique=True, postgresql_where=pushes.c.taken_by.is_(None))

runs = Table(
    "state_runs",
    metadata,
    Column("certname", Text, primary_key=True),
    Column("environment", Text, primary_key=True),
    Column("version", Text, nullable=False),
    Column("began", DateTime(timezone=True), nullable=False),
    Column("listed", ARRAY(Text), nullable=False),  # the mounts of plugins, and transactions of catalogs
    Column("has_catalog", Boolean, nullable=False),
)

# Rollouts: the latest of each environment. What decides on versions of runs has columns of its own.

rollouts = Table(
    "state_rollouts",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("revision", BigInteger, nullable=False),  # rises with each change
    Column("is_active", Boolean, nullable=False),
    Column("is_stopped", Boolean, nullable=False),
    Column("before", Text, nullable=False),
    Column("after", Text, nullable=False),
    Column("wave", Integer, nullable=False),  # the last that is open
    Column("share", Double, nullable=False),  # the place of a node, 0 to 100, up to which those that no query found are in open waves
    Column("acted_by", Text),  # the master that does what is due
    Column("body", LargeBinary, nullable=False),  # JSON, without the nodes
)

rollout_nodes = Table(
    "state_rollout_nodes",
    metadata,
    Column("environment", Text, ForeignKey(rollouts.c.environment, ondelete="CASCADE"), primary_key=True),
    Column("certname", Text, primary_key=True),
    Column("revision", BigInteger, nullable=False),  # that of the rollout in which it changed last
    Column("wave", Integer, nullable=False),
    Column("touched", Boolean, nullable=False),  # whether it has got the new version
    Column("body", LargeBinary),  # JSON; NULL: a query found the node, and nothing else is known of it
)

rollout_predictions = Table(
    "state_rollout_predictions",
    metadata,
    Column("environment", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),  # JSON
)

# Orders to run (`puppet run`), which live as long as somebody follows them.

orders = Table(
    "state_orders",
    metadata,
    Column("id", Text, primary_key=True),
    Column("body", Text, nullable=False),  # the order as agents get it, in JSON
    Column("concurrency", BigInteger, nullable=False),
    Column("follow", Boolean, nullable=False),  # whether reports of other runs count as well
    Column("ends", DateTime(timezone=True), nullable=False),  # unless the master that took the order puts it off
)

order_nodes = Table(
    "state_order_nodes",
    metadata,
    Column("id", Text, ForeignKey(orders.c.id, ondelete="CASCADE"), primary_key=True),
    Column("node", Text, primary_key=True),
    Column("state", Text, nullable=False),  # asked, here (at some master, or expected there), sent, over
    Column("result", Text),  # in JSON, once it is over
)
