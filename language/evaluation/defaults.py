"""Defaults of parameters that are given by name: of classes, defined types and EPP templates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from shared.errors import EvaluationError

from ..catalog.definitions import ParameterSpec
from ..codegen import READ
from ..errors.issues import UnsetParameter
from ..errors.locations import FINAL
from ..values.core import MISSING, Value
from .compilation import Scope


def evaluate_defaults(
    scope: Scope, parameters: Sequence[ParameterSpec], arguments: Mapping[str, Value], label: str
) -> Iterator[tuple[str, Value]]:
    """
    Yield name and value of each default that applies, in the order of the parameters.

    A default sees all arguments, an undef among them, and the parameters before its own.

    Args:
        scope: where the variables are set.
        arguments: the values that the caller gives, by name; undef asks for the default where there is one.
        label: the owner of the parameters, for error messages.
    Raises:
        EvaluationError: a default reads a parameter that was forgotten, or one that comes later.
    """
    variables = scope.vars
    for name, value in arguments.items():
        # All arguments are visible to every default, also those of later parameters.
        variables.setdefault(name, value)
    for parameter in parameters:
        name = parameter.name
        # An argument undef asks for the default, as in the reference.
        if arguments.get(name) is not None or not parameter.has_default:
            continue
        value = parameter.header.default if parameter.fixed else evaluate_default(scope, parameter, parameters, label)
        variables[name] = value
        yield name, value


def evaluate_default(scope: Scope, parameter: ParameterSpec, parameters: Sequence[ParameterSpec], label: object) -> Value:
    """Return the value of a default that is no constant; `label` and errors are those of `evaluate_defaults`."""
    header = parameter.header
    if header.kind == READ:
        value = scope.vars.get(header.default, MISSING)
        if value is not MISSING:
            return value
    scope.pending = partial(_complaint, scope, parameter, parameters, label)
    try:
        return _default_value(scope, parameter)
    except UnsetParameter as error:
        # The error is placed at the declaration, not at the default expression.
        raise EvaluationError(error.message) from None
    except EvaluationError as error:
        if error.where is FINAL and scope.source is not None:  # a look-up that found nothing
            error.where = scope.source.place
        raise
    finally:
        scope.pending = None


def _default_value(scope: Scope, parameter: ParameterSpec) -> Value:
    header = parameter.header
    if header.kind == READ and (scope.pending is None or scope.pending(header.default) is None):
        value = scope.find(header.default)
        if value is not MISSING:
            return value
    # An error of a variable is raised by generated code, which has a place.
    return parameter.run_default(scope)


def _complaint(scope: Scope, parameter: ParameterSpec, parameters: Sequence[ParameterSpec], label: object, name: str) -> str | None:
    """Return what to say when the default of `parameter` reads one of that name that has no value yet; None when it may."""
    if "::" in name or name in scope.vars:
        return None
    is_earlier = True
    for other in parameters:
        if other is parameter:
            is_earlier = False
        if other.name != name:
            continue
        if is_earlier:
            return f"{label}: expects a value for parameter ${name}"
        return f"{label}: default expression for ${parameter.name} tries to illegally access not yet evaluated ${name}"
    return None
