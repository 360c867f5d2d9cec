"""The tables of the state that masters share. Each name begins with `state_`, for a store may have its tables in the same database."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import MetaData

from ..database.schema import Schema

metadata = MetaData()

SCHEMA = Schema(metadata, Path(__file__).parent / "migrations", "state_version", 0x62756E72616B77)
