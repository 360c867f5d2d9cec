"""Hashes: merge, deep_merge, prefix, suffix, keys joined to values, nested values, sort_by, and access to hashes as in 3.x."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from shared.errors import EvaluationError

from ...callables.sprintf import format_text, to_integer
from ...errors.control import Break, Next
from ...types.inference.iterables import elements, pairs
from ...values.core import Iterator, Key, Value, entries, key_of
from ...values.digits import parse_integer
from ...values.labels import ruby_class
from ...values.ordering import ruby_order, sort_as_ruby
from ...values.text import inspect
from ..api import Closure, Context, function, legacy_function, require_count
from ..strings import ruby_text
from .deprecations import deprecate

# --- merging ------------------------------------------------------------------------------------------------------

Item = TypeVar("Item")


@function("stdlib::merge", "Variant[Hash[Scalar,Any], Undef, String[0,0]] args*", returns="Hash[Scalar,Any]")
def merge(context: Context, *args: Value) -> dict[Value, Value]:
    """Return all hashes merged, the last winning; with a lambda, merge the hashes that it returns for the elements."""
    merged: dict[Value, Value] = {}
    for hash_ in args:
        if isinstance(hash_, dict):
            merged.update(hash_)
    return merged


@merge.also("Iterable args*", "Callable[3,3] &block", returns="Hash")
def merge_indexed(context: Context, *args: Value, block: Closure) -> dict[Value, Value]:
    only = _only(args)
    by_key = isinstance(only, dict) or (isinstance(only, Iterator) and only.pairs)
    arguments = [(pair[0], pair[1]) for pair in elements(only) if isinstance(pair, list)] if by_key else list(pairs(only))
    return _merge_results(arguments, block)


@merge.also("Iterable args*", "Callable[2,2] &block", returns="Hash")
def merge_elements(context: Context, *args: Value, block: Closure) -> dict[Value, Value]:
    return _merge_results(((item,) for item in elements(_only(args))), block)


def _only(args: tuple[Value, ...]) -> Value:
    if len(args) != 1:
        raise EvaluationError(f"wrong number of arguments (given {len(args)}, expected 1)")
    return args[0]


def _merge_results(arguments: Iterable[tuple[Value, ...]], block: Closure) -> dict[Value, Value]:
    merged: dict[Value, Value] = {}
    with suppress(Break):
        for values in arguments:
            try:
                part = block(dict(merged), *values)  # a copy, because the lambda may keep the value
            except Next as skipped:
                part = skipped.value
            if isinstance(part, dict):
                merged.update(part)
    return merged


@legacy_function("deep_merge", -1)
def deep_merge(context: Context, *arguments: Value) -> dict[Value, Value]:
    """Return all hashes merged, the last winning; hashes below the same key are merged the same way."""
    if len(arguments) < 2:
        raise EvaluationError(f"deep_merge(): wrong number of arguments ({len(arguments)}; must be at least 2)")
    merged: dict[Value, Value] = {}
    for argument in arguments:
        if argument == "":
            continue
        if not isinstance(argument, dict):
            raise EvaluationError(f"deep_merge: unexpected argument type {ruby_class(argument)}, only expects hash arguments")
        merged = _merge_deeply(merged, argument)
    return merged


def _merge_deeply(higher: dict[Value, Value], lower: dict[Value, Value]) -> dict[Value, Value]:
    merged = dict(higher)
    for key, value in lower.items():
        old = merged.get(key)
        merged[key] = _merge_deeply(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


# --- changed ------------------------------------------------------------------------------------------------------


def _affix_all(name: str, arguments: tuple[Value, ...], join: Callable[[str, str], str]) -> Value:
    require_count(name, arguments, 1)
    items, affix = arguments[0], arguments[1] if len(arguments) > 1 else None
    if not isinstance(items, list | dict):
        raise EvaluationError(f"{name}(): expected first argument to be an Array or a Hash, got {inspect(items)}")
    if affix is None or affix is False:
        affix = ""
    if not isinstance(affix, str):
        raise EvaluationError(f"{name}(): expected second argument to be a String, got {inspect(affix)}")
    if isinstance(items, list):
        return [join(affix, ruby_text(item)) for item in items]
    return {join(affix, ruby_text(key)): value for key, value in entries(items)}


@legacy_function("prefix", -1)
def prefix(context: Context, *arguments: Value) -> Value:
    """Return the elements of an array, or the keys of a hash, as strings with a text prepended."""
    return _affix_all("prefix", arguments, lambda affix, text: affix + text)


@legacy_function("suffix", -1)
def suffix(context: Context, *arguments: Value) -> Value:
    """Return the elements of an array, or the keys of a hash, as strings with a text appended."""
    return _affix_all("suffix", arguments, lambda affix, text: text + affix)


@legacy_function("join_keys_to_values", -1)
def join_keys_to_values(context: Context, *arguments: Value) -> list[str]:
    """Return `key<separator>value` for each pair; when the value is an array, one for each of its elements."""
    if len(arguments) != 2:
        raise EvaluationError(f"join_keys_to_values(): Takes exactly two arguments, but {len(arguments)} given.")
    hash_, separator = arguments
    if not isinstance(hash_, dict):
        raise EvaluationError(f"join_keys_to_values(): The first argument must be a hash, but a {ruby_class(hash_)} was given.")
    if not isinstance(separator, str):
        raise EvaluationError(f"join_keys_to_values(): The second argument must be a string, but a {ruby_class(separator)} was given.")
    texts: list[str] = []
    for key, value in entries(hash_):
        text = ruby_text(key)
        if isinstance(value, list):
            texts.extend(text + separator + ruby_text(item) for item in value)
        else:
            texts.append(text if value == "undef" else text + separator + ruby_text(value))
    return texts


@function("stdlib::nested_values", "Hash hash", returns="Array")
def nested_values(context: Context, hash_: dict[Key, Value]) -> list[Value]:
    """Return the values of a hash and of all hashes in it."""
    return _values_below(hash_)


def _values_below(hash_: dict[Key, Value]) -> list[Value]:
    values: list[Value] = []
    for value in hash_.values():
        values.extend(_values_below(value) if isinstance(value, dict) else [value])
    return values


# --- sorted -------------------------------------------------------------------------------------------------------


def _sort_by(items: Iterable[Item], value_of: Callable[[Item], Value]) -> list[Item]:
    keyed = [(value_of(item), item) for item in items]
    return [item for _, item in sort_as_ruby(keyed, lambda left, right: ruby_order(left[0], right[0]))]


@function("stdlib::sort_by", "Array ary", "Callable[1,1] &block")
def sort_by(context: Context, ary: list[Value], *, block: Closure) -> list[Value]:
    """Return elements, characters or pairs sorted by the values that the lambda returns for them."""
    return _sort_by(ary, block)


@sort_by.also("String str", "Callable[1,1] &block")
def sort_characters(context: Context, text: str, *, block: Closure) -> str:
    return "".join(_sort_by(text, block))


@sort_by.also("Hash hsh", "Variant[Callable[1,1], Callable[2,2]] &block")
def sort_pairs(context: Context, hsh: dict[Key, Value], *, block: Closure) -> dict[Key, Value]:
    takes_pairs = block.arity == 1
    ordered = _sort_by(entries(hsh), lambda pair: block([*pair]) if takes_pairs else block(*pair))
    return {key_of(key): value for key, value in ordered}


# --- of 3.x -------------------------------------------------------------------------------------------------------


@legacy_function("has_key", -1)
def has_key(context: Context, *arguments: Value) -> bool:
    """Return whether a hash has a key."""
    if len(arguments) != 2:
        raise EvaluationError(f"has_key(): wrong number of arguments ({len(arguments)}; must be 2)")
    hash_, key = arguments
    if not isinstance(hash_, dict):
        description = f"{inspect(hash_)} which is of type {ruby_class(hash_)}"
        raise EvaluationError(f"has_key(): expects the first argument to be a hash, got {description}")
    return key_of(key) in hash_


def _dig_path(data: Value, path: list[Value], default: Value) -> Value:
    for key in path:
        if isinstance(data, list):
            try:
                index = to_integer(key)
            except EvaluationError:
                return default
            data = data[index] if -len(data) <= index < len(data) else None
        elif isinstance(data, dict):
            data = data.get(key_of(key))
        else:
            return default
        if data is None:
            return default
    return data


@legacy_function("dig44", -2)
def dig44(context: Context, *arguments: Value) -> Value:
    """Return the value at an array of keys and indexes, or the default."""
    require_count("dig44", arguments, 2, wanted="at least 2")
    data, path = arguments[:2]
    if not isinstance(data, list | dict):
        raise EvaluationError(f"dig44(): first argument must be a hash or an array, given {ruby_class(data)}")
    if not isinstance(path, list):
        raise EvaluationError(f"dig44(): second argument must be an array, given {ruby_class(path)}")
    return _dig_path(data, path, arguments[2] if len(arguments) > 2 else None)


@legacy_function("try_get_value", -2)
def try_get_value(context: Context, *arguments: Value) -> Value:
    """Return the value at a path such as 'a/b/0', or the default; the fourth argument is the separator."""
    context.log("warning", "try_get_value() DEPRECATED: this function is deprecated, please use dig() instead.")
    data, path, default, separator = (*arguments, *(None,) * 4)[:4]
    if not isinstance(data, list | dict) or path in ("", None):
        return default if default not in (None, False) else data
    if not isinstance(path, str):
        raise EvaluationError(f"try_get_value(): the path must be a String, got {ruby_class(path)}")
    context.log(
        "warning",
        "dig() DEPRECATED: This function has been replaced in Puppet 4.5.0, please use dig44() for backwards compatibility or use the "
        "new version.",
    )
    parts = path.split(ruby_text(separator or "/"))
    while parts and not parts[-1]:
        parts.pop()
    return _dig_path(data, [parse_integer(part) if part.isascii() and part.isdigit() else part for part in parts], default)


@function("sprintf_hash", "String format", "Hash arguments")
def sprintf_hash(context: Context, format_: str, arguments: dict[Value, Value]) -> Value:
    """Return a text in a format with named references, `%<key>s` and `%{key}`."""
    deprecate(
        context,
        "sprintf_hash",
        "This method is deprecated. From Puppet 4.10.10/5.3.4 please use the built-in sprintf instead",
    )
    # This does not call the function sprintf, which converts rich values to text.
    return format_text(format_, [arguments])
