"""break, next, return: out of a lambda, a loop or a body."""

from __future__ import annotations

from ..control import Break, Next, Return
from ..values import Value
from .api import Context, function


@function("break")
def break_(context: Context) -> Value:
    """End the iteration whose lambda is running."""
    raise Break


@function("next", "Any value?")
def next_(context: Context, value: Value = None) -> Value:
    """End the running lambda, function or body with `value`."""
    raise Next(value)


@function("return", "Any value?")
def return_(context: Context, value: Value = None) -> Value:
    """End the function or body around the running lambda with `value`."""
    raise Return(value)
