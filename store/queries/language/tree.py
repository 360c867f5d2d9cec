"""
A query, checked: every field exists, every value has the type of its field.

Criteria are values without behaviour; `store.queries.sql` turns them into SQL.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...jsontext import Json
from ..schema.entities import Entity
from ..schema.fields import Field

Operator = Literal["=", ">", "<", ">=", "<="]

State = Literal["active", "inactive", "any"]


@dataclass(frozen=True, slots=True)
class NamePart:
    """A part of a dotted name: a key (which may be the index of a list, too), the index of a list, or a pattern for keys."""

    key: str | int
    is_pattern: bool = False


@dataclass(frozen=True, slots=True)
class Dotted:
    """A place inside the value of a field, as `facts.os.name`."""

    name: str
    field: Field
    parts: tuple[NamePart, ...]


@dataclass(frozen=True, slots=True)
class FactValue:
    """The value of a fact of the node to which a row belongs: `["fact", NAME]`."""

    name: str


@dataclass(frozen=True, slots=True)
class ParameterValue:
    """The value of a parameter of a resource: `["parameter", NAME]`."""

    name: str


Place: TypeAlias = Field | Dotted | FactValue | ParameterValue
"""The source of a criterion's value."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`value` has the type of the place: microseconds for a time, any JSON for JSON."""

    place: Place
    operator: Operator
    value: Json


@dataclass(frozen=True, slots=True)
class Match:
    """The place's text, or one of its elements, contains something that the regular expression matches."""

    place: Place
    pattern: str


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path has as many elements as there are parts: regular expressions for texts, integers for themselves."""

    field: Field
    parts: tuple[str | int, ...]
    is_whole: bool
    """True: a regular expression must match a whole element."""


@dataclass(frozen=True, slots=True)
class NullCheck:
    """The place has no value, or (`is_null` false) has one."""

    place: Place
    is_null: bool


@dataclass(frozen=True, slots=True)
class Both:
    """All of several criteria hold, or (`is_all` false) one of them does."""

    items: tuple[Criterion, ...]
    is_all: bool


@dataclass(frozen=True, slots=True)
class Not:
    """A criterion does not hold. What is unknown stays unknown, as in SQL."""

    item: Criterion


@dataclass(frozen=True, slots=True)
class InValues:
    """The place's value is one of several."""

    place: Place
    values: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class InRows:
    """Several fields together have one of several rows of values."""

    fields: tuple[Field, ...]
    rows: tuple[tuple[Json, ...], ...]


@dataclass(frozen=True, slots=True)
class InQuery:
    """The fields together are among the rows of another query, whose columns are as many."""

    fields: tuple[Field | Dotted, ...]
    query: Selection


@dataclass(frozen=True, slots=True)
class StateCheck:
    """The state of the node to which a row belongs."""

    state: State


@dataclass(frozen=True, slots=True)
class JsonType:
    """The type of a JSON value is this: `number`, `string`, `boolean`, `null`, `array` or `object`."""

    field: Field
    type: str


Criterion: TypeAlias = (
    Comparison | Match | PathMatch | NullCheck | Both | Not | InValues | InRows | InQuery | StateCheck | JsonType
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnFunction:
    """A function over the rows of a group (`count`, `avg`, `sum`, `min`, `max`), or of a time (`to_string` with a format)."""

    name: Literal["count", "avg", "sum", "min", "max", "to_string"]
    field: Field | Dotted | None = None
    format: str | None = None
    is_empty: bool = False
    """True: the function counts a field that no row has."""

    @property
    def is_aggregate(self) -> bool:
        """True if the function makes one value from many rows."""
        return self.name != "to_string"


Column: TypeAlias = Field | Dotted | ColumnFunction


@dataclass(frozen=True, slots=True)
class Order:
    """A field, or the name of another column, by which rows are sorted."""

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """The selected columns and rows of an entity. `columns` None: all. `is_grouped` with no groups: one row for all."""

    entity: Entity
    columns: tuple[Column, ...] | None = None
    where: Criterion | None = None
    groups: tuple[Column, ...] | None = None
    order_by: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int | None = None

    @property
    def is_grouped(self) -> bool:
        """True if a row of the answer represents several rows."""
        return self.groups is not None or any(isinstance(column, ColumnFunction) and column.is_aggregate for column in self.columns or ())
