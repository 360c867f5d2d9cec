"""The names in a query, looked up among the fields of an entity."""

from __future__ import annotations

from ...jsontext import Json
from ..questions import QueryRefused
from ..schema.entities import Entity
from ..schema.fields import Field
from .dotted import read_parts
from .messages import list_names, show_value
from .tree import Dotted, FactValue, NamePart, ParameterValue, Place


def find_dotted(entity: Entity, name: str) -> Dotted | None:
    """Return the place that a dotted name leads to, or None where the entity has no such field with members."""
    column, dot, _ = name.partition(".")
    field = entity.field(column)
    if not dot or field is None or not field.has_dotted:
        return None
    parts = read_parts(name)[1:]
    if field.name == "trusted":
        facts = entity.field("facts")
        assert facts is not None
        return Dotted(name, facts, (NamePart("trusted"), *parts))
    return Dotted(name, field, parts)


class UnknownField(QueryRefused):
    """A criterion names a field that there is not. A query may have several of these; each is a line of the text."""


def queryable_place(entity: Entity, name: str) -> Field | Dotted:
    """Return the field or dotted place that a criterion names; QueryRefused names those that there are."""
    field = entity.field(name)
    if field is not None and field.is_queryable:
        return field
    dotted = find_dotted(entity, name)
    if dotted is not None:
        return dotted
    known = list_names(entity.queryable())
    raise UnknownField(f"'{name}' is not a queryable object for {entity.name}. Known queryable objects are {known}")


def projectable_place(entity: Entity, name: str) -> Field | Dotted | None:
    """Return the field or dotted place that a column names, or None."""
    field = entity.field(name)
    if field is not None:
        return field if field.is_projectable else None
    dotted = find_dotted(entity, name)
    if dotted is None:
        return None
    if any(part.is_pattern for part in dotted.parts):
        raise QueryRefused(f"'{name}' stands for several values and cannot be extracted")
    if any(isinstance(part.key, int) for part in dotted.parts):
        raise QueryRefused("No matching clause: :puppetlabs.puppetdb.query-eng.parse/indexed-field-part")
    return dotted


def read_place(entity: Entity, value: Json) -> Place:
    """Return the place in the first argument of an operator: a field, `["fact", NAME]` or `["parameter", NAME]`."""
    match value:
        case str():
            return queryable_place(entity, value)
        case ["fact", str(name)] if entity.has_node:
            return FactValue(name)
        case ["parameter", str(name)] if entity.name == "resources":
            return ParameterValue(name)
    raise QueryRefused(f"{show_value(value)} is not a queryable object for {entity.name}")


def unknown_columns(entity: Entity, names: list[str]) -> QueryRefused:
    """Return the error for columns that an entity does not have."""
    noun = "field" if len(names) == 1 else "fields"
    acceptable = list_names(sorted(entity.projectable()))
    return QueryRefused(f"Can't extract unknown '{entity.name}' {noun} {list_names(names)}. Acceptable fields are {acceptable}")
