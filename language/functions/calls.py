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
    """Return the lambda's result for `arg`; undef for undef."""
    return None if arg is None else block(arg)


@function("lest", "Any arg", "Callable[0,0] &block")
def lest(context: Context, arg: Value, *, block: Closure) -> Value:
    """Return `arg`, or the lambda's result when it is undef."""
    return block() if arg is None else arg


@function("call", "String function_name", "Any arguments*", "Callable &block?")
def call(context: Context, function_name: str, *arguments: Value, block: Closure | None = None) -> Value:
    """Call a function by name."""
    if not context.has_function(function_name):
        raise EvaluationError(f"Unknown function '{function_name}'")
    return context.call_function(function_name, arguments, block)


@call.also("Deferred deferred")
def call_deferred(context: Context, deferred: Deferred) -> Value:
    return resolve_deferred(context, deferred)


def resolve_deferred(context: Context, value: Value) -> Value:
    """Return `value` with the result of every Deferred in it; arguments are called first."""
    if isinstance(value, Deferred):
        arguments = [resolve_deferred(context, item) for item in value.arguments or []]
        if value.name.startswith("$"):
            try:
                variable = context.variable(value.name[1:])
            except KeyError:
                variable = None
            return context.call_function("dig", [variable, *arguments]) if arguments else variable
        return context.call_function(value.name, arguments)
    if isinstance(value, list):
        return [resolve_deferred(context, item) for item in value]
    if isinstance(value, dict):
        return {key: resolve_deferred(context, item) for key, item in value.items()}
    return Sensitive(resolve_deferred(context, value.unwrap())) if isinstance(value, Sensitive) else value


@function("unwrap", "Sensitive arg", "Callable &block?")
def unwrap(context: Context, arg: Sensitive, *, block: Closure | None = None) -> Value:
    """Return the value inside a Sensitive, or any other value unchanged; with a lambda, return the lambda's result for that value."""
    return block(arg.unwrap()) if block is not None else arg.unwrap()


@unwrap.also("Any arg", "Callable &block?")
def unwrap_any(context: Context, arg: Value, *, block: Closure | None = None) -> Value:
    return block(arg) if block is not None else arg
