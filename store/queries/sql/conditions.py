"""Criteria as conditions of SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import BigInteger, Integer, Text, and_, exists, false, func, literal, not_, or_, select, true, tuple_, type_coerce
from sqlalchemy.sql.selectable import Select

from ...database.columns import JsonColumn, json_text
from ...database.tables import fact_paths, facts, nodes
from ..language.patterns import translate
from ..language.tree import (
    Both,
    ColumnFunction,
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
    ParameterValue,
    PathMatch,
    Place,
    Selection,
    StateCheck,
)
from ..questions import QueryRefused
from ..schema.fields import Field, Kind
from .dialects import Sql
from .expressions import Expression
from .sources import EntitySource
from .sqlite import COMPARE

_JSON = (Kind.JSON, Kind.SERIALIZED, Kind.DOCUMENT)
_LISTS = (Kind.LIST, Kind.TAG)


class Conditions:
    """
    Turns criteria into conditions.

    `inactive_since` is the time, in microseconds, before which a node that became inactive is not even one of those. `select_columns`
    turns a subquery into a SELECT of the columns that it extracts.
    """

    def __init__(self, sql: Sql, inactive_since: int, select_columns: Callable[[Selection], Select[Any]]) -> None:
        self._sql = sql
        self._inactive_since = inactive_since
        self._select_columns = select_columns

    def condition(self, source: EntitySource, criterion: Criterion) -> Expression:
        """Return the condition that rows of a source must meet."""
        match criterion:
            case Both(items, is_all):
                conditions = [self.condition(source, item) for item in items if not _is_for_all(item)]
                return _balanced(conditions, is_all=is_all) if conditions else true()
            case Not(item) if _is_for_all(item):
                return true()
            case Not(item):
                return not_(self.condition(source, item).self_group())
            case StateCheck(state):
                return self._node_state(source, state)
            case JsonType(field, name):
                return self._sql.type_name(source.fields[field.name]) == name
            case PathMatch():
                return self._path_match(source, criterion)
            case InQuery(fields, query):
                return self._in_query(source, fields, query)
            case InRows(fields, rows):
                columns = [source.fields[field.name] for field in fields]
                return or_(false(), *(and_(*(column == value for column, value in zip(columns, row, strict=True))) for row in rows))
            case Comparison() | Match() | NullCheck() | InValues():
                place = criterion.place
                return self._of_field(source, place, criterion) if isinstance(place, Field) else self._of_value(source, place, criterion)

    def _of_field(self, source: EntitySource, field: Field, criterion: Comparison | Match | NullCheck | InValues) -> Expression:
        column = source.fields.get(field.name)
        if field.kind is Kind.LATEST_REPORT:
            return self._latest_report(source, criterion)
        assert column is not None
        match criterion:
            case NullCheck(_, is_null):
                return _null_check(column, field.kind, is_null=is_null)
            case Match(_, pattern):
                return self._field_matches(column, field.kind, pattern)
            case InValues(_, values):
                return self._one_of(column, field.kind, values)
            case Comparison(_, operator, value):
                if field.kind is Kind.DOCUMENT:
                    return self._sql.contains(column, value)
                if field.kind in _JSON:
                    if operator == "=":
                        return self._sql.is_equal(column, value)
                    assert isinstance(value, int | float)
                    return _coalesced(COMPARE[operator](self._sql.number(column), self._sql.number_parameter(value)))
                if field.kind in _LISTS:
                    return self._sql.has_element(column, value) if isinstance(value, str) else false()
                if field.kind is Kind.BOOLEAN:
                    return self._sql.is_true(column) if value is True else not_(column)
                if field.kind is Kind.PATH:
                    return column == value
                if isinstance(value, int | float):
                    return _compare(operator, column, self._sql.number_parameter(value))
                if operator == "=" and field.name in source.named:
                    return source.named[field.name].is_named(literal(value, Text))
                return _compare(operator, column, literal(value, Text))

    def _one_of(self, column: Expression, kind: Kind, values: Sequence[Any]) -> Expression:
        if kind is Kind.TEXT:
            return self._sql.text_in(column, values)
        if kind in _JSON:
            return self._sql.is_one_of(column, values)
        if kind is Kind.PATH:
            return or_(false(), *(column == value for value in values))
        if kind is Kind.BOOLEAN:
            return or_(false(), *(self._sql.is_true(column) if value else not_(column) for value in dict.fromkeys(values)))
        limit = 2**31 if isinstance(column.type, Integer) and not isinstance(column.type, BigInteger) else 2**63
        return column.in_([int(value) for value in values if abs(value) < limit and value == int(value)])  # no row has any other

    def _field_matches(self, column: Expression, kind: Kind, pattern: str) -> Expression:
        """Return whether a field matches. A field without a value does not match, except JSON null, where the result is unknown."""
        if kind in _LISTS:
            rows = self._sql.elements(column)
            return exists(select(literal(1)).select_from(rows).where(self._sql.matches(rows.c.value, translate(pattern))))
        if kind is Kind.SERIALIZED:
            return _coalesced(self._sql.matches(self._sql.json_text(column), translate(json_text(pattern))))
        if kind is Kind.JSON:
            return self._sql.matches(self._sql.text(column), translate(pattern))
        return _coalesced(self._sql.matches(column, translate(pattern)))

    def _latest_report(self, source: EntitySource, criterion: Comparison | Match | NullCheck | InValues) -> Expression:
        if not isinstance(criterion, Comparison) or source.report is None:
            raise QueryRefused("latest_report? takes the operator = only")
        latest = select(nodes.c.latest_report_id).where(nodes.c.latest_report_id.is_not(None))
        return source.report.in_(latest) if criterion.value else source.report.not_in(latest)

    def _of_value(self, source: EntitySource, place: Place, criterion: Comparison | Match | NullCheck | InValues) -> Expression:
        """Return the condition for a place inside a value: of a fact, of a parameter, or of a document."""
        match place:
            case FactValue(name):
                return self._some_fact(source, facts.c.name == name, lambda value: self._of_fact(value, criterion))
            case ParameterValue(name):
                leaf = self._sql.at(source.fields["parameters"], [name])
                return _coalesced(self._of_parameter(leaf, criterion))
            case Dotted(_, field, parts) if field.name == "facts":
                head, *rest = parts
                if any(part.is_pattern for part in parts):
                    return self._some_path(source, place, criterion)
                if not isinstance(criterion, InValues) and not (isinstance(criterion, Comparison) and criterion.operator == "="):
                    return self._of_leaf(self.value_at(source, place), criterion)  # unknown, not false, where there is no such fact
                keys = [part.key for part in rest]
                return self._some_fact(
                    source, facts.c.name == str(head.key), lambda value: self._of_leaf(self._sql.at(value, keys), criterion)
                )
            case Dotted(name, field, parts):
                if any(part.is_pattern for part in parts):
                    raise QueryRefused(f"'match' is for facts, not for '{name}'")
                condition = self._of_leaf(self._sql.at(source.fields[field.name], [part.key for part in parts]), criterion)
                return _coalesced(condition) if isinstance(criterion, Comparison) and criterion.operator == "=" else condition
        raise AssertionError(place)

    def _some_fact(self, source: EntitySource, is_named: Expression, condition: Callable[[Expression], Expression]) -> Expression:
        assert source.node is not None
        return source.node.c.id.in_(select(facts.c.node_id).where(is_named, condition(facts.c.value)))

    def _of_fact(self, value: Expression, criterion: Comparison | Match | NullCheck | InValues) -> Expression:
        match criterion:
            case Comparison(_, "=", wanted):
                return self._sql.is_equal(value, wanted)
        return self._of_leaf(value, criterion)

    def _of_parameter(self, leaf: Expression, criterion: Comparison | Match | NullCheck | InValues) -> Expression:
        match criterion:
            case Comparison(_, _, value):
                return self._sql.is_equal(leaf, value)
            case Match(_, pattern):
                return self._sql.matches(self._sql.json_text(leaf), translate(json_text(pattern)))
        return self._of_leaf(leaf, criterion)

    def _of_leaf(self, leaf: Expression, criterion: Comparison | Match | NullCheck | InValues) -> Expression:
        match criterion:
            case Comparison(_, "=", value):
                return self._sql.contains(leaf, value)
            case Comparison(_, operator, value):
                return self._sql.compare(leaf, operator, value)
            case Match(_, pattern):
                return self._sql.matches(self._sql.text(leaf), translate(pattern))
            case InValues(_, values):
                return self._sql.is_one_of(leaf, values)
            case NullCheck(_, is_null):
                return self._sql.type_name(leaf) == "null" if is_null else self._sql.type_name(leaf) != "null"

    def _some_path(self, source: EntitySource, place: Dotted, criterion: Comparison | Match | NullCheck | InValues) -> Expression:
        """Return the condition for a dotted name with patterns: one of the paths of facts that match it leads to such a value."""
        assert source.node is not None
        path = fact_paths.c.path
        conditions: list[Expression] = [fact_paths.c.name == facts.c.name, self._sql.path_length(path) >= len(place.parts)]
        for index, part in enumerate(place.parts):
            element = self._sql.path_element(path, index)
            if part.is_pattern:
                conditions.append(self._sql.matches(element, translate(str(part.key), is_whole=True)))
            else:
                conditions.append(element == str(part.key))
        leaf = self._sql.at_prefix(facts.c.value, path, len(place.parts))
        inner = select(facts.c.node_id).where(*conditions, self._of_leaf(leaf, criterion))
        return source.node.c.id.in_(inner)

    def _path_match(self, source: EntitySource, criterion: PathMatch) -> Expression:
        if source.path is not None:  # look for the paths first, which are few, and then for the facts that have them
            paths = fact_paths.alias()
            return source.path.in_(select(paths.c.id).where(*self._path_conditions(paths.c.path, criterion)))
        return and_(*self._path_conditions(source.fields[criterion.field.name], criterion))

    def _path_conditions(self, path: Expression, criterion: PathMatch) -> list[Expression]:
        conditions: list[Expression] = [self._sql.path_length(path) == len(criterion.parts)]
        for index, part in enumerate(criterion.parts):
            element = self._sql.path_element(path, index)
            if isinstance(part, int):
                conditions.append(element == str(part))
            elif part != ".*":
                conditions.append(self._sql.matches(element, translate(part, is_whole=criterion.is_whole)))
        return conditions

    def _node_state(self, source: EntitySource, state: str) -> Expression:
        if source.node is None:
            raise QueryRefused("node_state makes no sense for what belongs to no node")
        deactivated, expired = source.node.c.deactivated, source.node.c.expired
        if state == "active":
            return and_(deactivated.is_(None), expired.is_(None))
        if state == "inactive":
            return _coalesced(or_(deactivated > self._inactive_since, expired > self._inactive_since))
        return true()

    def _in_query(self, source: EntitySource, fields: Sequence[Field | Dotted], query: Selection) -> Expression:
        pairs = [(_kind_of(field), _kind_of(column)) for field, column in zip(fields, query.columns or (), strict=True)]
        left = [self._left(source, field, other) for field, (_, other) in zip(fields, pairs, strict=True)]
        rows = self._select_columns(query)
        for kind, other in pairs:
            if kind != other and {kind, other} != {"text", "json"}:
                raise QueryRefused(f"'in' cannot compare a {kind} with a {other}")
        if ("text", "json") in pairs:
            columns = zip(rows.subquery().c, pairs, strict=True)
            rows = select(*(self._sql.text(column) if pair == ("text", "json") else column for column, pair in columns))
        return left[0].in_(rows) if len(left) == 1 else tuple_(*left).in_(rows)

    def _left(self, source: EntitySource, field: Field | Dotted, other: str) -> Expression:
        expression = self.value_at(source, field)
        return self._sql.text(expression) if _kind_of(field) == "json" and other == "text" else expression

    def value_at(self, source: EntitySource, place: Field | Dotted) -> Expression:
        """Return the value of a field, or the JSON at a dotted place, NULL where there is none."""
        if isinstance(place, Field):
            return source.fields[place.name]
        if place.field.name != "facts":
            return type_coerce(self._sql.at(source.fields[place.field.name], [part.key for part in place.parts]), JsonColumn)
        assert source.node is not None
        fact = facts.alias()
        head, *rest = place.parts
        leaf = self._sql.at(fact.c.value, [part.key for part in rest])
        chosen = select(leaf).where(fact.c.node_id == source.node.c.id, fact.c.name == str(head.key))
        return type_coerce(chosen.scalar_subquery(), JsonColumn)


def _balanced(items: list[Expression], *, is_all: bool) -> Expression:
    """
    Return items joined by AND or OR as a tree that is as flat as can be.

    SQLite limits the depth of an expression, and `a AND b AND c` is one level deeper for each of them.
    """
    join = and_ if is_all else or_
    while len(items) > 16:
        items = [join(*items[start : start + 16]).self_group() for start in range(0, len(items), 16)]
    return join(*items).self_group()


def _is_for_all(criterion: Criterion) -> bool:
    """Return whether a criterion only selects nodes of any state: as in PuppetDB it changes nothing else."""
    match criterion:
        case StateCheck("any"):
            return True
        case Not(item):
            return _is_for_all(item)
        case Both(items):
            return all(map(_is_for_all, items))
    return False


def _compare(operator: str, column: Expression, value: Expression) -> Expression:
    comparison: Expression = COMPARE[operator](column, value)
    return comparison


def _coalesced(condition: Expression) -> Expression:
    """Return a condition that is false, not unknown, where a value is missing."""
    return func.coalesce(condition, false())


def _null_check(column: Expression, kind: Kind, *, is_null: bool) -> Expression:
    if kind in (Kind.JSON, Kind.SERIALIZED):
        return column == null_json() if is_null else column != null_json()
    return column.is_(None) if is_null else column.is_not(None)


def null_json() -> Expression:
    """Return JSON's null."""
    return literal(None, JsonColumn())


def _kind_of(column: Field | Dotted | ColumnFunction) -> str:
    """Return the name of the values of a column, for those that `in` compares."""
    match column:
        case Dotted():
            return "json"
        case ColumnFunction("to_string"):
            return "text"
        case ColumnFunction("min" | "max", Field() as field):
            return "number" if field.kind in (Kind.JSON, Kind.INTEGER) else _kind_of(field)
        case ColumnFunction():
            return "number"
    return {
        Kind.TEXT: "text",
        Kind.INTEGER: "number",
        Kind.BOOLEAN: "boolean",
        Kind.TIME: "time",
        Kind.STATE_TIME: "time",
        Kind.PATH: "path",
    }.get(column.kind, "json" if column.kind in _JSON else "list")
