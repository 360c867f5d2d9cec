"""stdlib::rewrap_sensitive_data: work on what is inside of Sensitive values, at any depth, and keep the result Sensitive."""

from __future__ import annotations

from collections.abc import Callable

from ...values.core import Sensitive, Value, entries, key_of
from ..api import Closure, Context, function

__all__ = ["rewrap", "rewrapped", "unwrapped"]


def unwrapped(value: Value) -> tuple[Value, bool]:
    """Return `value` without any Sensitive, and whether there was one."""
    if isinstance(value, Sensitive):
        return unwrapped(value.unwrap())[0], True
    if isinstance(value, list):
        parts = [unwrapped(item) for item in value]
        found = any(secret for _, secret in parts)
        return ([part for part, _ in parts], True) if found else (value, False)
    if isinstance(value, dict):
        pairs = [(unwrapped(key), unwrapped(item)) for key, item in entries(value)]
        found = any(key[1] or item[1] for key, item in pairs)
        return ({key_of(key[0]): item[0] for key, item in pairs}, True) if found else (value, False)
    return value, False


def rewrapped(value: Value, change: Callable[[Value], Value]) -> Value:
    """What `change` makes of the unwrapped value; Sensitive when anything in the value was."""
    plain, secret = unwrapped(value)
    result = change(plain)
    return Sensitive(result) if secret else result


@function("stdlib::rewrap_sensitive_data", "Any data", "Callable[Any] &block?", returns="Any")
def rewrap(context: Context, data: Value, *, block: Closure | None = None) -> Value:
    """Return the data without the Sensitive in it, through the lambda if there is one; Sensitive as a whole if any of it was."""
    return rewrapped(data, block if block is not None else lambda value: value)
