"""stdlib::rewrap_sensitive_data: changes values inside of Sensitive, at any depth, and returns the result as Sensitive."""

from __future__ import annotations

from collections.abc import Callable

from ...values.core import Sensitive, Value, entries, key_of
from ..api import Closure, Context, function


def unwrap_deeply(value: Value) -> tuple[Value, bool]:
    """Return `value` without any Sensitive, and whether there was one."""
    if isinstance(value, Sensitive):
        return unwrap_deeply(value.unwrap())[0], True
    if isinstance(value, list):
        parts = [unwrap_deeply(item) for item in value]
        has_secret = any(secret for _, secret in parts)
        return ([part for part, _ in parts], True) if has_secret else (value, False)
    if isinstance(value, dict):
        pairs = [(unwrap_deeply(key), unwrap_deeply(item)) for key, item in entries(value)]
        has_secret = any(key[1] or item[1] for key, item in pairs)
        return ({key_of(key[0]): item[0] for key, item in pairs}, True) if has_secret else (value, False)
    return value, False


def change_unwrapped(value: Value, change: Callable[[Value], Value]) -> Value:
    """Return the result of `change` for the unwrapped value; as Sensitive when anything in the value was Sensitive."""
    unwrapped_value, secret = unwrap_deeply(value)
    result = change(unwrapped_value)
    return Sensitive(result) if secret else result


@function("stdlib::rewrap_sensitive_data", "Any data", "Callable[Any] &block?", returns="Any")
def rewrap(context: Context, data: Value, *, block: Closure | None = None) -> Value:
    """Return the unwrapped data, changed by the lambda if there is one; the whole is Sensitive if any part was."""
    return change_unwrapped(data, block if block is not None else lambda value: value)
