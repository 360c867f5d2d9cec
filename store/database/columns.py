"""Column types that mean the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import zlib
from typing import Any

import orjson
from sqlalchemy import BigInteger, Integer, LargeBinary, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

Key = BigInteger().with_variant(Integer, "sqlite")
"""A key that the database counts up; SQLite does so for INTEGER only."""

Microseconds = BigInteger
"""A time: microseconds since 1970-01-01T00:00:00Z."""

_LEVEL = 1


def dump_json(value: Any) -> str:
    """Return JSON as the store keeps it: compact, keys sorted, so that equal values are equal texts (but for 7 and 7.0)."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


class JsonColumn(TypeDecorator[Any]):
    """Any JSON value, `null` included: jsonb on PostgreSQL, sorted compact text on SQLite. SQL's NULL is no value at all."""

    impl = Text
    cache_ok = True
    should_evaluate_none = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return dialect.type_descriptor(JSONB() if dialect.name == "postgresql" else Text())

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        return value if dialect.name == "postgresql" else dump_json(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return value if value is None or dialect.name == "postgresql" else orjson.loads(value)


class PackedJson(TypeDecorator[Any]):
    """A JSON value that no query looks into, compressed."""

    impl = LargeBinary
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> bytes | None:
        return None if value is None else zlib.compress(orjson.dumps(value), _LEVEL)

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        return None if value is None else orjson.loads(zlib.decompress(value))
