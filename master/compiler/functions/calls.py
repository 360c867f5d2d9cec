"""with, then, lest, call, unwrap: calling a lambda or a function with a value."""

from __future__ import annotations

from shared.errors import EvaluationError

from ..values.core import Deferred, Sensitive, Value
from .api import Closure, Context, function


@function("with", "Any arg*", "Callable &block")
def with_(context: Context, *args: Value, block: Closure) -> Value:
    """Call the lambda with the arguments."""
    return block(*args)


@function("then", "Any arg", "Callable[1,1] &block")
def then(context: Context, arg: Value, *, block: Closure) -> Value:
    """The lambda's value for `arg`; undef for undef."""
    return None if arg is None else block(arg)


@function("lest", "Any arg", "Callable[0,0] &block")
def lest(context: Context, arg: Value, *, block: Closure) -> Value:
    """`arg`, or the lambda's value when it is undef."""
    return block() if arg is None else arg


@function("call", "String function_name", "Any arguments*", "Callable &block?")
def call(context: Context, function_name: str, *arguments: Value, block: Closure | None = None) -> Value:
    """Call a function by name."""
    if not context.has_function(function_name):
        raise EvaluationError(f"Unknown function '{function_name}'")
    return context.call_function(function_name, arguments, block)


@call.also("Deferred deferred")
def call_deferred(context: Context, deferred: Deferred) -> Value:
    return resolved(context, deferred)


def resolved(context: Context, value: Value) -> Value:
    """`value` with every Deferred in it called; arguments first."""
    if isinstance(value, Deferred):
        arguments = [resolved(context, item) for item in value.arguments or []]
        if value.name.startswith("$"):
            try:
                found = context.variable(value.name[1:])
            except KeyError:
                found = None
            return context.call_function("dig", [found, *arguments]) if arguments else found
        return context.call_function(value.name, arguments)
    if isinstance(value, list):
        return [resolved(context, item) for item in value]
    if isinstance(value, dict):
        return {key: resolved(context, item) for key, item in value.items()}
    return Sensitive(resolved(context, value.unwrap())) if isinstance(value, Sensitive) else value


@function("unwrap", "Sensitive arg", "Callable &block?")
def unwrap(context: Context, arg: Sensitive, *, block: Closure | None = None) -> Value:
    """The value inside a Sensitive; any other value as it is. With a lambda: its value for that."""
    return block(arg.unwrap()) if block is not None else arg.unwrap()


@unwrap.also("Any arg", "Callable &block?")
def unwrap_any(context: Context, arg: Value, *, block: Closure | None = None) -> Value:
    return block(arg) if block is not None else arg
