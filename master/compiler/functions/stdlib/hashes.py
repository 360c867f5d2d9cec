"""Hashes: merge, deep_merge, prefix, suffix, keys joined to values, nested values, sort_by, and the ways of 3.x into them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from shared.errors import EvaluationError

from ...callables.sprintf import format_text, to_integer
from ...errors.control import Break, Next
from ...types.iterables import elements, pairs
from ...types.notation.operands import flatten_arrays
from ...values.core import Iterator, Value, entries, key_of
from ...values.labels import ruby_class
from ...values.numbers import whole
from ...values.ordering import ruby_order, sort_as_ruby
from ...values.text import inspect
from ..api import Closure, Context, function, legacy_function
from ..strings import ruby_text
from .deprecations import deprecate

# --- merging ------------------------------------------------------------------------------------------------------


@function("stdlib::merge", "Variant[Hash[Scalar,Any], Undef, String[0,0]] args*", returns="Hash[Scalar,Any]")
def merge(context: Context, *args: Value) -> dict[Value, Value]:
    """Return all hashes in one, the last winning; or, with a lambda, the hashes that it gives for the elements."""
    found: dict[Value, Value] = {}
    for each in args:
        if isinstance(each, dict):
            found.update(each)
    return found


@merge.also("Iterable args*", "Callable[3,3] &block", returns="Hash")
def merge_indexed(context: Context, *args: Value, block: Closure) -> dict[Value, Value]:
    only = _only(args)
    by_key = isinstance(only, dict) or (isinstance(only, Iterator) and only.pairs)
    given = [tuple(pair) for pair in elements(only)] if by_key else list(pairs(only))
    return _accumulated(given, block)


@merge.also("Iterable args*", "Callable[2,2] &block", returns="Hash")
def merge_elements(context: Context, *args: Value, block: Closure) -> dict[Value, Value]:
    return _accumulated(((item,) for item in elements(_only(args))), block)


def _only(args: tuple[Value, ...]) -> Value:
    if len(args) != 1:
        raise EvaluationError(f"wrong number of arguments (given {len(args)}, expected 1)")
    return args[0]


def _accumulated(given: Iterable[tuple[Value, ...]], block: Closure) -> dict[Value, Value]:
    found: dict[Value, Value] = {}
    try:
        for values in given:
            try:
                part = block(dict(found), *values)  # a value may not change once the lambda has it
            except Next as skipped:
                part = skipped.value
            if isinstance(part, dict):
                found.update(part)
    except Break:
        pass
    return found


@legacy_function("deep_merge", -1)
def deep_merge(context: Context, *arguments: Value) -> dict[Value, Value]:
    """Return all hashes in one, the last winning; hashes below the same key are merged the same way."""
    if len(arguments) < 2:
        raise EvaluationError(f"deep_merge(): wrong number of arguments ({len(arguments)}; must be at least 2)")
    found: dict[Value, Value] = {}
    for each in arguments:
        if each == "":
            continue
        if not isinstance(each, dict):
            raise EvaluationError(f"deep_merge: unexpected argument type {ruby_class(each)}, only expects hash arguments")
        found = _deeply(found, each)
    return found


def _deeply(left: dict[Value, Value], right: dict[Value, Value]) -> dict[Value, Value]:
    found = dict(left)
    for key, value in right.items():
        old = found.get(key)
        found[key] = _deeply(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return found


# --- changed ------------------------------------------------------------------------------------------------------


def _affixed(name: str, arguments: tuple[Value, ...], join: Callable[[str, str], str]) -> Value:
    if not arguments:
        raise EvaluationError(f"{name}(): Wrong number of arguments given (0 for 1)")
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
    """Return the elements of an array, or the keys of a hash, as strings with a text in front."""
    return _affixed("prefix", arguments, lambda affix, text: affix + text)


@legacy_function("suffix", -1)
def suffix(context: Context, *arguments: Value) -> Value:
    """Return the elements of an array, or the keys of a hash, as strings with a text behind."""
    return _affixed("suffix", arguments, lambda affix, text: text + affix)


@legacy_function("join_keys_to_values", -1)
def join_keys_to_values(context: Context, *arguments: Value) -> list[str]:
    """Return `key<separator>value` for each pair; an array as value gives one for each of its elements."""
    if len(arguments) != 2:
        raise EvaluationError(f"join_keys_to_values(): Takes exactly two arguments, but {len(arguments)} given.")
    hash_, separator = arguments
    if not isinstance(hash_, dict):
        raise EvaluationError(f"join_keys_to_values(): The first argument must be a hash, but a {ruby_class(hash_)} was given.")
    if not isinstance(separator, str):
        raise EvaluationError(f"join_keys_to_values(): The second argument must be a string, but a {ruby_class(separator)} was given.")
    found: list[str] = []
    for key, value in entries(hash_):
        text = ruby_text(key)
        if isinstance(value, list):
            found.extend(text + separator + ruby_text(item) for item in value)
        else:
            found.append(text if value == "undef" else text + separator + ruby_text(value))
    return found


@function("stdlib::nested_values", "Hash hash", returns="Array")
def nested_values(context: Context, hash_: dict[Value, Value]) -> list[Value]:
    """Return the values of a hash and of all hashes in it."""
    found: list[Value] = []
    for value in hash_.values():
        found.extend(nested_values.call(context, [value]) if isinstance(value, dict) else [value])
    return found


# --- sorted -------------------------------------------------------------------------------------------------------


def _by(items: Iterable[Value], value_of: Callable[[Value], Value]) -> list[Value]:
    keyed = [(value_of(item), item) for item in items]
    return [item for _, item in sort_as_ruby(keyed, lambda one, two: ruby_order(one[0], two[0]))]


@function("stdlib::sort_by", "Array ary", "Callable[1,1] &block")
def sort_by(context: Context, ary: list[Value], *, block: Closure) -> list[Value]:
    """Elements, characters or pairs in the order of what the lambda gives for them."""
    return _by(ary, block)


@sort_by.also("String str", "Callable[1,1] &block")
def sort_characters(context: Context, text: str, *, block: Closure) -> str:
    return "".join(_by(text, block))


@sort_by.also("Hash hsh", "Variant[Callable[1,1], Callable[2,2]] &block")
def sort_pairs(context: Context, hsh: dict[Value, Value], *, block: Closure) -> dict[Value, Value]:
    one = block.arity == 1
    ordered = _by(elements(hsh), block if one else lambda pair: block(*pair))
    return {key_of(key): value for key, value in ordered}


# --- of 3.x -------------------------------------------------------------------------------------------------------


@legacy_function("has_key", -1)
def has_key(context: Context, *arguments: Value) -> bool:
    """Return whether a hash has a key."""
    if len(arguments) != 2:
        raise EvaluationError(f"has_key(): wrong number of arguments ({len(arguments)}; must be 2)")
    hash_, key = arguments
    if not isinstance(hash_, dict):
        told = f"{inspect(hash_)} which is of type {ruby_class(hash_)}"
        raise EvaluationError(f"has_key(): expects the first argument to be a hash, got {told}")
    return key_of(key) in hash_


def _dug(data: Value, path: list[Value], default: Value) -> Value:
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
    """What an array of keys and indexes leads to, or the default."""
    if len(arguments) < 2:
        raise EvaluationError(f"dig44(): Wrong number of arguments given ({len(arguments)} for at least 2)")
    data, path = arguments[:2]
    if not isinstance(data, list | dict):
        raise EvaluationError(f"dig44(): first argument must be a hash or an array, given {ruby_class(data)}")
    if not isinstance(path, list):
        raise EvaluationError(f"dig44(): second argument must be an array, given {ruby_class(path)}")
    return _dug(data, path, arguments[2] if len(arguments) > 2 else None)


@legacy_function("try_get_value", -2)
def try_get_value(context: Context, *arguments: Value) -> Value:
    """What a path such as 'a/b/0' leads to, or the default; the fourth argument is the separator."""
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
    parts = path.split(separator or "/")
    while parts and not parts[-1]:
        parts.pop()
    return _dug(data, [whole(part) if part.isascii() and part.isdigit() else part for part in parts], default)


@function("sprintf_hash", "String format", "Hash arguments")
def sprintf_hash(context: Context, format_: str, arguments: dict[Value, Value]) -> Value:
    """sprintf with named references, `%<key>s` and `%{key}`."""
    deprecate(
        context,
        "sprintf_hash",
        "This method is deprecated. From Puppet 4.10.10/5.3.4 please use the built-in sprintf instead",
    )
    # Not by the function of that name, which makes texts of rich values.
    return format_text(format_, [arguments])


def flat(value: Value) -> list[Value]:
    """Return a value, or what is in nested arrays."""
    return list(flatten_arrays([value]))
