"""Column types that mean the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import re
import zlib
from decimal import Decimal
from typing import Any

from sqlalchemy import BigInteger, Integer, LargeBinary, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from ..jsontext import dump_json, load_stored

Key = BigInteger().with_variant(Integer, "sqlite")
"""A key that the database counts up; SQLite does so for INTEGER only."""

Microseconds = BigInteger
"""A time: microseconds since 1970-01-01T00:00:00Z."""

_LEVEL = 1

_INTEGER_FLOAT = 1e16  # from here on a float is written with an exponent and has no fraction


class JsonText(str):
    """A JSON value as the text that `json_text` returns, which a JsonColumn takes for the value."""

    __slots__ = ()


_NUMBERS_OF_JSONB = re.compile(r"(?:^|[:,\[])-?(?:\d[\d.]*e|0\.0)")  # such a number is rare; that a string looks like one does no harm


def json_text(value: object) -> JsonText:
    """
    Return JSON as a compact text with sorted keys: equal values are equal texts (but for 7 and 7.0).

    Numbers are those that PostgreSQL makes of them: 1e22 is an integer, and -0.0 is 0.0.
    """
    if type(value) is JsonText:
        return value
    text = dump_json(value).decode()
    if not isinstance(value, str) and _NUMBERS_OF_JSONB.search(text):
        text = dump_json(_as_jsonb(value)).decode()
    return JsonText(text)


def _as_jsonb(value: object) -> object:
    if isinstance(value, float):
        return int(Decimal(repr(value))) if abs(value) >= _INTEGER_FLOAT else value + 0.0  # of which -0.0 becomes 0.0
    if isinstance(value, list | tuple):
        return [_as_jsonb(member) for member in value]
    return {key: _as_jsonb(member) for key, member in value.items()} if isinstance(value, dict) else value


class JsonColumn(TypeDecorator[Any]):
    """
    A JSON value: jsonb on PostgreSQL; on SQLite compact text with sorted keys.

    None is JSON's `null`, which is a value; where `none_as_null` it is SQL's NULL, no value at all.
    """

    impl = Text
    cache_ok = True
    should_evaluate_none = True

    def __init__(self, *, none_as_null: bool = False) -> None:
        super().__init__()
        self.none_as_null = none_as_null

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name != "postgresql":
            return dialect.type_descriptor(Text())
        from sqlalchemy.dialects.postgresql import JSONB  # 3 MB, which a store on SQLite does without

        return dialect.type_descriptor(JSONB(none_as_null=self.none_as_null))

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return value if dialect.name == "postgresql" or (value is None and self.none_as_null) else json_text(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else load_stored(value.encode())


def pack_json(value: object) -> bytes | None:
    """Return a value as a PackedJson stores it; None where there is none."""
    return None if value is None else zlib.compress(dump_json(value), _LEVEL)


class PackedJson(TypeDecorator[Any]):
    """A JSON value that no query looks into, compressed; bytes are one that is packed already."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        return value if isinstance(value, bytes) else pack_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else load_stored(zlib.decompress(value))
