"""
Inserting and looking up many rows at once.

A driver that sends PostgreSQL a statement for each row takes three times the processor time of one statement with an array for each
column, and so does the server. SQLite is quickest with a prepared statement for each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from sqlalchemy import Column, Connection, Dialect, Executable, Table, TextClause, bindparam, insert, select, text, tuple_
from sqlalchemy.dialects import sqlite

from .columns import JsonColumn, json_text

_CHUNK = 500
"""Rows that one statement looks up on SQLite."""


class BulkInsert:
    """
    The insertion of rows into a table.

    Args:
        table: The table. Its key `id` is counted up by the database.
        ignore_existing: Rows that are there already are left as they are.
    """

    def __init__(self, table: Table, *, ignore_existing: bool = False) -> None:
        self._table = table
        self._ignore_existing = ignore_existing
        self._columns = [column for column in table.columns if column.name != "id"]
        self._for_each: Executable = sqlite.insert(table).on_conflict_do_nothing() if ignore_existing else insert(table)

    @cached_property
    def _with_arrays(self) -> TextClause:
        return insert_from_arrays(self._table, self._columns, ignore_existing=self._ignore_existing)

    def insert(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert rows, in their order; each has a value for every column but `id`."""
        if not rows:
            return
        if connection.dialect.name == "sqlite":
            connection.execute(self._for_each, rows)
        else:
            connection.execute(self._with_arrays, {column.name: _values(column, rows) for column in self._columns})


def insert_from_arrays(table: Table, columns: Sequence[Column[Any]], *, ignore_existing: bool = False) -> TextClause:
    """
    Return PostgreSQL's statement that inserts many rows; its parameters are lists of values by the names of the columns.

    A value of a JSON column is a text. With `ignore_existing` rows that are there already are left as they are.
    """
    from sqlalchemy.dialects import postgresql  # 3 MB, which a store on SQLite does without

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    names = ", ".join(column.name for column in columns)
    arrays = ", ".join(f"CAST(:{column.name} AS {_array_type(column, dialect)}[])" for column in columns)
    values = ", ".join(f"CAST({column.name} AS jsonb)" if _is_json(column) else column.name for column in columns)
    conflict = " ON CONFLICT DO NOTHING" if ignore_existing else ""
    # All names are those of our own tables.
    return text(f"INSERT INTO {table.name} ({names}) SELECT {values} FROM unnest({arrays}) AS new ({names}){conflict}")  # noqa: S608


class BulkLookup:
    """The lookup of rows by unique texts; PostgreSQL locks the rows that it finds against being deleted."""

    def __init__(self, table: Table, *keys: Column[str]) -> None:
        names = [column.name for column in keys]
        self._names = names
        found = ", ".join(f"old.{name}" for name in ("id", *names))
        arrays = ", ".join(f"CAST(:{name} AS text[])" for name in names)
        equal = " AND ".join(f"old.{name} = wanted.{name}" for name in names)
        order = ", ".join(f"old.{name}" for name in names)
        # All names are those of our own tables.
        self._with_arrays = text(
            f"SELECT {found} FROM unnest({arrays}) AS wanted ({', '.join(names)}) "  # noqa: S608
            f"JOIN {table.name} AS old ON {equal} ORDER BY {order} FOR KEY SHARE OF old"
        )
        key = keys[0] if len(keys) == 1 else tuple_(*keys)
        self._with_values = select(table.c.id, *keys).where(key.in_(bindparam("keys", expanding=True)))

    def find(self, connection: Connection, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        """Return the ids of those of the rows that exist."""
        if connection.dialect.name == "sqlite":
            single = len(self._names) == 1
            return {
                tuple(key): id
                for start in range(0, len(keys), _CHUNK)
                for id, *key in connection.execute(
                    self._with_values, {"keys": [key[0] if single else key for key in keys[start : start + _CHUNK]]}
                )
            }
        arrays = {name: [key[position] for key in keys] for position, name in enumerate(self._names)}
        return {tuple(key): id for id, *key in connection.execute(self._with_arrays, arrays)}


def _is_json(column: Column[object]) -> bool:
    return isinstance(column.type, JsonColumn)


def _array_type(column: Column[object], dialect: Dialect) -> str:
    return "text" if _is_json(column) else column.type.compile(dialect)


def _values(column: Column[object], rows: Sequence[Mapping[str, object]]) -> list[object]:
    name = column.name
    if not isinstance(column.type, JsonColumn):
        return [row[name] for row in rows]
    none: object = None if column.type.none_as_null else "null"
    return [none if (value := row[name]) is None else str(json_text(value)) for row in rows]
