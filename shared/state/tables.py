"""The tables of the state that masters share. Each name begins with `state_`, for a store may have its tables in the same database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import BigInteger, Boolean, Column, DateTime, ForeignKey, Identity, Index, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from ..database.schema import Schema

metadata = MetaData()

SCHEMA = Schema(metadata, Path(__file__).parent / "migrations", "state_version", 0x62756E72616B77)

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
    Column("deployment", BigInteger, nullable=False),  # the one that switched it, or removed it
    Column("switched_at", DateTime(timezone=True), nullable=False),
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
    Column("listed", ARRAY(Text), nullable=False),  # the mounts of plugins
    Column("has_catalog", Boolean, nullable=False),
)
