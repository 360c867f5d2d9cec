"""The tables of the state that masters share. Each name begins with `state_`, for a store may have its tables in the same database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Column, DateTime, LargeBinary, MetaData, Table, Text, func

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
