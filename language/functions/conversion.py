"""new, convert_to, type, assert_type: values and their types."""

from __future__ import annotations

from shared.errors import EvaluationError

from ..callables.conversions import new as new_value
from ..types.descriptions.describe import describe_mismatch
from ..types.inference.infer import infer, infer_set
from ..types.notation.parse import parse_type
from ..values.core import PuppetType, Value
from .api import Closure, Context, function


@function("new", "Type type", "Any args*", "Callable &block?")
def new(context: Context, type_: PuppetType, *args: Value, block: Closure | None = None) -> Value:
    """Create a value of the type from the arguments; with a lambda, return the lambda's result for that value."""
    value = new_value(type_, args, context)
    return block(value) if block is not None else value


@function("convert_to", "Any value", "Type type", "Any args*", "Callable[1,1] &block?")
def convert_to(context: Context, value: Value, type_: PuppetType, *args: Value, block: Closure | None = None) -> Value:
    """Return the result of `new` with the value as the first argument."""
    converted = new_value(type_, (value, *args), context)
    return block(converted) if block is not None else converted


@function("type", "Any value", "Enum[detailed] inference_method?")
def type_(context: Context, value: Value, _: str = "detailed") -> PuppetType:
    """Return the type of the value: detailed (the default), reduced (one element type), or generalized (no ranges)."""
    return infer_set(value)


@type_.also("Any value", "Enum[reduced] inference_method")
def type_reduced(context: Context, value: Value, _: str) -> PuppetType:
    return infer(value)


@type_.also("Any value", "Enum[generalized] inference_method")
def type_generalized(context: Context, value: Value, _: str) -> PuppetType:
    return infer(value).generalized()


@function("assert_type", "Type type", "Any value", "Callable[Type, Type] &block?")
def assert_type(context: Context, type_: PuppetType, value: Value, *, block: Closure | None = None) -> Value:
    """
    Return the value if it is of the type; otherwise the lambda's result for expected and actual type. Without a lambda, a mismatch is an
    error.
    """
    if type_.instance(value):
        return value
    actual = infer_set(value)
    if block is not None:
        return block(type_, actual)
    raise EvaluationError(describe_mismatch("assert_type():", type_, actual))


@assert_type.also("String type_string", "Any value", "Callable[Type, Type] &block?")
def assert_type_string(context: Context, type_string: str, value: Value, *, block: Closure | None = None) -> Value:
    asserted: Value = assert_type.call(context, [parse_type(type_string, context.types), value], block)
    return asserted
