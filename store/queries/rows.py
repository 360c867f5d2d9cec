"""Rows of the database as the answers show them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from ..jsontext import Json
from ..timestamps import format_timestamp
from .schema.fields import Field, Kind
from .sql.selects import ShownColumn

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMES = (Kind.TIME, Kind.STATE_TIME)


def shown_row(columns: Sequence[ShownColumn], row: Sequence[Any]) -> dict[str, Json]:
    """Return a row as an object."""
    return {column.name: _shown_value(column, row[index], row) for index, column in enumerate(columns)}


def _shown_value(column: ShownColumn, value: Any, row: Sequence[Any]) -> Json:
    field = column.field
    if field is not None and field.link is not None and column.link_column is not None:
        return {"data": _shown_member(field, value), "href": field.link.path.format(row[column.link_column])}
    if value is None:
        return None
    if column.kind in _TIMES:
        return format_timestamp(value)
    if column.kind is Kind.BOOLEAN:
        return bool(value)
    if isinstance(value, Decimal):
        return _number(value)
    result: Json = value
    return result


def _number(value: Decimal) -> int | float:
    """Return a number of PostgreSQL's: whole where it is written without a point."""
    _, _, exponent = value.as_tuple()
    return int(value) if isinstance(exponent, int) and exponent >= 0 else float(value)


def _shown_member(field: Field, value: Any) -> Json:
    if field.kind is Kind.DOCUMENT:
        return [{"name": name, "value": member} for name, member in value.items()] if value else None
    if field.name == "resource_events":
        return [{**event, "timestamp": _event_time(event["timestamp"])} for event in value] if value else None
    if field.kind is Kind.PACKED:
        return value or []
    result: Json = value
    return result


def _event_time(microseconds: int) -> str:
    """Return the time of an event inside a report, which has another form than all other times: `2025-11-10T09:01:05+00:00`."""
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat()
