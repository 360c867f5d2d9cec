"""Whole queries as SELECT statements, and the contents of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import String, Text, and_, func, literal, null, select, type_coerce
from sqlalchemy.sql.selectable import Select

from ...database.tables import events, reports
from ..language.counting import Distinct
from ..language.places import projectable_place
from ..language.tree import Column, ColumnFunction, Dotted, Order, Selection
from ..schema.fields import Field, Kind
from .conditions import Conditions
from .dialects import Sql
from .expressions import Expression
from .sources import EntitySource, entity_source


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column of an answer: the name of the member, the kind of its values, and where its address comes from, if it has one."""

    name: str
    kind: Kind
    field: Field | None = None
    link_column: int | None = None
    """The place in the row of the value that the address of a member is made of."""


@dataclass(frozen=True, slots=True)
class QueryStatement:
    """A SELECT with its paging, the contents of its columns, and the SELECT of the number of rows without paging."""

    total: Select[Any]
    page: Select[Any]
    columns: tuple[ShownColumn, ...]


class Selects:
    """Turns the selections of one query into statements."""

    def __init__(self, sql: Sql, inactive_since: int) -> None:
        self._sql = sql
        self._number = 0
        self.conditions = Conditions(sql, inactive_since, self._subquery)

    def statement(self, selection: Selection, distinct: Distinct | None = None) -> QueryStatement:
        """Return the statement of a query."""
        source = self._source(selection)
        columns = selection.columns
        if columns is None:
            columns = tuple(field for field in selection.entity.fields if field.is_projectable)
        names = unique_names(columns)
        if selection.is_grouped:
            rows, orders = self._grouped(source, selection, columns, names, distinct)
            total = count_rows(rows)
            shown = [ShownColumn(name, _kind_of(column)) for name, column in zip(names, columns, strict=True)]
        else:
            expressions = [self._value(source, column) for column in columns]
            shown = []
            for name, column in zip(names, columns, strict=True):
                link = column.link if isinstance(column, Field) else None
                if link is not None:
                    expressions.append(source.fields[link.key])
                place = len(expressions) - 1 if link is not None else None
                shown.append(ShownColumn(name, _kind_of(column), column if isinstance(column, Field) else None, place))
            labelled = [expression.label(f"c{index}") for index, expression in enumerate(expressions)]
            rows = self._filtered(select(*labelled).select_from(source.tables), source, selection, distinct)
            orders = self._orders(source, selection)
            total = rows.with_only_columns(func.count())  # the columns, which no row is counted by, would cost the most
        return QueryStatement(total, _paged(rows, orders, selection), tuple(shown))

    def _source(self, selection: Selection) -> EntitySource:
        self._number += 1
        return entity_source(selection.entity.name, self._sql, self._number)

    def rows_of(self, selection: Selection, names: Mapping[str, str], distinct: Distinct | None) -> Select[Any]:
        """Return the SELECT of fields of a selection's rows, each with a name, for counting them."""
        source = self._source(selection)
        labelled = [source.fields[field].label(name) for name, field in names.items()]
        return self._filtered(select(*labelled).select_from(source.tables), source, selection, distinct)

    def _subquery(self, selection: Selection) -> Select[Any]:
        """Return the columns that a subquery extracts, sorted and cut by its own paging."""
        source = self._source(selection)
        columns = selection.columns or ()
        if selection.is_grouped:
            rows, orders = self._grouped(source, selection, columns, unique_names(columns), None)
        else:
            labelled = [self._value(source, column).label(f"c{index}") for index, column in enumerate(columns)]
            rows = self._filtered(select(*labelled).select_from(source.tables), source, selection, None)
            orders = self._orders(source, selection)
        return _paged(rows, orders, selection)

    def _filtered(self, rows: Select[Any], source: EntitySource, selection: Selection, distinct: Distinct | None) -> Select[Any]:
        if selection.where is not None:
            rows = rows.where(self.conditions.condition(source, selection.where))
        if distinct is not None and source.event is not None:
            rows = rows.where(source.event.in_(_newest_events(distinct)))
        return rows

    def _value(self, source: EntitySource, column: Column) -> Expression:
        if not isinstance(column, ColumnFunction):
            return self.conditions.value_at(source, column)
        assert isinstance(column.field, Field)
        return self._sql.format_time(source.fields[column.field.name], column.format or "")

    def _grouped(
        self, source: EntitySource, selection: Selection, columns: tuple[Column, ...], names: list[str], distinct: Distinct | None
    ) -> tuple[Select[Any], list[Expression]]:
        """
        Return the SELECT of groups, and their sort keys.

        Groups are made of the columns of an inner SELECT, so that an expression with parameters occurs once only: two of them are
        different to PostgreSQL, even where their values are the same.
        """
        groups = selection.groups or ()
        keys = {group: f"g{index}" for index, group in enumerate(dict.fromkeys(groups))}
        inputs: dict[str, Expression] = {name: self._value(source, group) for group, name in keys.items()}
        for index, column in enumerate(columns):
            if isinstance(column, ColumnFunction) and column.is_aggregate and column.field is not None:
                inputs[f"a{index}"] = self._argument(source, column)
        labelled = [expression.label(name) for name, expression in inputs.items()] or [literal(1).label("one")]
        inner = self._filtered(select(*labelled).select_from(source.tables), source, selection, distinct).subquery()
        outputs: list[Expression] = []
        for index, column in enumerate(columns):
            if isinstance(column, ColumnFunction) and column.is_aggregate:
                outputs.append(self._aggregate(column, inner.c[f"a{index}"] if column.field is not None else None))
            else:
                outputs.append(inner.c[keys[column]])
        rows = select(*(output.label(f"c{index}") for index, output in enumerate(outputs))).select_from(inner)
        if groups:
            rows = rows.group_by(*(inner.c[name] for name in keys.values()))
        by_name = {column.name: (output, _kind_of(column)) for column, output in zip(columns, outputs, strict=True)}
        for group, key in keys.items():
            by_name.setdefault(group.name, (inner.c[key], _kind_of(group)))
        return rows, [self._order(order, *by_name[order.field]) for order in selection.order_by]

    def _argument(self, source: EntitySource, function: ColumnFunction) -> Expression:
        place = function.field
        assert place is not None
        value = self.conditions.value_at(source, place)
        is_json = isinstance(place, Dotted) or place.kind is Kind.JSON
        if function.name == "count":
            return type_coerce(func.nullif(self._sql.json_text(value), "null"), Text) if is_json else value
        return self._sql.number(value) if is_json else value

    def _aggregate(self, function: ColumnFunction, argument: Expression | None) -> Expression:
        if function.name == "count":
            if function.is_empty:
                return func.count(null())
            return func.count() if argument is None else func.count(argument)
        assert argument is not None
        if function.name in ("min", "max") and isinstance(argument.type, String):
            argument = self._sql.sorted_text(argument)
        aggregate: Expression = getattr(func, function.name)(argument)
        return aggregate

    def _orders(self, source: EntitySource, selection: Selection) -> list[Expression]:
        orders = selection.order_by or tuple(Order(name) for name in selection.entity.order)
        expressions = []
        for order in orders:
            place = selection.entity.field(order.field)
            if place is None:
                dotted = projectable_place(selection.entity, order.field)
                assert dotted is not None
                expressions.append(self._order(order, self.conditions.value_at(source, dotted), Kind.JSON))
            else:
                expressions.append(self._order(order, source.fields[place.name], place.kind, is_nullable=place.is_nullable))
        return expressions

    def _order(self, order: Order, expression: Expression, kind: Kind, *, is_nullable: bool = True) -> Expression:
        if kind is Kind.TEXT:
            expression = self._sql.sorted_text(expression)
        elif kind in (Kind.JSON, Kind.SERIALIZED, Kind.DOCUMENT):
            expression = self._sql.sort_key(expression)
        elif kind is Kind.PATH:
            expression = self._sql.path_key(expression)
        expression = expression.desc() if order.descending else expression.asc()
        # Without NULLS LAST, SQLite can use an index for the order.
        if not is_nullable:
            return expression
        # PostgreSQL's default, which SQLite does not share.
        return expression.nulls_first() if order.descending else expression.nulls_last()


def count_rows(rows: Select[Any]) -> Select[Any]:
    """Return the SELECT of how many rows another has."""
    return select(func.count()).select_from(rows.subquery())


def unique_names(columns: tuple[Column, ...]) -> list[str]:
    """Return the names of columns in an answer: the second `certname` is `certname_2`."""
    names: list[str] = []
    for column in columns:
        name, number = column.name, 1
        while name in names:
            number += 1
            name = f"{column.name}_{number}"
        names.append(name)
    return names


def _kind_of(column: Column) -> Kind:
    """Return the kind of the values that a column shows."""
    match column:
        case Dotted():
            return Kind.JSON
        case ColumnFunction("to_string"):
            return Kind.TEXT
        case ColumnFunction("min" | "max", Field(kind=Kind.TIME | Kind.STATE_TIME | Kind.TEXT as kind)):
            return kind
        case ColumnFunction():
            return Kind.INTEGER
    return column.kind


def _paged(rows: Select[Any], orders: list[Expression], selection: Selection) -> Select[Any]:
    if orders:
        rows = rows.order_by(*orders)
    if selection.limit is not None:
        rows = rows.limit(selection.limit)
    return rows.offset(selection.offset) if selection.offset else rows


def _newest_events(distinct: Distinct) -> Select[Any]:
    """Return the keys of the events that are the newest of their node, resource and property between two times."""
    place = func.row_number().over(
        partition_by=(reports.c.node_id, events.c.resource_type, events.c.resource_title, events.c.property, events.c.name),
        order_by=(events.c.timestamp.desc(), events.c.id.desc()),
    )
    numbered = (
        select(events.c.id, place.label("place"))
        .join(reports, reports.c.id == events.c.report_id)
        .where(and_(events.c.timestamp >= distinct.start, events.c.timestamp <= distinct.end))
        .subquery()
    )
    return select(numbered.c.id).where(numbered.c.place == 1)
