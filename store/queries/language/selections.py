"""Whole queries, read into the tree: `from`, `extract`, functions, groups and paging."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ...jsontext import Json
from ..questions import QueryLimits, QueryRefused
from ..schema.entities import ENTITIES, Entity
from ..schema.fields import Field, Kind
from .criteria import CriteriaReader, checked_text
from .messages import list_names, show_value
from .places import find_dotted, projectable_place, queryable_place, unknown_columns
from .tree import Both, Column, ColumnFunction, Comparison, Criterion, Dotted, Not, Order, Selection, StateCheck

_MAX_COLUMNS = 200
_MAX_NUMBER = 2**63 - 1
_AGGREGATES = ("count", "avg", "sum", "min", "max")
_OF_NUMBERS = (Kind.INTEGER, Kind.JSON)
_ORDERLESS = (Kind.LIST, Kind.TAG, Kind.ROWS, Kind.PACKED, Kind.LATEST_REPORT)

_FORM = 'Your initial query must be of the form: ["from",<entity>,(<optional-query>)]. Check your query and try again.'


def read_query(entity: Entity | None, query: Json, limits: QueryLimits) -> Selection:
    """
    Return the selection of a query, with the restrictions that PuppetDB adds: to active nodes and to the reports of agents.

    `entity` None means the root, where the query begins with `from`. QueryRefused is raised for a faulty query.
    """
    _check_depth(query, limits.depth)
    reader = SelectionReader(limits)
    if entity is None:
        match query:
            case ["from", str(name), *rest]:
                if name not in ENTITIES:
                    raise QueryRefused(f"Invalid entity '{name}' in query")
                entity = ENTITIES[name]
                selection = reader.read(entity, rest)
            case _:
                raise QueryRefused(_FORM)
        is_active_only = entity.is_active_only_at_root
    elif query is None:
        selection, is_active_only = Selection(entity), entity.is_active_only
    else:
        selection, is_active_only = reader.read(entity, [query]), entity.is_active_only
    return _restricted(selection, is_active_only=is_active_only)


def _check_depth(value: Json, limit: int) -> None:
    level = [value]
    for _ in range(limit + 1):
        level = [item for part in level if isinstance(part, list | dict) for item in (part if isinstance(part, list) else part.values())]
        if not level:
            return
    raise QueryRefused(f"A query may be nested {limit} levels deep, not deeper")


def _restricted(selection: Selection, *, is_active_only: bool) -> Selection:
    added: list[Criterion] = []
    criteria = list(_top_level(selection.where))
    if is_active_only and not any(isinstance(criterion, StateCheck) for criterion in criteria):
        added.append(StateCheck("active"))
    kind = selection.entity.field("type")
    if selection.entity.has_report_type and kind is not None and not any(kind in _fields_of(criterion) for criterion in criteria):
        added.append(Comparison(kind, "=", "agent"))
    if not added:
        return selection
    where = () if selection.where is None else (selection.where,)
    return replace(selection, where=Both((*added, *where), is_all=True))


def _top_level(criterion: Criterion | None) -> list[Criterion]:
    """Return the criteria of a query without those of its subqueries."""
    result: list[Criterion] = []
    pending = [criterion] if criterion is not None else []
    while pending:
        item = pending.pop()
        if isinstance(item, Both):
            pending += item.items
        elif isinstance(item, Not):
            pending.append(item.item)
        else:
            result.append(item)
    return result


def _fields_of(criterion: Criterion) -> tuple[object, ...]:
    return (getattr(criterion, "place", None), getattr(criterion, "field", None), *getattr(criterion, "fields", ()))


class SelectionReader:
    """Reads the part after `from ENTITY`, or the query of an endpoint."""

    def __init__(self, limits: QueryLimits) -> None:
        self._criteria = CriteriaReader(limits, self.read)

    def read(self, entity: Entity, parts: list[Json]) -> Selection:
        """Return the selection of a query (or none) and paging clauses for an entity."""
        clauses: dict[str, Json] = {}
        queries: list[Json] = []
        for part in parts:
            match part:
                case ["limit" | "offset" | "order_by" as name, *arguments]:
                    if name in clauses:
                        raise QueryRefused(f"Multiple '{name}' clauses are not permitted")
                    if not arguments:
                        raise QueryRefused(f"Received '{name}' clause without an argument")
                    if len(arguments) > 1:
                        raise QueryRefused(f"Received '{name}' clause with more than one argument")
                    clauses[name] = arguments[0]
                case None:
                    pass
                case _:
                    queries.append(part)
        if len(queries) > 1:
            raise QueryRefused(_FORM)
        selection = self._selection(entity, queries[0]) if queries else Selection(entity)
        selection = replace(
            selection,
            limit=_number(clauses, "limit", 1, "a positive non-zero integer"),
            offset=_number(clauses, "offset", 0, "a non-negative integer"),
        )
        return with_order(selection, _orders(clauses["order_by"])) if "order_by" in clauses else selection

    def _selection(self, entity: Entity, query: Json) -> Selection:
        match query:
            case ["extract"]:
                raise QueryRefused("extract requires the fields to extract")
            case ["extract", columns, *rest]:
                return self._extract(entity, columns, rest)
        return Selection(entity, where=self._read_where(entity, query))

    def _read_where(self, entity: Entity, query: Json) -> Criterion:
        if entity.has_report_type:
            query = _without_any_type(query)
        return self._criteria.read(entity, query)

    def _extract(self, entity: Entity, names: Json, rest: list[Json]) -> Selection:
        where: Criterion | None = None
        groups: tuple[Column, ...] | None = None
        for index, part in enumerate(rest):
            match part:
                case ["group_by", *names_of_groups]:
                    if groups is not None or not names_of_groups:
                        raise QueryRefused("group_by requires at least one field, and occurs once")
                    groups = tuple(_group(entity, name) for name in names_of_groups)
                case None:
                    pass
                case _:
                    if index:
                        raise QueryRefused(f"{show_value(part)} is not well-formed: extract takes one query and one group_by")
                    where = self._read_where(entity, part)
        columns = _columns(entity, names)
        selection = Selection(entity, columns or None, where, groups)
        if selection.is_grouped:
            _check_groups(selection)
        return selection


def _without_any_type(query: Json) -> Json:
    """Return a query of reports with `["=", "type", "any"]`, which means every type, as a criterion that holds for all."""
    match query:
        case ["=", "type", "any"]:
            return ["null?", "type", False]
        case ["and" | "or" | "not" as operator, *arguments]:
            return [operator, *map(_without_any_type, arguments)]
    return query


def _columns(entity: Entity, names: Json) -> tuple[Column, ...]:
    items: Json = [names] if isinstance(names, str) else names
    if isinstance(items, list) and items[:1] == ["function"]:
        items = [items]
    if not isinstance(items, list):
        raise QueryRefused(f"{show_value(names)} is not a field, or an array of fields")
    if len(items) > _MAX_COLUMNS:
        raise QueryRefused(f"A query extracts at most {_MAX_COLUMNS} fields")
    columns: list[Column] = []
    unknown: list[str] = []
    for item in items:
        if isinstance(item, list):
            columns.append(_function(entity, item))
        elif isinstance(item, str) and (place := projectable_place(entity, item)) is not None:
            columns.append(place)
        else:
            unknown.append(item if isinstance(item, str) else show_value(item))
    if unknown:
        raise unknown_columns(entity, unknown)
    return tuple(columns)


def _function(entity: Entity, item: list[Json]) -> ColumnFunction:
    match item:
        case ["function", "count"]:
            return ColumnFunction("count")
        case ["function", "count", str(name)]:
            field = entity.field(name)
            place = field if field is not None and field.is_queryable else find_dotted(entity, name)
            return ColumnFunction("count", place, is_empty=place is None)
        case ["function", "avg" | "sum" | "min" | "max" as function, str(name)]:
            place = queryable_place(entity, name)
            _check_argument(function, place)
            return ColumnFunction(function, place)
        case ["function", "to_string", str(name), str(form)]:
            place = queryable_place(entity, name)
            if not isinstance(place, Field) or place.kind is not Kind.TIME:
                raise QueryRefused(f"Function 'to_string' takes a time, which '{name}' is not")
            if len(form) > 100:
                raise QueryRefused("The format of 'to_string' has at most 100 characters")
            return ColumnFunction("to_string", place, checked_text(form))
        case ["function", str(name), *_] if name not in (*_AGGREGATES, "to_string"):
            raise QueryRefused(f"Unknown function '{name}'. Known functions are {list_names(sorted((*_AGGREGATES, 'to_string')))}")
    raise QueryRefused(f"{show_value(item)} is not well-formed: a column is a field or ['function', NAME, FIELD]")


def _check_argument(function: Literal["avg", "sum", "min", "max"], place: Field | Dotted) -> None:
    if isinstance(place, Dotted) or place.kind in _OF_NUMBERS:
        return
    if function in ("min", "max") and place.kind in (Kind.TEXT, Kind.TIME, Kind.STATE_TIME):
        return
    raise QueryRefused(f"Function '{function}' takes a number, which '{place.name}' is not")


def _group(entity: Entity, item: Json) -> Column:
    if isinstance(item, list):
        function = _function(entity, item)
        if function.is_aggregate:
            raise QueryRefused(f"group_by takes fields and the function 'to_string', not '{function.name}'")
        return function
    place = projectable_place(entity, item) if isinstance(item, str) else None
    if place is None or (isinstance(place, Field) and place.kind in (Kind.ROWS, Kind.PACKED)):
        raise QueryRefused(f'"{item if isinstance(item, str) else show_value(item)}" is niether a valid column name nor function name')
    return place


def _check_groups(selection: Selection) -> None:
    if selection.columns is None:
        raise QueryRefused("group_by requires the fields to extract")
    for column in selection.columns:
        is_aggregate = isinstance(column, ColumnFunction) and column.is_aggregate
        if not is_aggregate and column not in (selection.groups or ()):
            raise QueryRefused(f"The extracted field '{column.name}' must be part of group_by, or be the argument of a function")


def _number(clauses: dict[str, Json], name: str, least: int, expected: str) -> int | None:
    if name not in clauses:
        return None
    value = clauses[name]
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MAX_NUMBER:
        raise QueryRefused(f"Illegal value '{value if isinstance(value, str) else show_value(value)}' for :{name}; expected {expected}.")
    return value


def _orders(value: Json) -> tuple[Order, ...]:
    orders = []
    for item in value if isinstance(value, list) else [value]:
        match item:
            case str(name) | [str(name)]:
                orders.append(Order(name))
            case [str(name), str(direction)] if direction.lower() in ("asc", "desc"):
                orders.append(Order(name, direction.lower() == "desc"))
            case _:
                raise QueryRefused(f"Illegal value '{show_value(item)}' in :order_by; expected a field, or a field and asc or desc")
    return tuple(orders)


def with_order(selection: Selection, orders: tuple[Order, ...]) -> Selection:
    """Return the selection with its rows sorted; QueryRefused names the fields by which they may be."""
    entity = selection.entity
    if len(orders) > _MAX_COLUMNS:
        raise QueryRefused(f"Rows are sorted by at most {_MAX_COLUMNS} fields")
    for order in orders:
        if selection.is_grouped:
            names = [column.name for column in (*(selection.columns or ()), *(selection.groups or ()))]
            if order.field not in names:
                raise QueryRefused(f"Rows of groups are sorted by what they have: {list_names(sorted(set(names)))}, not by '{order.field}'")
            continue
        field = entity.field(order.field)
        if field is not None and field.is_queryable and field.kind not in _ORDERLESS:
            continue
        if field is None and projectable_place(entity, order.field) is not None:
            continue
        supported = list_names(entity.queryable()).replace(" and ", " ")
        raise QueryRefused(f"Unrecognized column '{order.field}' specified in :order_by; Supported columns are {supported}")
    return replace(selection, order_by=orders)


def with_paging(selection: Selection, limit: int | None, offset: int | None, order_by: tuple[tuple[str, bool], ...]) -> Selection:
    """Return the selection with the paging of a request, which overrides its own."""
    if order_by:
        selection = with_order(selection, tuple(Order(name, descending) for name, descending in order_by))
    return replace(
        selection,
        limit=selection.limit if limit is None else limit,
        offset=selection.offset if offset is None else offset,
    )
