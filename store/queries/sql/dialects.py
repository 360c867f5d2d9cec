"""What the two databases write differently: JSON, lists, regular expressions, times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import ColumnElement, FromClause

from ...jsontext import Json
from ..language.tree import Operator

Expression = ColumnElement[Any]


class Sql(Protocol):
    """
    Expressions of one of the databases.

    A `document` or `leaf` is JSON as the database has it (jsonb, or text); SQL's NULL stands for a place that does not exist.
    """

    def __hash__(self) -> int: ...

    def at(self, document: Expression, keys: Sequence[str | int]) -> Expression:
        """Return the JSON below keys; digits are the index of a list, too."""
        ...

    def text(self, leaf: Expression) -> Expression:
        """Return the text of a string, and everything else as jsonb writes it; NULL for null."""
        ...

    def json_text(self, leaf: Expression) -> Expression:
        """Return the JSON itself as a text."""
        ...

    def number(self, leaf: Expression) -> Expression:
        """Return the number; NULL for everything else."""
        ...

    def type_name(self, leaf: Expression) -> Expression:
        """Return `number`, `string`, `boolean`, `null`, `array` or `object`."""
        ...

    def is_equal(self, leaf: Expression, value: Json) -> Expression:
        """Return whether JSON is a value: 7 is 7.0, and the order of keys does not count."""
        ...

    def is_one_of(self, leaf: Expression, values: Sequence[Json]) -> Expression:
        """Return whether JSON is one of several values."""
        ...

    def contains(self, leaf: Expression, value: Json) -> Expression:
        """Return whether JSON is a value or, if that is an object or an array, contains all of it."""
        ...

    def compare(self, leaf: Expression, operator: Operator, value: Json) -> Expression:
        """Compare JSON across types: null, strings, numbers, booleans, arrays, objects."""
        ...

    def sort_key(self, leaf: Expression) -> Expression:
        """Return what JSON is sorted by, in the same order."""
        ...

    def is_true(self, column: Expression) -> Expression:
        """Return whether a boolean is true, in the way that partial indexes have it."""
        ...

    def number_parameter(self, value: float) -> Expression:
        """Return a number of a query, of any size, as a parameter."""
        ...

    def text_in(self, text: Expression, values: Sequence[str]) -> Expression:
        """Return whether a text is one of several, which are one parameter."""
        ...

    def matches(self, text: Expression, pattern: str) -> Expression:
        """Return whether a regular expression, as `translate` writes it, is found in a text."""
        ...

    def sorted_text(self, text: Expression) -> Expression:
        """Return a text with the order of its code points."""
        ...

    def elements(self, array: Expression) -> FromClause:
        """Return the elements of an array of strings as rows, in the column `value`."""
        ...

    def members(self, array: Expression) -> FromClause:
        """Return the elements of an array as rows, in the column `value`, as JSON."""
        ...

    def has_element(self, array: Expression, value: str) -> Expression:
        """Return whether a string is an element of an array; NULL where there is no array."""
        ...

    def format_time(self, microseconds: Expression, form: str) -> Expression:
        """Return a time as PostgreSQL's to_char writes it, in UTC."""
        ...

    def path_element(self, path: Expression, index: int) -> Expression:
        """Return an element of the path of a fact as a text."""
        ...

    def path_length(self, path: Expression) -> Expression:
        """Return the number of elements of a path."""
        ...

    def path_key(self, path: Expression) -> Expression:
        """Return what paths are sorted by: their elements as texts."""
        ...

    def at_path(self, value: Expression, path: Expression, pointer: Expression) -> Expression:
        """Return what the path of a fact leads to in the fact's value."""
        ...

    def at_prefix(self, value: Expression, path: Expression, length: int) -> Expression:
        """Return what the first elements of the path of a fact lead to in the fact's value."""
        ...

    def leaf_type(self, value: Expression, path: Expression, pointer: Expression) -> Expression:
        """Return the type of a leaf as fact_paths names it; for what is no leaf, something else."""
        ...

    def object_of(self, name: Expression, value: Expression) -> Expression:
        """Return an aggregate: an object of names and JSON values; `{}` of nothing."""
        ...

    def array_of(self, members: Mapping[str, tuple[Expression, bool, bool]]) -> Expression:
        """Return an aggregate: an array of objects. A member is an expression, and whether it is JSON, or a boolean; NULL of nothing."""
        ...
