"""
Inserting, changing, removing and looking up many rows at once.

A driver that sends PostgreSQL a statement for each row takes three times the processor time of one statement with an array for each
column, and so does the server. SQLite is quickest with a prepared statement for each row, which its driver executes: SQLAlchemy would
take several times as long to prepare the parameters of a row as SQLite to write it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import orjson
from sqlalchemy import Column, Connection, Dialect, Table, Text, TextClause, and_, bindparam, delete, text
from sqlalchemy.schema import ColumnCollectionConstraint, Index

from ..commands.commands import MAX_KEY, PayloadRejected
from .columns import JsonColumn, json_text


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
        indexes = [item for item in (*table.indexes, *table.constraints) if isinstance(item, Index | ColumnCollectionConstraint)]
        keys = {column for index in indexes for column in index.columns}
        self._is_key = [column in keys and isinstance(column.type, Text | JsonColumn) for column in self._columns]
        names = [column.name for column in self._columns]
        conflict = " ON CONFLICT DO NOTHING" if ignore_existing else ""
        # All names are those of our own tables.
        self._for_each = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}){conflict}"  # noqa: S608

    @cached_property
    def _with_arrays(self) -> TextClause:
        return insert_from_arrays(self._table, self._columns, ignore_existing=self._ignore_existing)

    def insert(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert rows, in their order; each has a value for every column but `id`. Raises PayloadRejected for a key over MAX_KEY."""
        if rows:
            self.insert_values(connection, self.values(rows))

    def values(self, rows: Sequence[Mapping[str, object]]) -> dict[str, list[object]]:
        """Return the values of rows by column, as `insert_values` takes them. Raises PayloadRejected for a key over MAX_KEY."""
        values = {column.name: _values(column, rows) for column in self._columns}
        self.check_keys({column.name: values[column.name] for column, is_key in zip(self._columns, self._is_key, strict=True) if is_key})
        return values

    def insert_values(self, connection: Connection, values: Mapping[str, Sequence[object]]) -> None:
        """Insert rows, of which there is at least one."""
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(self._for_each, list(zip(*values.values(), strict=True)))
        else:
            connection.execute(self._with_arrays, values)

    def check_keys(self, texts_by_column: Mapping[str, Sequence[object]]) -> None:
        """Raise PayloadRejected where a text of one of these columns, all of them keys, is longer than MAX_KEY."""
        for column, texts in texts_by_column.items():
            if (length := max((len(str(text)) for text in texts), default=0)) > MAX_KEY:
                message = f"{self._table.name} have a {column} of {length} characters; at most {MAX_KEY} are allowed"
                raise PayloadRejected(message.replace("_", " "))


class BulkUpdate:
    """
    The update of rows of a table that are found by their keys.

    Args:
        keys: The columns by which a row is found; their values are unique.
        columns: The columns that change.
    """

    def __init__(self, keys: Sequence[Column[Any]], columns: Sequence[Column[Any]]) -> None:
        self._keys = keys
        self._columns = columns
        self._table = keys[0].table
        assignments = ", ".join(f"{column.name} = ?" for column in columns)
        condition = " AND ".join(f"{column.name} = ?" for column in keys)
        # All names are those of our own tables.
        self._for_each = f"UPDATE {self._table.name} SET {assignments} WHERE {condition}"  # noqa: S608

    @cached_property
    def _with_arrays(self) -> TextClause:
        from sqlalchemy.dialects import postgresql  # 3 MB, which a store on SQLite does without

        dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
        columns = [*self._columns, *self._keys]
        name = self._table.name
        assignments = ", ".join(f"{column.name} = {_from_array('new.', column)}" for column in self._columns)
        condition = " AND ".join(f"{name}.{column.name} = new.{column.name}" for column in self._keys)
        # All names are those of our own tables.
        return text(
            f"UPDATE {name} SET {assignments} FROM unnest({_arrays(columns, dialect)}) "  # noqa: S608
            f"AS new ({', '.join(column.name for column in columns)}) WHERE {condition}"
        )

    def update(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Change rows; each has a value for every key and column."""
        if not rows:
            return
        columns = [*self._columns, *self._keys]
        values = [_values(column, rows) for column in columns]
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(self._for_each, list(zip(*values, strict=True)))
        else:
            connection.execute(self._with_arrays, {column.name: array for column, array in zip(columns, values, strict=True)})


class BulkDelete:
    """The removal of the rows of a table that these columns find."""

    def __init__(self, *keys: Column[Any]) -> None:
        self._names = [column.name for column in keys]
        table = keys[0].table
        # All names are those of our own tables.
        self._for_each = f"DELETE FROM {table.name} WHERE {' AND '.join(f'{name} = ?' for name in self._names)}"  # noqa: S608
        self._statement = delete(table).where(and_(*(column == bindparam(column.name) for column in keys)))

    def delete(self, connection: Connection, keys: Sequence[tuple[object, ...]]) -> None:
        """Remove rows; each key has a value for each of the columns."""
        if not keys:
            return
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql(self._for_each, list(keys))
        else:
            connection.execute(self._statement, [dict(zip(self._names, key, strict=True)) for key in keys])


def insert_from_arrays(table: Table, columns: Sequence[Column[Any]], *, ignore_existing: bool = False) -> TextClause:
    """
    Return PostgreSQL's statement that inserts many rows; its parameters are lists of values by the names of the columns.

    A value of a JSON column is a text. With `ignore_existing` rows that are there already are left as they are.
    """
    from sqlalchemy.dialects import postgresql  # 3 MB, which a store on SQLite does without

    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    names = ", ".join(column.name for column in columns)
    values = ", ".join(_from_array("", column) for column in columns)
    conflict = " ON CONFLICT DO NOTHING" if ignore_existing else ""
    # All names are those of our own tables.
    return text(
        f"INSERT INTO {table.name} ({names}) SELECT {values} FROM unnest({_arrays(columns, dialect)}) AS new ({names}){conflict}"  # noqa: S608
    )


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
        values = ["wanted.value"] if len(names) == 1 else [f"json_extract(wanted.value, '$[{number}]')" for number in range(len(names))]
        conditions = " AND ".join(f"old.{name} = {value}" for name, value in zip(names, values, strict=True))
        # CROSS: the wanted rows are read from end to end, not the table.
        self._with_json = f"SELECT {found} FROM json_each(?) AS wanted CROSS JOIN {table.name} AS old ON {conditions}"  # noqa: S608

    def find(self, connection: Connection, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], int]:
        """Return the ids of those of the rows that exist."""
        if connection.dialect.name == "sqlite":
            wanted = orjson.dumps([key[0] for key in keys] if len(self._names) == 1 else keys).decode()
            return {tuple(key): id for id, *key in connection.exec_driver_sql(self._with_json, (wanted,)).all()}
        arrays = {name: [key[position] for key in keys] for position, name in enumerate(self._names)}
        return {tuple(key): id for id, *key in connection.execute(self._with_arrays, arrays).all()}


def _is_json(column: Column[Any]) -> bool:
    return isinstance(column.type, JsonColumn)


def _arrays(columns: Sequence[Column[Any]], dialect: Dialect) -> str:
    """Return the parameters of PostgreSQL's `unnest`, one array for each column."""
    types = ["text" if _is_json(column) else column.type.compile(dialect) for column in columns]
    return ", ".join(f"CAST(:{column.name} AS {type_name}[])" for column, type_name in zip(columns, types, strict=True))


def _from_array(prefix: str, column: Column[Any]) -> str:
    return f"CAST({prefix}{column.name} AS jsonb)" if _is_json(column) else prefix + column.name


def _values(column: Column[Any], rows: Sequence[Mapping[str, object]]) -> list[object]:
    name = column.name
    if not isinstance(column.type, JsonColumn):
        return [row[name] for row in rows]
    none: object = None if column.type.none_as_null else "null"
    return [none if (value := row[name]) is None else str(json_text(value)) for row in rows]
