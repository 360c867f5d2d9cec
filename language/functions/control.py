"""break, next, return: leave a lambda, a loop or a body."""

from __future__ import annotations

from ..errors.control import Break, Next, Return
from ..errors.issues import BadOperand
from ..values.core import Value
from .api import Context, function, legacy_function


@function("break")
def break_(context: Context) -> Value:
    """End the iteration whose lambda is running."""
    raise Break


@legacy_function("import", -1)
def import_(context: Context, *args: Value) -> Value:
    """Raise an error: Puppet 4 removed this function."""
    raise BadOperand(
        "Use of 'import' has been discontinued in favor of a manifest directory. See http://links.puppet.com/puppet-import-deprecation"
    )


@function("next", "Any value?")
def next_(context: Context, value: Value = None) -> Value:
    """End the running lambda, function or body with `value`."""
    raise Next(value)


@function("return", "Any value?")
def return_(context: Context, value: Value = None) -> Value:
    """End the function or body around the running lambda with `value`."""
    raise Return(value)
