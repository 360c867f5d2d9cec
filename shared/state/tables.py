"""The tables of the state that masters share. Each name begins with `state_`, for a store may have its tables in the same database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import BigInteger, Boolean, Column, DateTime, Integer, MetaData, Table, Text

from ..database.schema import Schema

metadata = MetaData()

SCHEMA = Schema(metadata, Path(__file__).parent / "migrations", "state_version", 0x62756E72616B77)

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
