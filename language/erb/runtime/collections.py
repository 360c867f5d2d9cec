"""Ruby's methods of arrays and hashes, and those that several classes have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import regex

from ..errors import Doubt, RubyError
from . import texts
from .values import (
    RubyRange,
    Value,
    as_long,
    class_name,
    equal,
    from_key,
    identity,
    inspect,
    key_for,
    missing_method,
    sort_values,
    to_s,
)

NO_SIZE = object()
MAX_SIZE = 1_000_000
"""Characters or items that an operator may make."""


def items(name: str, value: Value) -> Sequence[Value]:
    """Return the items that a method of Enumerable sees in a value: the pairs of a hash."""
    if value.__class__ is list:
        return value
    if value.__class__ is dict:
        return [[from_key(key), item] for key, item in value.items()]
    if value.__class__ is RubyRange:
        if len(value.items()) > MAX_SIZE:
            raise Doubt("a large range")
        return value.items()
    raise missing_method(name, value)


def walk(name: str, value: Value) -> Iterable[Value]:
    """Return the items for a block, which may change the value: an array is read while it may change, as in Ruby."""
    return _walk_hash(value) if value.__class__ is dict else items(name, value)


def _walk_hash(value: dict[Value, Value]) -> Iterator[Value]:
    size = len(value)
    for key, item in list(value.items()):
        yield [from_key(key), item]
        if len(value) != size:
            raise Doubt("a hash that changes while it is gone through")


def array(name: str, value: Value) -> list[Value]:
    if value.__class__ is not list:
        raise missing_method(name, value)
    return value


def dictionary(name: str, value: Value) -> dict[Value, Value]:
    if value.__class__ is not dict:
        raise missing_method(name, value)
    return value


# --- what is there ------------------------------------------------------------------------------------------------


def is_empty(value: Value) -> bool:
    if value.__class__ in (str, list, dict):
        return not value
    raise missing_method("empty?", value)


def length(value: Value, name: str = "length") -> int:
    if value.__class__ is str:
        return len(texts.string(name, value))
    if value.__class__ in (list, dict):
        return len(value)
    raise missing_method(name, value)


def shift(value: Value) -> Value:
    if value.__class__ is dict:
        raise Doubt("Hash#shift")
    values = array("shift", value)
    return values.pop(0) if values else None


def count(value: Value, *sought: Value) -> int:
    if value.__class__ is str:
        if len(sought) != 1 or sought[0].__class__ is not str or len(sought[0]) != 1 or sought[0] in "^-\\":
            raise Doubt("String#count")
        return texts.string("count", value).count(texts.text_argument(sought[0]))
    values = items("count", value)
    return len([item for item in values if equal(item, sought[0])]) if sought else len(values)


def is_any(value: Value) -> bool:
    return any(item is not None and item is not False for item in items("any?", value))


def is_none(value: Value) -> bool:
    return not any(item is not None and item is not False for item in items("none?", value))


def is_including(value: Value, sought: Value) -> bool:
    if value.__class__ is list:
        return any(equal(item, sought) for item in value)
    if value.__class__ is dict:
        return key_for(sought) in value
    if value.__class__ is str:
        return texts.text_argument(sought) in texts.string("include?", value)
    if value.__class__ is RubyRange and sought.__class__ is int:
        return sought in value.items()
    raise missing_method("include?", value)


def has_key(value: Value, key: Value) -> bool:
    return key_for(key) in dictionary("key?", value)


def has_value(value: Value, sought: Value) -> bool:
    return any(equal(item, sought) for item in dictionary("value?", value).values())


def keys(value: Value) -> list[Value]:
    return [from_key(key) for key in dictionary("keys", value)]


def values(value: Value) -> list[Value]:
    return list(dictionary("values", value).values())


# --- elements -----------------------------------------------------------------------------------------------------


def element(value: Value, index: Value, size: Value = NO_SIZE) -> Value:
    """`[]` with one argument, or with begin and length."""
    if size is NO_SIZE:
        size = None
    elif size.__class__ is not int:
        raise Doubt("the length of a part")
    if value.__class__ is dict:
        if size is not None:
            raise Doubt("Hash#[] with two arguments")
        if index.__class__ is str:
            return value.get(index)
        return value.get(key_for(index))
    if value.__class__ in (list, str):
        return _element_of_sequence(value, index, size)
    if isinstance(value, regex.Match) and index.__class__ is int and size is None:
        if index < 0:
            index += value.re.groups + 1
        return texts.group(value, index) if index >= 0 else None
    if value is None or value.__class__ is bool:
        raise missing_method("[]", value)
    raise Doubt(f"{class_name(value)}#[]")


def _element_of_sequence(value: Value, index: Value, size: Value) -> Value:
    if value.__class__ is str:
        texts.string("[]", value)
        if index.__class__ is str and size is None:
            return index if texts.text_argument(index) in value else None
    if index.__class__ is RubyRange and size is None:
        return _slice(value, index)
    if index.__class__ is not int:
        if value.__class__ is list and size is None and (index is None or index.__class__ in (str, dict, list, bool)):
            what = {str: "String", dict: "Hash", list: "Array", bool: str(index).lower()}.get(index.__class__)
            raise RubyError(f"no implicit conversion {f'of {what} into' if what else 'from nil to'} {'Integer' if what else 'integer'}")
        raise Doubt("the argument of []")
    if size is not None:
        if index < 0:
            index += len(value)
        if index < 0 or size < 0 or index > len(value):
            return None
        return value[index : index + size]
    return value[index] if -len(value) <= index < len(value) else None


def _slice(value: Value, index: RubyRange) -> Value:
    size = len(value)
    first = index.first + size if index.first < 0 else index.first
    last = index.last + size if index.last < 0 else index.last
    if first < 0 or first > size:
        return None
    return value[first : max(last + (0 if index.is_exclusive else 1), first)]


def set_element(value: Value, index: Value, item: Value) -> Value:
    if value.__class__ is dict:
        value[key_for(index)] = item
    elif value.__class__ is list and index.__class__ is int and 0 <= index <= len(value):
        if index == len(value):
            value.append(item)
        else:
            value[index] = item
    elif value.__class__ is list and index.__class__ is int and len(value) < index < MAX_SIZE:
        value.extend([None] * (index - len(value)))
        value.append(item)
    elif value is None or value.__class__ is bool:
        raise missing_method("[]=", value)
    else:
        raise Doubt(f"{class_name(value)}#[]=")
    return item


def fetch(value: Value, index: Value, *default: Value) -> Value:
    if value.__class__ is not dict:
        raise Doubt("fetch")
    name = key_for(index)
    if name in value:
        return value[name]
    if default:
        return default[0]
    raise RubyError(f"key not found: {inspect(index)}")


def dig(value: Value, *path: Value) -> Value:
    if value is None or value.__class__ is bool or any(index.__class__ is RubyRange for index in path):
        raise missing_method("dig", value)
    for index in path:
        if value is None:
            return None
        if value.__class__ not in (dict, list):
            raise Doubt("dig")
        value = element(value, index)
    return value


def values_at(value: Value, *indexes: Value) -> list[Value]:
    if value.__class__ not in (dict, list) or any(index.__class__ is RubyRange for index in indexes):
        raise Doubt("values_at")
    return [element(value, index) for index in indexes]


def first(value: Value, *size: Value) -> Value:
    if value.__class__ is str:
        raise Doubt("String#first")
    sequence = items("first", value)
    if not size:
        if value.__class__ is RubyRange and not sequence:
            raise Doubt("the first of an empty range")
        return sequence[0] if sequence else None
    return list(sequence[: _size(size[0])])


def last(value: Value, *size: Value) -> Value:
    sequence = array("last", value)
    if not size:
        return sequence[-1] if sequence else None
    return sequence[len(sequence) - min(_size(size[0]), len(sequence)) :]


def take(value: Value, size: Value) -> list[Value]:
    return list(items("take", value)[: _size(size)])


def drop(value: Value, size: Value) -> list[Value]:
    return list(items("drop", value)[_size(size) :])


def _size(value: Value) -> int:
    if value.__class__ is not int or value < 0:
        raise Doubt("a number of items")
    return value


def index(value: Value, sought: Value) -> int | None:
    if value.__class__ is str:
        at = texts.string("index", value).find(texts.text_argument(sought))
        return at if at >= 0 else None
    return next((at for at, item in enumerate(array("index", value)) if equal(item, sought)), None)


# --- new collections ----------------------------------------------------------------------------------------------


def join(value: Value, separator: Value = "") -> str:
    array("join", value)
    if not value and separator.__class__ is not str:
        raise Doubt("the separator of nothing")
    between = "" if separator is None else texts.text_argument(separator)
    return between.join(_join_parts(value, 0))


def _join_parts(value: list[Value], depth: int) -> Iterator[str]:
    if depth > 100:
        raise Doubt("arrays that are nested too deeply")
    for item in value:
        if item.__class__ is list:
            # Ruby writes the separator between the items of inner arrays too; an empty one counts as an empty text.
            yield from _join_parts(item, depth + 1) if item else ("",)
        else:
            yield to_s(item)


def flatten(value: Value) -> list[Value]:
    if value.__class__ is dict:
        return [part for pair in items("flatten", value) for part in pair]
    return list(_flat(array("flatten", value), 0))


def _flat(value: Iterable[Value], depth: int) -> Iterator[Value]:
    if depth > 100:
        raise Doubt("arrays that are nested too deeply")
    for item in value:
        if item.__class__ is list:
            yield from _flat(item, depth + 1)
        else:
            yield item


def compact(value: Value) -> Value:
    if value.__class__ is dict:
        return {name: item for name, item in value.items() if item is not None}
    return [item for item in array("compact", value) if item is not None]


def uniq(value: Value) -> list[Value]:
    return unique(items("uniq", value))


def unique(sequence: Iterable[Value]) -> list[Value]:
    result: dict[Value, Value] = {}
    for item in sequence:
        result.setdefault(identity(item), item)
    return list(result.values())


def reverse(value: Value) -> Value:
    if value.__class__ is str:
        return texts.ascii_string("reverse", value)[::-1]
    return array("reverse", value)[::-1]


def sort(value: Value) -> list[Value]:
    return sort_values(list(items("sort", value)))


def smallest(value: Value) -> Value:
    sequence = sort_values(list(items("min", value)))
    return sequence[0] if sequence else None


def greatest(value: Value) -> Value:
    sequence = sort_values(list(items("max", value)))
    return sequence[-1] if sequence else None


def total(value: Value) -> Value:
    sequence = items("sum", value)
    if not all(item.__class__ is int for item in sequence):
        raise Doubt("the sum of what is not integers")
    return as_long(sum(sequence))


def zip_arrays(value: Value, other: Value) -> list[Value]:
    one, two = array("zip", value), other
    if two.__class__ is not list:
        raise Doubt("the argument of zip")
    return [[item, two[at] if at < len(two) else None] for at, item in enumerate(one)]


def transpose(value: Value) -> list[Value]:
    rows = array("transpose", value)
    if not all(row.__class__ is list and len(row) == len(rows[0]) for row in rows):
        raise Doubt("transpose")
    return [list(column) for column in zip(*rows, strict=True)]


def merge(value: Value, other: Value) -> dict[Value, Value]:
    if other.__class__ is not dict:
        raise Doubt("the argument of merge")
    return {**dictionary("merge", value), **other}


def invert(value: Value) -> dict[Value, Value]:
    return {key_for(item): from_key(name) for name, item in dictionary("invert", value).items()}


def to_a(value: Value) -> list[Value]:
    if value is None:
        return []
    return value if value.__class__ is list else list(items("to_a", value))


def to_h(value: Value) -> dict[Value, Value]:
    if value is None:
        return {}
    if value.__class__ is list and all(item.__class__ is list and len(item) == 2 for item in value):
        return {key_for(name): item for name, item in value}
    return dictionary("to_h", value)


def to_array(value: Value) -> list[Value]:
    """`Array(…)`"""
    if value.__class__ is list:
        return value
    if value is None:
        return []
    if value.__class__ in (dict, RubyRange):
        return list(items("to_a", value))
    class_name(value)
    return [value]


def make_hash(*parts: Value) -> dict[Value, Value]:
    """Return the hash of alternating keys and values."""
    return {key_for(name): item for name, item in zip(parts[::2], parts[1::2], strict=True)}


# --- changes ------------------------------------------------------------------------------------------------------


def append(value: Value, item: Value) -> Value:
    if value.__class__ is not list:
        raise missing_method("<<", value)
    value.append(item)
    return value


def push(value: Value, *new: Value) -> Value:
    array("push", value).extend(new)
    return value


def unshift(value: Value, item: Value) -> Value:
    array("unshift", value).insert(0, item)
    return value


def concat(value: Value, other: Value) -> Value:
    if other.__class__ is not list:
        raise Doubt("the argument of concat")
    array("concat", value).extend(list(other))
    return value


def delete(value: Value, sought: Value) -> Value:
    if value.__class__ is dict:
        return value.pop(key_for(sought), None)
    if value.__class__ is str:
        raise Doubt("String#delete")
    found = [item for item in array("delete", value) if equal(item, sought)]
    value[:] = [item for item in value if not equal(item, sought)]
    return found[-1] if found else None


def update(value: Value, other: Value) -> Value:
    dictionary("update", value).update(merge({}, other))
    return value


def changed(value: list[Value], new: list[Value]) -> Value:
    """Give an array its new items; return it, or nil when nothing has changed."""
    if len(new) == len(value):
        return None
    value[:] = new
    return value


def compact_in_place(value: Value) -> Value:
    return changed(array("compact!", value), compact(value))


def uniq_in_place(value: Value) -> Value:
    return changed(array("uniq!", value), uniq(value))


def flatten_in_place(value: Value) -> Value:
    if not any(item.__class__ is list for item in array("flatten!", value)):
        return None
    value[:] = flatten(value)
    return value


def sort_in_place(value: Value) -> Value:
    array("sort!", value)[:] = sort_values(array("sort!", value))
    return value
