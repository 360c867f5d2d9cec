"""Criteria of the query language, read into the tree: operators, and the values that their fields accept."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from shared.errors import Denied

from ...jsontext import Json
from ...timestamps import parse_timestamp
from ..questions import QueryLimits, QueryRefused
from ..schema.entities import ENTITIES, Entity
from ..schema.fields import Field, Kind
from ..schema.relations import relation
from .messages import show_value
from .places import UnknownField, queryable_place, read_place
from .tree import (
    Both,
    Comparison,
    Criterion,
    Dotted,
    FactValue,
    InQuery,
    InRows,
    InValues,
    JsonType,
    Match,
    Not,
    NullCheck,
    Operator,
    ParameterValue,
    PathMatch,
    Place,
    Selection,
    State,
    StateCheck,
)

_ORDERED = (Kind.INTEGER, Kind.TIME, Kind.JSON)
_SEARCHED = (Kind.TEXT, Kind.JSON, Kind.SERIALIZED, Kind.LIST, Kind.TAG)
_TIMES = (Kind.TIME, Kind.STATE_TIME)


class CriteriaReader:
    """
    Reads criteria.

    The cost of a query is counted here, over all its subqueries. `read_selection` reads the part after `from`, or in an `extract`,
    for the entity of a subquery.
    """

    def __init__(self, limits: QueryLimits, read_selection: Callable[[Entity, list[Json]], Selection]) -> None:
        self._limits = limits
        self._read_selection = read_selection
        self._terms = 0
        self._values = 0

    def read(self, entity: Entity, value: Json) -> Criterion:
        """Return the criterion in JSON for rows of an entity; raise QueryRefused for a faulty one."""
        self._terms += 1
        if self._terms > self._limits.terms:
            raise QueryRefused(f"A query has at most {self._limits.terms} criteria; for alternatives use ['in', FIELD, ['array', VALUES]]")
        if not isinstance(value, list):
            raise QueryRefused(f"{show_value(value)} is not well-formed: a query is an array that begins with an operator")
        if not value:
            raise QueryRefused("[] is not well-formed: queries must contain at least one operator")
        operator, *arguments = value
        match operator:
            case "and" | "or":
                return self._both(entity, operator, arguments)
            case "not":
                if len(arguments) != 1:
                    raise QueryRefused(f"'not' takes exactly one argument, but {len(arguments)} were supplied")
                return Not(self.read(entity, arguments[0]))
            case "=" | ">" | "<" | ">=" | "<=" | "~" | "~>" | "null?" | "in":
                if len(arguments) != 2:
                    raise QueryRefused(f"{operator} requires exactly two arguments")
                return self._binary(entity, operator, arguments[0], arguments[1])
            case "subquery":
                self._require_subqueries()
                return self._related(entity, arguments)
        raise QueryRefused(f"{show_value(value)} is not well-formed: query operator {_quoted(operator)} is unknown")

    def _both(self, entity: Entity, operator: str, arguments: list[Json]) -> Criterion:
        """Return the criterion for `and` or `or`. Chains of the same operator become one, and alternatives for a field one list."""
        if not arguments:
            raise QueryRefused(f"'{operator}' takes at least one argument, but none were supplied")
        items: list[Criterion] = []
        unknown: list[str] = []
        alternatives: dict[str, list[Json]] = {}
        for argument in _flattened(operator, arguments):
            if operator == "or" and _is_text_equality(entity, argument):
                alternatives.setdefault(cast(str, argument[1]), []).append(argument[2])
                continue
            try:
                items.append(self.read(entity, argument))
            except UnknownField as err:
                unknown.append(err.message)
        if unknown:
            raise UnknownField("\n".join(unknown))
        for name, values in alternatives.items():
            if len(values) == 1:
                items.append(self.read(entity, ["=", name, values[0]]))
            else:
                items.append(self._one_of(queryable_place(entity, name), values))
        return items[0] if len(items) == 1 else Both(tuple(items), operator == "and")

    def _binary(self, entity: Entity, operator: str, name: Json, value: Json) -> Criterion:
        if operator == "=" and name == "node_state" and entity.has_node:
            if value not in ("active", "inactive", "any"):
                raise QueryRefused(f"No matching clause: {value if isinstance(value, str) else show_value(value)}")
            return StateCheck(cast(State, value))
        if operator == "=" and name == ["node", "active"] and entity.has_node:
            return StateCheck("inactive" if value is False or value is None else "active")
        if operator == "in":
            return self._membership(entity, name, value)
        match name:
            case ["function", "jsonb_typeof", str(column)] if operator == "=":
                return _json_type(entity, column, value)
        place = read_place(entity, name)
        if operator == "null?":
            return NullCheck(place, value is not False and value is not None)
        if operator == "~>":
            return _path_match(entity, place, value)
        if operator == "~":
            return _match(place, value)
        return _comparison(entity, place, cast(Operator, operator), value)

    def _membership(self, entity: Entity, name: Json, value: Json) -> Criterion:
        match name:
            case ["fact" | "parameter", _]:
                places: list[Place] = [read_place(entity, name)]
                is_row = False
            case [*names] if names:
                places = [_column_of(entity, item) for item in names]
                is_row = True
            case _:
                places = [_column_of(entity, name)]
                is_row = False
        if isinstance(value, list) and value[:1] != ["array"]:
            self._require_subqueries()
        match value:
            case ["array", *arguments]:
                if len(arguments) != 1 or not isinstance(arguments[0], list):
                    raise QueryRefused("Operator array requires a vector argument")
                return self._in_array(places, arguments[0], is_row=is_row)
            case ["extract", columns, [str(operator), *criteria], *rest] if operator.startswith("select_"):
                inner = ENTITIES.get(operator.removeprefix("select_"))
                if inner is None:
                    raise QueryRefused(f"Unsupported subquery `{operator}`")
                return _in_query(places, self._read_selection(inner, [["extract", columns, *criteria, *rest]]))
            case ["from", str(inner_name), *rest]:
                inner = ENTITIES.get(inner_name)
                if inner is None:
                    raise QueryRefused(f"Invalid entity '{inner_name}' in query")
                return _in_query(places, self._read_selection(inner, rest))
        raise QueryRefused(f"{show_value(value)} is not well-formed: 'in' takes ['array', VALUES], ['extract', ...] or ['from', ...]")

    def _in_array(self, places: list[Place], values: list[Json], *, is_row: bool) -> Criterion:
        if not is_row or len(places) == 1:
            if is_row:
                values = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in values]
            return self._one_of(places[0], values)
        rows = []
        for row in values:
            if not isinstance(row, list) or len(row) != len(places):
                raise QueryRefused(f"Each value must be an array of {len(places)} values, one for each field")
            self._count_values(len(row))
            rows.append(tuple(_scalar_value(place, item) for place, item in zip(places, row, strict=True)))
        fields = tuple(place for place in places if isinstance(place, Field) and place.kind in (Kind.TEXT, Kind.INTEGER, *_TIMES))
        if len(fields) != len(places):
            raise QueryRefused("Only fields with texts, numbers or times can be compared together")
        return InRows(fields, tuple(rows))

    def _one_of(self, place: Place, values: list[Json]) -> Criterion:
        self._count_values(len(values))
        if isinstance(place, FactValue | ParameterValue | Dotted):
            if len({_type_name(value) for value in values}) > 1 and isinstance(place, FactValue):
                raise QueryRefused("All values in array must be the same type.")
        elif place.kind in (Kind.LIST, Kind.TAG, Kind.DOCUMENT, Kind.LATEST_REPORT):
            raise QueryRefused(f"Query operator in is not allowed on field {place.name}")
        return InValues(place, tuple(_scalar_value(place, value) for value in values))

    def _require_subqueries(self) -> None:
        if not self._limits.subqueries:
            raise Denied("Permission denied: a client without a rule for /pdb/query/v4 may ask no subqueries, which reach everything there")

    def _count_values(self, number: int) -> None:
        self._values += number
        if self._values > self._limits.values:
            raise QueryRefused(f"The lists of a query have at most {self._limits.values} values")

    def _related(self, entity: Entity, arguments: list[Json]) -> Criterion:
        match arguments:
            case [str(name)] | [str(name), _]:
                pairs = relation(entity.name, name)
            case _:
                raise QueryRefused("subquery requires an entity and a query")
        if pairs is None:
            raise QueryRefused(f"No implicit relationship for entity '{name}'")
        inner = ENTITIES[name]
        where = self.read(inner, arguments[1]) if len(arguments) == 2 and arguments[1] is not None else None
        outer_fields = tuple(_known_field(entity, outer) for outer, _ in pairs)
        columns = tuple(_known_field(inner, column) for _, column in pairs)
        return InQuery(outer_fields, Selection(inner, columns, where))


def _flattened(operator: str, arguments: list[Json]) -> list[list[Json]]:
    """Return the arguments of an operator with those of directly nested uses of it in their place."""
    result: list[list[Json]] = []
    pending = list(reversed(arguments))
    while pending:
        argument = pending.pop()
        if isinstance(argument, list) and len(argument) > 1 and argument[0] == operator:
            pending += reversed(argument[1:])
        else:
            result.append(argument)  # type: ignore[arg-type]  # whoever reads it refuses what is no list
    return result


def _is_text_equality(entity: Entity, value: Json) -> bool:
    match value:
        case ["=", str(name), str()]:
            field = entity.field(name)
            return field is not None and field.is_queryable and field.kind is Kind.TEXT
    return False


def _known_field(entity: Entity, name: str) -> Field:
    field = entity.field(name)
    assert field is not None, f"{entity.name} has no field {name}"
    return field


def _column_of(entity: Entity, name: Json) -> Place:
    if isinstance(name, str):
        try:
            return queryable_place(entity, name)
        except QueryRefused as err:
            text = err.message.partition("Known queryable objects are ")[2]
            raise QueryRefused(f"Can't match on unknown '{entity.name}' field '{name}' for 'in'. Acceptable fields are {text}") from err
    raise QueryRefused(f"{show_value(name)} is not a field of {entity.name}")


def _in_query(places: list[Place], selection: Selection) -> InQuery:
    columns = selection.columns
    if columns is None:
        raise QueryRefused("A subquery of 'in' extracts the fields that are compared")
    if len(columns) != len(places):
        raise QueryRefused(f"'in' compares {len(places)} fields with {len(columns)} extracted ones; their numbers must be equal")
    fields = tuple(place for place in places if isinstance(place, Field | Dotted))
    if len(fields) != len(places):
        raise QueryRefused("'in' with a subquery takes fields")
    return InQuery(fields, selection)


def _quoted(value: Json) -> str:
    return f"'{value}'" if isinstance(value, str) else show_value(value)


def _type_name(value: Json) -> str:
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def _match(place: Place, value: Json) -> Match:
    if isinstance(place, Field) and place.kind not in _SEARCHED:
        raise QueryRefused(f"Query operator ~ is not allowed on field {place.name}")
    if not isinstance(value, str):
        raise QueryRefused(f"Argument {show_value(value)} of operator ~ must be a string with a regular expression")
    return Match(place, checked_text(value))


def _path_match(entity: Entity, place: Place, value: Json) -> PathMatch:
    if not isinstance(place, Field) or place.kind is not Kind.PATH:
        raise QueryRefused(f"Query operator ~> is not allowed on field {place.name}")
    if not isinstance(value, list) or not value:
        raise QueryRefused("Query operator ~> takes an array of regular expressions and integers")
    return PathMatch(place, _path(value), is_whole=entity.name == "fact_paths")


def _path(value: Json) -> tuple[str | int, ...]:
    if not isinstance(value, list):
        raise QueryRefused("Path array element wasnt string or integer in {0}")
    parts: list[str | int] = []
    for item in value:
        if isinstance(item, bool) or not isinstance(item, str | int):
            raise QueryRefused("Path array element wasnt string or integer in {0}")
        parts.append(checked_text(item) if isinstance(item, str) else item)
    if len(parts) > 100:
        raise QueryRefused("A path has at most 100 elements")
    return tuple(parts)


def _json_type(entity: Entity, column: str, value: Json) -> Criterion:
    place = queryable_place(entity, column)
    if not isinstance(place, Field) or place.kind is not Kind.JSON:
        raise QueryRefused(f"jsonb_typeof is not allowed on field {column}")
    if not isinstance(value, str):
        raise QueryRefused(f"Argument {show_value(value)} of jsonb_typeof must be a string")
    return JsonType(place, value)


def _comparison(entity: Entity, place: Place, operator: Operator, value: Json) -> Criterion:
    if operator == "=":
        if value is None and not isinstance(place, ParameterValue):
            return NullCheck(place, is_null=True)
        return Comparison(place, operator, _scalar_value(place, value))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match place:
        case FactValue():
            if not is_number:
                raise QueryRefused(f"Operator '{operator}' not allowed on value '{value if isinstance(value, str) else show_value(value)}'")
        case ParameterValue():
            raise QueryRefused(f"Query operators >,>=,<,<= are not allowed on parameters; use parameters.{place.name}")
        case Field() if place.kind not in _ORDERED:
            raise QueryRefused(f"Query operators >,>=,<,<= are not allowed on field {place.name}")
        case Field() if place.kind is Kind.JSON and not is_number:
            raise QueryRefused(f'Argument {show_value(value)} and operator "{operator}" have incompatible types.')
    return Comparison(place, operator, _scalar_value(place, value))


def _scalar_value(place: Place, value: Json) -> Json:
    """Return the value to compare a place with, in the form of the tree; raise QueryRefused when its type does not match."""
    _check_texts(value)
    if not isinstance(place, Field):
        return value
    match place.kind:
        case Kind.TIME | Kind.STATE_TIME:
            try:
                return parse_timestamp(value if isinstance(value, str) else show_value(value))
            except ValueError as err:
                raise QueryRefused(str(err)) from err
        case Kind.INTEGER:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise QueryRefused(f'Argument {show_value(value)} is incompatible with numeric field "{place.name}".')
        case Kind.BOOLEAN:
            if not isinstance(value, bool):
                raise QueryRefused(f'Argument {show_value(value)} is incompatible with boolean field "{place.name}".')
        case Kind.LATEST_REPORT:
            return value is not False and value is not None
        case Kind.PATH:
            return list(_path(value))
        case Kind.TAG:
            return value.lower() if isinstance(value, str) else value
        case Kind.TEXT:
            if not isinstance(value, str):
                raise QueryRefused(f'Argument {show_value(value)} is incompatible with text field "{place.name}".')
    return value


def checked_text(text: str) -> str:
    """Return a text of a query; QueryRefused where it has a character that no stored text has and no database takes."""
    if "\0" in text:
        raise QueryRefused("A query must not contain the character U+0000")
    if any("\ud800" <= character <= "\udfff" for character in text) if not text.isascii() else False:
        raise QueryRefused("A query must not contain half of a surrogate pair")
    return text


def _check_texts(value: Json) -> None:
    match value:
        case str():
            checked_text(value)
        case list():
            for item in value:
                _check_texts(item)
        case dict():
            for key, item in value.items():
                checked_text(key)
                _check_texts(item)
