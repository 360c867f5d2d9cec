"""The expressions of SQLite, where JSON is text. What SQLite lacks are functions in Python, which each connection knows."""

from __future__ import annotations

import operator as operators
import re
from collections.abc import Mapping, Sequence

from sqlalchemy import (
    Boolean,
    FromClause,
    LargeBinary,
    Text,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    null,
    or_,
    select,
    type_coerce,
)
from sqlalchemy.sql.elements import Grouping

from ...database.columns import JsonColumn, json_text
from ...database.json_values import sort_key_of
from ...jsontext import Json
from ..language.tree import Operator
from .expressions import Expression

COMPARE = {"=": operators.eq, "<": operators.lt, ">": operators.gt, "<=": operators.le, ">=": operators.ge}

_LARGEST = 2**63
_EXACT = 2**53  # a float of SQLite's has each integer up to this one
_ODD_KEY = re.compile(r'["\\\x00-\x1f]|^\d+$')


class SqliteSql:
    """
    Expressions of SQLite; those of PostgreSQL mean the same.

    A `document` or `leaf` is JSON as the database has it (jsonb, or text); SQL's NULL stands for a place that does not exist.
    """

    def at(self, document: Expression, keys: Sequence[str | int]) -> Expression:
        if not keys:
            return document
        if any(isinstance(key, str) and _ODD_KEY.search(key) for key in keys):
            return func.json_lookup(document, literal(json_text(list(keys)), Text), type_=JsonColumn())
        pointer = "$" + "".join(f'."{key}"' if isinstance(key, str) else f"[{key}]" for key in keys)
        return document.op("->", return_type=JsonColumn())(literal(pointer, Text))

    def text(self, leaf: Expression) -> Expression:
        """Return the text of a string, and everything else as jsonb writes it; NULL for null."""
        return func.json_plain_text(leaf, type_=Text())

    def json_text(self, leaf: Expression) -> Expression:
        """Return the JSON itself as a text."""
        return type_coerce(leaf, Text)

    def number(self, leaf: Expression) -> Expression:
        """Return the number; NULL for everything else."""
        return case((func.json_type(leaf).in_(("integer", "real")), func.json_extract(leaf, "$")))

    def type_name(self, leaf: Expression) -> Expression:
        """Return `number`, `string`, `boolean`, `null`, `array` or `object`."""
        name = func.json_type(leaf, type_=Text())
        return case(
            (name.in_(("integer", "real")), "number"), (name.in_(("true", "false")), "boolean"), (name == "text", "string"), else_=name
        )

    def is_equal(self, leaf: Expression, value: Json) -> Expression:
        """Return whether JSON is a value: 7 is 7.0, and the order of keys does not count."""
        if isinstance(value, list | dict) or (isinstance(value, int | float) and abs(value) > _EXACT):
            return self._key(leaf) == literal(sort_key_of(value), LargeBinary)
        if isinstance(value, int | float) and not isinstance(value, bool):
            number = func.json_extract(leaf, "$") == self.number_parameter(value)
            return case((leaf.is_(None), null()), (func.json_type(leaf).in_(("integer", "real")), number), else_=false())
        return type_coerce(leaf, Text) == literal(json_text(value), Text)

    def is_one_of(self, leaf: Expression, values: Sequence[Json]) -> Expression:
        """Return whether JSON is one of several values."""
        texts = [json_text(value) for value in values if isinstance(value, str | bool | None)]
        keys = [sort_key_of(value).hex().upper() for value in values if not isinstance(value, str | bool | None)]
        is_other = [self.text_in(func.hex(self._key(leaf)), keys)] if keys else []
        return or_(self.text_in(type_coerce(leaf, Text), texts), *is_other)

    def contains(self, leaf: Expression, value: Json) -> Expression:
        """Return whether JSON is a value or, if that is an object or an array, contains all of it."""
        if isinstance(value, list | dict):
            return func.json_contains(leaf, literal(json_text(value), Text), type_=Boolean())
        return self.is_equal(leaf, value)

    def compare(self, leaf: Expression, operator: Operator, value: Json) -> Expression:
        """Compare JSON across types: null, strings, numbers, booleans, arrays, objects."""
        comparison: Expression = COMPARE[operator](self._key(leaf), literal(sort_key_of(value), LargeBinary))
        return comparison

    def sort_key(self, leaf: Expression) -> Expression:
        """Return what JSON is sorted by, in the same order."""
        return self._key(leaf)

    def _key(self, leaf: Expression) -> Expression:
        return func.json_sort_key(leaf, type_=LargeBinary())

    def is_true(self, column: Expression) -> Expression:
        """Return whether a boolean is true, in the way that partial indexes have it."""
        return Grouping(column)  # SQLAlchemy would write `= 1`, which SQLite does not recognize in an index `WHERE exported`

    def number_parameter(self, value: float) -> Expression:
        """Return a number of a query, of any size, as a parameter."""
        return literal(value if isinstance(value, float) or abs(value) < _LARGEST else _nearest(value))

    def text_in(self, text: Expression, values: Sequence[str]) -> Expression:
        """Return whether a text is one of several, which are one parameter."""
        return type_coerce(text, Text).in_(select(func.json_each(literal(json_text(list(values)), Text)).table_valued("value").c.value))

    def matches(self, text: Expression, pattern: str) -> Expression:
        """Return whether a regular expression, as `translate` writes it, is found in a text."""
        return func.regexp(literal(pattern, Text), text, type_=Boolean())

    def sorted_text(self, text: Expression) -> Expression:
        """Return a text with the order of its code points."""
        return text

    def elements(self, array: Expression) -> FromClause:
        """Return the elements of an array of strings as rows, in the column `value`."""
        return func.json_each(array).table_valued("value")

    def members(self, array: Expression) -> FromClause:
        """Return the elements of an array as rows, in the column `value`, as JSON."""
        return func.json_each(array).table_valued("value")

    def has_element(self, array: Expression, value: str) -> Expression:
        """Return whether a string is an element of an array; NULL where there is no array."""
        rows = self.elements(array)
        is_there = exists(select(literal(1)).select_from(rows).where(rows.c.value == literal(value, Text)))
        return case((array.is_(None), null()), else_=is_there)

    def format_time(self, microseconds: Expression, form: str) -> Expression:
        """Return a time as PostgreSQL's to_char writes it, in UTC."""
        return func.to_char(microseconds, literal(form, Text), type_=Text())

    def path_element(self, path: Expression, index: int) -> Expression:
        """Return an element of the path of a fact as a text."""
        return cast(func.json_extract(path, literal(f"$[{index}]", Text)), Text)

    def path_length(self, path: Expression) -> Expression:
        """Return the number of elements of a path."""
        return func.json_array_length(path)

    def path_key(self, path: Expression) -> Expression:
        """Return what paths are sorted by: their elements as texts."""
        return func.path_sort_key(path, type_=LargeBinary())

    def at_path(self, value: Expression, path: Expression, pointer: Expression) -> Expression:
        """Return what the path of a fact leads to in the fact's value."""
        odd = func.json_lookup(value, path, 1, type_=JsonColumn())
        return case((func.instr(pointer, "\\") > 0, odd), else_=value.op("->", return_type=JsonColumn())(pointer))

    def at_prefix(self, value: Expression, path: Expression, length: int) -> Expression:
        """Return what the first elements of the path of a fact lead to in the fact's value."""
        return func.json_lookup(value, path, 1, length, type_=JsonColumn())

    def leaf_type(self, value: Expression, path: Expression, pointer: Expression) -> Expression:
        """Return the type of a leaf as fact_paths names it; for what is no leaf, something else."""
        odd = func.json_type(func.json_lookup(value, path, 1), type_=Text())
        name = case((func.instr(pointer, "\\") > 0, odd), else_=func.json_type(value, pointer, type_=Text()))
        return case(
            {"text": "string", "integer": "integer", "real": "float", "true": "boolean", "false": "boolean", "null": "null"}, value=name
        )

    def object_of(self, name: Expression, value: Expression) -> Expression:
        """Return an aggregate: an object of names and JSON values; `{}` of nothing."""
        return func.json_group_object(name, func.json(value), type_=JsonColumn())

    def array_of(self, members: Mapping[str, tuple[Expression, bool, bool]]) -> Expression:
        """Return an aggregate: an array of objects. A member is an expression, and whether it is JSON, or a boolean; NULL of nothing."""
        arguments: list[Expression] = []
        for name, (member, is_json, is_boolean) in members.items():
            if is_boolean:
                member = func.json(case((member.is_(True), "true"), (member.is_(False), "false")))
            arguments += (literal(name, Text), func.json(member) if is_json else member)
        rows = func.json_group_array(func.json_object(*arguments), type_=Text())
        return type_coerce(func.nullif(rows, "[]"), JsonColumn)


def _nearest(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
