"""The expressions of PostgreSQL, where JSON is jsonb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from sqlalchemy import (
    Boolean,
    FromClause,
    Integer,
    Numeric,
    Text,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONPATH

from ...database.columns import JsonColumn
from ...jsontext import Json
from ..language.tree import Operator
from .expressions import Expression


class PostgresqlSql:
    """Expressions of PostgreSQL; SqliteSql says what each of them means."""

    def at(self, document: Expression, keys: Sequence[str | int]) -> Expression:
        if not keys:
            return document
        return document.op("#>", return_type=JsonColumn())(cast(literal([str(key) for key in keys], ARRAY(Text)), ARRAY(Text)))

    def text(self, leaf: Expression) -> Expression:
        return _raw_text(leaf)

    def json_text(self, leaf: Expression) -> Expression:
        return cast(leaf, Text)

    def number(self, leaf: Expression) -> Expression:
        return case((func.jsonb_typeof(leaf) == "number", cast(_raw_text(leaf), Numeric)))

    def type_name(self, leaf: Expression) -> Expression:
        return func.jsonb_typeof(leaf, type_=Text())

    def is_equal(self, leaf: Expression, value: Json) -> Expression:
        return _json(leaf).op("=", is_comparison=True)(_parameter(value))

    def is_one_of(self, leaf: Expression, values: Sequence[Json]) -> Expression:
        rows = func.jsonb_array_elements(_parameter(list(values))).table_valued("value")
        return _json(leaf).in_(select(type_coerce(rows.c.value, JsonColumn)))

    def contains(self, leaf: Expression, value: Json) -> Expression:
        if isinstance(value, list | dict):
            return leaf.op("@>", is_comparison=True)(_parameter(value))
        return self.is_equal(leaf, value)

    def compare(self, leaf: Expression, operator: Operator, value: Json) -> Expression:
        return _json(leaf).op(operator, is_comparison=True)(_parameter(value))

    def sort_key(self, leaf: Expression) -> Expression:
        return leaf

    def is_true(self, column: Expression) -> Expression:
        return column

    def number_parameter(self, value: float) -> Expression:
        return literal(value if isinstance(value, int) else Decimal(repr(value)), Numeric)

    def text_in(self, text: Expression, values: Sequence[str]) -> Expression:
        return text == func.any(cast(literal(list(values), ARRAY(Text)), ARRAY(Text)))

    def matches(self, text: Expression, pattern: str) -> Expression:
        return text.op("~", is_comparison=True, return_type=Boolean())(literal(pattern, Text))

    def sorted_text(self, text: Expression) -> Expression:
        return text.collate("C")

    def elements(self, array: Expression) -> FromClause:
        safe = case((func.jsonb_typeof(array) == "array", array))
        return func.jsonb_array_elements_text(safe).table_valued("value")

    def members(self, array: Expression) -> FromClause:
        return func.jsonb_array_elements(array).table_valued("value")

    def has_element(self, array: Expression, value: str) -> Expression:
        return array.op("?", is_comparison=True, return_type=Boolean())(literal(value, Text))

    def format_time(self, microseconds: Expression, form: str) -> Expression:
        moment: Expression = literal_column("timestamp 'epoch'") + microseconds * literal_column("interval '1 microsecond'")
        return func.to_char(moment, literal(form, Text), type_=Text())

    def path_element(self, path: Expression, index: int) -> Expression:
        return path.op("->>", return_type=Text())(literal(index, Integer))

    def path_length(self, path: Expression) -> Expression:
        return func.jsonb_array_length(path)

    def path_key(self, path: Expression) -> Expression:
        elements = func.jsonb_array_elements_text(path).table_valued("value")
        texts = func.array(select(elements.c.value).scalar_subquery())
        return func.array_to_string(texts, "\x01", type_=Text()).collate("C")

    def at_path(self, value: Expression, path: Expression, pointer: Expression) -> Expression:
        place = cast(literal_column("'strict '").op("||")(pointer), JSONPATH)
        return func.jsonb_path_query_first(value, place, literal_column("'{}'"), literal_column("true"), type_=JsonColumn())

    def at_prefix(self, value: Expression, path: Expression, length: int) -> Expression:
        elements = func.jsonb_array_elements_text(path).table_valued("value")
        keys = func.array(select(elements.c.value).offset(1).limit(length - 1).scalar_subquery())
        return value.op("#>", return_type=JsonColumn())(keys)

    def leaf_type(self, value: Expression, path: Expression, pointer: Expression) -> Expression:
        leaf = self.at_path(value, path, pointer)
        is_integer = cast(leaf, Text).op("~", is_comparison=True)(literal_column("'^-?[0-9]+$'"))
        name = func.jsonb_typeof(leaf)
        return case(
            (name == "number", case((is_integer, "integer"), else_="float")),
            (name.in_(("string", "boolean", "null")), name),
        )

    def object_of(self, name: Expression, value: Expression) -> Expression:
        return func.coalesce(func.jsonb_object_agg(name, value), literal_column("'{}'::jsonb"), type_=JsonColumn())

    def array_of(self, members: Mapping[str, tuple[Expression, bool, bool]]) -> Expression:
        arguments: list[Expression] = []
        for name, (member, _, _) in members.items():
            arguments += (literal(name, Text), member)
        return func.jsonb_agg(func.jsonb_build_object(*arguments), type_=JsonColumn())


def _json(leaf: Expression) -> Expression:
    return type_coerce(leaf, JsonColumn)


def _parameter(value: Json) -> Expression:
    return literal(value, JsonColumn())


def _raw_text(leaf: Expression) -> Expression:
    return leaf.op("#>>", return_type=Text())(literal_column("'{}'"))
