"""Arrays: concat, union and the like, member, range, zip, values_at: their elements and the order of these."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ...types.notation.operands import flatten_arrays
from ...values.core import Key, Value, entries, is_same, key_of, value_of
from ...values.digits import parse_integer
from ...values.labels import ruby_class
from ..api import Context, legacy_function, require_count
from ..strings import ruby_text
from .booleans import parse_boolean
from .numbers import integer_at_start

MAX_RANGE: Final = 1_000_000  # elements; the reference also truncates a longer one


def unique_items(items: list[Value]) -> list[Value]:
    """Return the values without repetitions, by strict equality, in the order of their first occurrence."""
    return [value_of(key) for key in dict.fromkeys([key_of(item) for item in items])]


def _require_array(name: str, value: Value, message: str = "Requires array to work with") -> list[Value]:
    if not isinstance(value, list):
        raise EvaluationError(f"{name}(): {message}")
    return value


@legacy_function("any2array", -1)
def any2array(context: Context, *values: Value) -> list[Value]:
    """Return the arguments as an array: an array unchanged, a hash as alternating keys and values, '' and undef as an empty array."""
    if len(values) != 1:
        return list(values)
    only = values[0]
    if isinstance(only, list):
        return only
    if only == "":
        return []
    return [part for pair in entries(only) for part in pair] if isinstance(only, dict) else [only]


@legacy_function("concat", -1)
def concat(context: Context, *values: Value) -> list[Value]:
    """Return the first array with all other arguments appended; arrays among these are flattened by one level."""
    require_count("concat", values, 2, wanted="< 2")
    result = list(_require_array("concat", values[0]))
    for value in values[1:]:
        result.extend(value if isinstance(value, list) else [value])
    return result


@legacy_function("count", -2)
def count(context: Context, collection: Value, *rest: Value) -> int:
    """Return the number of elements that equal the item; without an item, of those that are neither undef nor ''."""
    if len(rest) > 1:
        raise EvaluationError(f"count(): Wrong number of arguments given {len(rest) + 1} for 1 or 2.")
    if not isinstance(collection, list | dict):
        raise EvaluationError(f"count(): Requires an array or a hash, got {ruby_class(collection)}")
    items = [list(pair) for pair in entries(collection)] if isinstance(collection, dict) else collection
    if rest and rest[0] is not False:
        return sum(is_same(item, rest[0]) for item in items)
    return sum(item is not None and item != "" for item in items)


@legacy_function("difference", -1)
def difference(context: Context, *arrays: Value) -> list[Value]:
    """Return the elements of the first array that are not in the second."""
    require_count("difference", arrays, 2, 2)
    first, second = (_require_array("difference", array, "Requires 2 arrays") for array in arrays)
    removed_keys = {key_of(item) for item in second}
    return [item for item in first if key_of(item) not in removed_keys]


@legacy_function("intersection", -1)
def intersection(context: Context, *arrays: Value) -> list[Value]:
    """Return the elements that are in both arrays, without repetitions."""
    require_count("intersection", arrays, 2, 2)
    first, second = arrays
    if not isinstance(first, list) or not isinstance(second, list):
        raise EvaluationError(f"intersection(): Requires 2 arrays, got {ruby_class(first)} and {ruby_class(second)}")
    second_keys = {key_of(item) for item in second}
    return unique_items([item for item in first if key_of(item) in second_keys])


@legacy_function("union", -1)
def union(context: Context, *arrays: Value) -> list[Value]:
    """Return the elements of all arrays, without repetitions."""
    require_count("union", arrays, 2, wanted="< 2")
    return unique_items([item for array in arrays for item in _require_array("union", array, "Every parameter must be an array")])


@legacy_function("member", -1)
def member(context: Context, *arguments: Value) -> bool:
    """Return whether the array contains the item, or all items of an array."""
    require_count("member", arguments, 2)
    array, item_or_items = _require_array("member", arguments[0]), arguments[1]
    if not isinstance(item_or_items, str | list) and item_or_items.__class__ is not int:
        raise EvaluationError("member(): Item to search for must be a string, fixnum, or array")
    items = item_or_items if isinstance(item_or_items, list) else [item_or_items]
    if not items:
        raise EvaluationError("member(): You must provide item to search for within array given")
    keys = {key_of(item) for item in array}
    return all(key_of(item) in keys for item in items)


@legacy_function("reverse", -1)
def reverse(context: Context, *arguments: Value) -> Value:
    """Return a string or array in reverse order."""
    require_count("reverse", arguments, 1)
    if not isinstance(arguments[0], list | str):
        raise EvaluationError("reverse(): Requires either array or string to work with")
    return arguments[0][::-1]


@legacy_function("hash", -1)
def hash_(context: Context, *arguments: Value) -> dict[Key, Value]:
    """Return a hash of keys and values that follow each other in an array, nested or not."""
    require_count("hash", arguments, 1)
    items = list(flatten_arrays(_require_array("hash", arguments[0])))
    if len(items) == 1 and isinstance(items[0], dict):
        return items[0]
    if len(items) % 2:
        raise EvaluationError("hash(): Unable to compute hash from array given")
    return {key_of(key): value for key, value in zip(items[::2], items[1::2], strict=True)}


@legacy_function("zip", -1)
def zip_(context: Context, *arguments: Value) -> list[Value]:
    """Return pairs of the elements of two arrays; flattened when the third argument is true."""
    require_count("zip", arguments, 2)
    first, second = (_require_array("zip", argument) for argument in arguments[:2])
    flat = len(arguments) > 2 and arguments[2] is not False and parse_boolean(arguments[2])
    pairs: list[Value] = [[item, second[index] if index < len(second) else None] for index, item in enumerate(first)]
    return list(flatten_arrays(pairs)) if flat else pairs


# --- matching -----------------------------------------------------------------------------------------------------


def _pattern(value: Value) -> Regexp:
    if isinstance(value, Regexp):
        return value
    if not isinstance(value, str):
        raise EvaluationError(f"no implicit conversion of {_conversion_name(value)} into String")
    pattern = Regexp(value)
    pattern.search("")  # raises for a malformed expression even when there is nothing to search
    return pattern


def _conversion_name(value: Value) -> str:
    """Return the name of the value in Ruby's conversion errors."""
    if value is None or value is True or value is False:
        return {None: "nil", True: "true", False: "false"}[value]
    return ruby_class(value)


def _select(name: str, arguments: tuple[Value, ...], matching: bool) -> list[Value]:
    if len(arguments) != 2:
        raise EvaluationError(f"{name}(): Wrong number of arguments given {len(arguments)} for 2")
    pattern = _pattern(arguments[1])
    array = _require_array(name, arguments[0])
    return [item for item in array if (isinstance(item, str) and pattern.search(item) is not None) is matching]


@legacy_function("grep", -1)
def grep(context: Context, *arguments: Value) -> list[Value]:
    """Return the strings of an array that match the regular expression, which is given as a string."""
    return _select("grep", arguments, True)


@legacy_function("reject", -1)
def reject(context: Context, *arguments: Value) -> list[Value]:
    """Return the elements of an array that do not match the regular expression, which is given as a string."""
    return _select("reject", arguments, False)


# --- by position --------------------------------------------------------------------------------------------------

_SPAN: Final = re.compile(r"(\d+)(\.\.\.?|-)(\d+)", re.ASCII)


def _indexes(text: str, size: int) -> range:
    span = _SPAN.fullmatch(text)
    if span is None:
        if re.fullmatch(r"\d+", text, re.ASCII) is None:
            raise EvaluationError("values_at(): Unknown format of given index")
        index = parse_integer(text)
        if index > size - 1:
            raise EvaluationError("values_at(): Given index exceeds array size")
        return range(index, index + 1)
    start, stop = parse_integer(span[1]), parse_integer(span[3])
    if start > stop:
        raise EvaluationError("values_at(): Stop index in given indices range is smaller than the start index")
    if stop > size - 1:
        raise EvaluationError("values_at(): Stop index in given indices range exceeds array size")
    return range(start, stop if span[2] == "..." else stop + 1)


@legacy_function("values_at", -1)
def values_at(context: Context, *arguments: Value) -> list[Value]:
    """Return the elements at an index, at those of a range such as '2-4', or of an array of both."""
    require_count("values_at", arguments, 2)
    array = _require_array("values_at", arguments[0])
    indexes = list(flatten_arrays([arguments[1]]))
    if not indexes:
        raise EvaluationError("values_at(): You must provide at least one positive index to collect")
    elements = [array[index] for index_text in indexes for index in _indexes(ruby_text(index_text), len(array))]
    return [item for item in elements if item is not None]


# --- range --------------------------------------------------------------------------------------------------------

_RANGE: Final = re.compile(r"(\w+)(\.\.\.?|-)(\w+)", re.ASCII)


@legacy_function("range", -1)
def range_(context: Context, *arguments: Value) -> list[Value]:
    """Return numbers or strings from one to another, `step` apart, the last included; or as one string: '1..4', 'a...e'."""
    require_count("range", arguments, 1)
    exclusive = False
    step = 1
    start, stop = arguments[0], arguments[1] if len(arguments) > 1 else None
    if len(arguments) == 1:
        match = _RANGE.search(start) if isinstance(start, str) else None
        if match is None or match[0] not in str(start).split("\n"):
            problem = "Unable to compute range from the value" if start not in ("", None) else "Unknown range format"
            raise EvaluationError(f"range(): {problem}: {ruby_text(start)}")
        start, stop, exclusive = match[1], match[3], match[2] == "..."
    elif len(arguments) > 2:
        step = abs(integer_at_start(arguments[2]))
        if not step:
            raise EvaluationError("range(): 3rd arg (step size) must be a non zero integer (e.g. 1 or -1)")
    first = ruby_text(start)
    if re.fullmatch(r"\d+", first, re.ASCII):
        low, high = parse_integer(first), integer_at_start(stop)
        return list(islice(range(low, high if exclusive else high + 1, step), MAX_RANGE))
    return [*_string_range(first, ruby_text(stop), exclusive)[::step][:MAX_RANGE]]


def _string_range(first: str, last: str, exclusive: bool) -> list[str]:
    """
    Return the result of Ruby's String#upto: successors until the last one, or until they are longer; single characters by their codes.

    When the first one is longer, but sorts before the last one, it is the only one.
    """
    if first > last or not first:
        return []
    if len(first) == len(last) == 1 and last.isascii():
        return [chr(code) for code in range(ord(first), ord(last) + (0 if exclusive else 1))]
    texts: list[str] = [first] if len(first) > len(last) else []
    text = first
    while len(text) <= len(last) and len(texts) < MAX_RANGE:
        if text == last:
            return texts if exclusive else [*texts, text]
        texts.append(text)
        text = successor(text)
    return texts


def successor(text: str) -> str:
    """
    Return the next string, as Ruby's String#succ counts: the rightmost letter or digit goes up, with a carry to those left of it.

    In a text without letters and digits the last character goes up.
    """
    if not text:
        return ""
    places = [index for index, char in enumerate(text) if char.isascii() and char.isalnum()]
    if not places:
        return text[:-1] + chr(ord(text[-1]) + 1)
    chars = list(text)
    carried = places[-1]
    for index in reversed(places):
        if index < carried - 1 and not _same_run(text, index, carried):
            break
        carried = index
        char = chars[index]
        if char not in "9zZ":
            chars[index] = chr(ord(char) + 1)
            return "".join(chars)
        chars[index] = {"9": "0", "z": "a", "Z": "A"}[char]
    chars.insert(carried, {"0": "1", "a": "a", "A": "A"}[chars[carried]])
    return "".join(chars)


def _same_run(text: str, left_index: int, right_index: int) -> bool:
    """Return whether a carry may go from `right_index` to `left_index` over other characters: not between digits and letters."""
    return text[left_index].isdigit() == text[right_index].isdigit()
