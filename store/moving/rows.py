"""The rows of a table in a form that both kinds of database read and write, and the comparison of two tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, LargeBinary, MetaData, Select, Table, Text, cast, func, insert, select, tuple_

from ..database.bulk import insert_from_arrays
from ..database.columns import JsonColumn, PackedJson, json_text
from ..jsontext import load_stored

StoredRow = tuple[Any, ...]
"""The values of all columns in their order; JSON is the text that `json_text` returns, and packed JSON its bytes."""

_FETCHED = 200  # rows that a driver fetches at once
_REPORTED = 2000  # rows between two reports of progress
_HASH_BYTES = 16
_UNUSUAL_NUMBER = re.compile(r"[0-9][eE]|-0\.0")


@dataclass(frozen=True, slots=True)
class TableDigest:
    """The number of rows of a table, and a hash of them in hexadecimal digits. Equal rows have equal hashes in any order."""

    rows: int
    hash: str


class StoredTable:
    """
    A table of the store, whose rows are read and written without a look into their values.

    Attributes:
        name: The table's name.
    """

    def __init__(self, table: Table) -> None:
        self.name = table.name
        self._table = table
        self._plain = Table(table.name, MetaData(), *(_plain_column(column) for column in table.columns))
        self._key = [self._plain.c[column.name] for column in table.primary_key.columns]
        self._key_positions = [list(table.columns).index(column) for column in table.primary_key.columns]
        self._json_positions = [position for position, column in enumerate(table.columns) if isinstance(column.type, JsonColumn)]

    def count(self, connection: Connection) -> int:
        """Return the number of rows."""
        return connection.scalar(select(func.count()).select_from(self._plain)) or 0

    def key_of(self, row: StoredRow) -> list[Any]:
        """Return the values of the primary key of a row."""
        return [row[position] for position in self._key_positions]

    def read(self, connection: Connection, after: Sequence[Any] | None = None) -> Iterator[StoredRow]:
        """Yield the rows behind a key, or all of them, in the order of their keys; a few at a time are in memory."""
        is_postgresql = connection.dialect.name == "postgresql"
        with connection.execute(self._selection(is_postgresql, after), execution_options={"yield_per": _FETCHED}) as result:
            for row in result:
                if is_postgresql and self._json_positions:
                    values = list(row)
                    for position in self._json_positions:
                        if values[position] is not None:
                            values[position] = str(json_text(load_stored(values[position].encode())))
                    yield tuple(values)
                else:
                    yield tuple(row)

    def _selection(self, is_postgresql: bool, after: Sequence[Any] | None) -> Select[Any]:
        columns: list[ColumnElement[Any]] = list(self._plain.columns)
        if is_postgresql:
            for position in self._json_positions:
                columns[position] = cast(columns[position], Text)
        selection = select(*columns).order_by(*self._key)
        if after is None:
            return selection
        return selection.where(self._key[0] > after[0] if len(self._key) == 1 else tuple_(*self._key) > tuple_(*after))

    def write(self, connection: Connection, rows: Sequence[StoredRow]) -> None:
        """Insert rows, with their keys."""
        names = [column.name for column in self._plain.columns]
        if connection.dialect.name == "sqlite":
            connection.execute(insert(self._plain), [dict(zip(names, row, strict=True)) for row in rows])
        else:
            statement = insert_from_arrays(self._table, list(self._table.columns))
            connection.execute(statement, {name: list(values) for name, values in zip(names, zip(*rows, strict=True), strict=True)})

    def digest(self, connection: Connection, on_progress: Callable[[int], None]) -> TableDigest:
        """Read all rows; `on_progress` is called with the number of those read since the last call."""
        total, number, modulus = 0, 0, 1 << 8 * _HASH_BYTES
        for row in self.read(connection):
            values = list(row)
            for position in self._json_positions:
                if values[position] is not None:
                    values[position] = _with_usual_numbers(values[position])
            total = (total + int.from_bytes(blake2b(repr(values).encode(), digest_size=_HASH_BYTES).digest(), "big")) % modulus
            number += 1
            if number % _REPORTED == 0:
                on_progress(_REPORTED)
        on_progress(number % _REPORTED)
        return TableDigest(number, f"{total:0{2 * _HASH_BYTES}x}")


def size_of(row: StoredRow) -> int:
    """Return about how many bytes a row takes in memory."""
    return 64 + sum(len(value) if isinstance(value, str | bytes) else 16 for value in row)


def _plain_column(column: Column[Any]) -> Column[Any]:
    """Return a column that hands over its JSON as it is stored."""
    if isinstance(column.type, JsonColumn):
        return Column(column.name, Text)
    return Column(column.name, LargeBinary if isinstance(column.type, PackedJson) else column.type)


def _with_usual_numbers(text: str) -> str:
    """Return JSON with the numbers that `json_text` writes: 1e16 and 10000000000000000 are the same to jsonb, and so is -0.0 to 0.0."""
    return json_text(load_stored(text.encode())) if _UNUSUAL_NUMBER.search(text) else text
