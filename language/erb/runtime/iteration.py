"""Ruby's methods with blocks. A block is a function of one value, or of two; `parameters` is how many it was written with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import cmp_to_key

from ..errors import Doubt
from . import texts
from .collections import array, dictionary, walk
from .values import SORT_KEY, Pattern, Value, as_long, compare, eql, from_key, missing_method, to_s

Block = Callable[..., Value]


def _holds(value: Value) -> bool:
    return value is not None and value is not False


# --- what loops go over -------------------------------------------------------------------------------------------


def each(value: Value) -> Iterable[Value]:
    """Return the items; an array is read while it may change, as in Ruby."""
    return walk("each", value)


def each_pair(value: Value) -> Iterable[Value]:
    dictionary("each_pair", value)
    return walk("each_pair", value)


def each_key(value: Value) -> list[Value]:
    return [from_key(key) for key in dictionary("each_key", value)]


def each_value(value: Value) -> list[Value]:
    return list(dictionary("each_value", value).values())


def each_index(value: Value) -> range:
    return range(len(array("each_index", value)))


def each_with_index(value: Value) -> Iterator[tuple[Value, int]]:
    for index, item in enumerate(walk("each_with_index", value)):
        yield item, index


def times(value: Value) -> range:
    if value.__class__ is not int:
        raise Doubt("times")
    return range(value)


def indexed(value: Value, begin: Value, name: str) -> list[Value]:
    """Return pairs of item and index, from `begin` on, for the method of that name."""
    if begin.__class__ is not int:
        raise Doubt("the first index")
    return [[item, index] for index, item in enumerate(walk(name, value), begin)]


def spread(value: Value, count: int) -> list[Value]:
    """Return the values of `count` parameters that one value is destructured to."""
    if value.__class__ is not list:
        return [value] + [None] * (count - 1)
    if len(value) >= count:
        return value[:count]
    return value + [None] * (count - len(value))


def spread_all(values: Iterable[Value], count: int) -> Iterator[list[Value]]:
    for value in values:
        yield spread(value, count)


# --- the same as values -------------------------------------------------------------------------------------------


def map_items(value: Value, block: Block, parameters: int) -> list[Value]:
    return [block(item) for item in walk("map", value)]


def map_in_place(value: Value, block: Block, parameters: int) -> list[Value]:
    changed = array("map!", value)
    changed[:] = [block(item) for item in changed]
    return changed


def flat_map(value: Value, block: Block, parameters: int) -> list[Value]:
    result: list[Value] = []
    for item in walk("flat_map", value):
        made = block(item)
        if made.__class__ is list:
            result.extend(made)
        else:
            result.append(made)
    return result


def _pairs(name: str, value: Value, parameters: int) -> list[Value]:
    """Return the pairs of a hash for a method whose block gets key and value as two values."""
    if parameters != 2:
        raise Doubt(f"Hash#{name} with a block that has not two parameters")
    return list(walk(name, value))


def select(value: Value, block: Block, parameters: int) -> Value:
    if value.__class__ is dict:
        _pairs("select", value, parameters)
        return {key: item for key, item in list(value.items()) if _holds(block([from_key(key), item]))}
    return [item for item in walk("select", value) if _holds(block(item))]


def reject(value: Value, block: Block, parameters: int) -> list[Value] | dict[Value, Value]:
    if value.__class__ is dict:
        _pairs("reject", value, parameters)
        return {key: item for key, item in list(value.items()) if not _holds(block([from_key(key), item]))}
    return [item for item in walk("reject", value) if not _holds(block(item))]


def reject_in_place(value: Value, block: Block, parameters: int) -> Value:
    """Return the value; nil when nothing was removed."""
    if value.__class__ not in (list, dict):
        raise missing_method("reject!", value)
    changed: Value = value
    remaining = reject(value, block, parameters)
    if len(remaining) == len(changed):
        return None
    changed.clear()
    add: Callable[[Value], None] = changed.update if isinstance(remaining, dict) else changed.extend
    add(remaining)
    return changed


def find(value: Value, block: Block, parameters: int) -> Value:
    return next((item for item in walk("find", value) if _holds(block(item))), None)


def any_block(value: Value, block: Block, parameters: int) -> bool:
    return any(_holds(block(item)) for item in walk("any?", value))


def all_block(value: Value, block: Block, parameters: int) -> bool:
    return all(_holds(block(item)) for item in walk("all?", value))


def none_block(value: Value, block: Block, parameters: int) -> bool:
    return not any(_holds(block(item)) for item in walk("none?", value))


def count_block(value: Value, block: Block, parameters: int) -> int:
    return len([item for item in walk("count", value) if _holds(block(item))])


def partition(value: Value, block: Block, parameters: int) -> list[Value]:
    parts: tuple[list[Value], list[Value]] = ([], [])
    for item in walk("partition", value):
        parts[0 if _holds(block(item)) else 1].append(item)
    return list(parts)


def sort_by(value: Value, block: Block, parameters: int) -> list[Value]:
    """
    Sort items by their keys; raise Doubt when two distinguishable items have the same key, because Ruby's order of them is not certain.
    """
    keyed: list[tuple[Value, Value]] = [(block(item), item) for item in walk("sort_by", value)]
    keyed.sort(key=lambda pair: SORT_KEY(pair[0]))
    for (key, item), (next_key, next_item) in itertools.pairwise(keyed):
        if compare(key, next_key) == 0 and not eql(item, next_item):
            raise Doubt("the order of items with equal keys")
    return [item for _, item in keyed]


def sort_block(value: Value, block: Block, parameters: int) -> list[Value]:
    """Sort items by the block; raise Doubt when it finds two distinguishable items equal."""
    is_uncertain = False

    def ordered(one: Value, two: Value) -> int:
        nonlocal is_uncertain
        result = block(one, two)
        if result.__class__ is not int:
            raise Doubt("sort with a block that returns no integer")
        if result == 0 and not eql(one, two):
            is_uncertain = True
        return result

    result = sorted(walk("sort", value), key=cmp_to_key(ordered))
    if any(ordered(one, two) > 0 or ordered(two, one) < 0 for one, two in itertools.pairwise(result)):
        raise Doubt("sort with a block that contradicts itself")
    if is_uncertain:
        raise Doubt("the order of equal items")
    return result


def sum_block(value: Value, block: Block, parameters: int) -> Value:
    numbers = [block(item) for item in walk("sum", value)]
    if not all(number.__class__ is int for number in numbers):
        raise Doubt("the sum of what is not integers")
    return as_long(sum(numbers))


def inject(value: Value, block: Block, parameters: int, *begin: Value) -> Value:
    pending = [*begin, *walk("inject", value)]
    if not pending:
        return None
    result = pending[0]
    for item in pending[1:]:
        result = block(result, item)
    return result


def each_with_object(value: Value, block: Block, parameters: int, begin: Value) -> Value:
    for item in walk("each_with_object", value):
        block(item, begin)
    return begin


def gsub_block(value: Value, block: Block, parameters: int, pattern: Value) -> str:
    text = texts.string("gsub", value)
    if pattern.__class__ is not Pattern:
        raise Doubt("gsub with a block and a string")
    pattern.search("")
    return pattern.regexp.substitute(text, lambda match: to_s(block(match.group())))
