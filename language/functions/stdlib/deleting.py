"""Removal of elements: delete, delete_at, delete_regex, delete_undef_values, delete_values."""

from __future__ import annotations

import re

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...types.inference.iterables import elements
from ...values.core import Value, is_same, key_of
from ...values.digits import parse_integer
from ...values.labels import ruby_class
from ..api import Context, legacy_function, require_count
from ..strings import ruby_text
from .numbers import integer_at_start


def _items(value: Value) -> list[Value]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _delete_text(text: str, item: Value) -> str:
    if isinstance(item, Regexp):
        return item.substitute(text, lambda match: "")
    if not isinstance(item, str):
        raise EvaluationError(f"wrong argument type {ruby_class(item)} (expected Regexp)")
    return text.replace(item, "") if item else text


@legacy_function("delete", -1)
def delete(context: Context, *arguments: Value) -> Value:
    """Return an array, hash or string without all elements, keys or parts that equal the item or one of the items."""
    if len(arguments) != 2:
        raise EvaluationError(f"delete(): Wrong number of arguments given {len(arguments)} for 2")
    collection = arguments[0]
    for item in _items(arguments[1]):
        if isinstance(collection, list):
            collection = [element for element in collection if not is_same(element, item)]
        elif isinstance(collection, dict):
            collection = {key: value for key, value in collection.items() if key != key_of(item)}
        elif isinstance(collection, str):
            collection = _delete_text(collection, item)
        else:
            class_name = ruby_class(collection)
            raise EvaluationError(f"delete(): First argument must be an Array, String, or Hash. Given an argument of class {class_name}.")
    return collection


@legacy_function("delete_at", -1)
def delete_at(context: Context, *arguments: Value) -> list[Value]:
    """Return an array without the element at an index."""
    require_count("delete_at", arguments, 2)
    array, index = arguments[0], arguments[1]
    if not isinstance(array, list):
        raise EvaluationError("delete_at(): Requires array to work with")
    if isinstance(index, str) and re.search(r"^\d+$", index, re.MULTILINE | re.ASCII) is None:
        raise EvaluationError("delete_at(): You must provide non-negative numeric index")
    position = parse_integer(index) if isinstance(index, str) and index.isdecimal() else integer_at_start(index)
    if position > len(array) - 1:
        raise EvaluationError("delete_at(): Given index exceeds size of array given")
    remaining = list(array)
    if -len(array) <= position:
        del remaining[position]
    return remaining


def _patterns(value: Value) -> list[Value]:
    """Return the patterns of an argument; a hash means the array of its pairs."""
    return list(elements(value)) if isinstance(value, dict) else _items(value)


@legacy_function("delete_regex", -1)
def delete_regex(context: Context, *arguments: Value) -> Value:
    """Return an array or hash without the elements or keys in which a regular expression, given as text, matches whole words."""
    if len(arguments) != 2:
        raise EvaluationError(f"delete_regex(): Wrong number of arguments given {len(arguments)} for 2")
    collection, patterns = arguments[0], _patterns(arguments[1])
    if isinstance(collection, str) and not patterns:
        return collection
    if not isinstance(collection, list | dict):
        kind = ruby_class(collection)
        raise EvaluationError(f"delete_regex(): First argument must be an Array, Hash, or String. Given an argument of class {kind}.")
    for item in patterns:
        pattern = Regexp(rf"\b{item.source if isinstance(item, Regexp) else ruby_text(item)}\b")
        if isinstance(collection, list):
            collection = [element for element in collection if not (isinstance(element, str) and pattern.search(element))]
        else:
            collection = {key: value for key, value in collection.items() if not (isinstance(key, str) and pattern.search(key))}
    return collection


@legacy_function("delete_undef_values", -1)
def delete_undef_values(context: Context, *arguments: Value) -> Value:
    """Return an array or hash without undef values."""
    if not arguments:
        raise EvaluationError("delete_undef_values(): Wrong number of arguments given (0)")
    value = arguments[0]
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [item for item in value if item is not None]
    raise EvaluationError(f"delete_undef_values(): expected an array or hash, got {ruby_text(value)} type  {ruby_class(value)} ")


@legacy_function("delete_values", -1)
def delete_values(context: Context, *arguments: Value) -> dict[Value, Value]:
    """Return a hash without the keys that have this value."""
    if len(arguments) != 2:
        raise EvaluationError(f"delete_values(): Wrong number of arguments given ({len(arguments)} of 2)")
    hash_, deleted_value = arguments
    if not isinstance(hash_, dict):
        raise EvaluationError(f"delete_values(): First argument must be a Hash. Given an argument of class {ruby_class(hash_)}.")
    return {key: value for key, value in hash_.items() if not is_same(value, deleted_value)}
