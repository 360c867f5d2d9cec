"""EPP templates: their text, with their parameters given."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import EvaluationError, ParseError

from ..loading.loaded_files import Template
from ..syntax.source import Source
from ..types.descriptions.describe import check_parameters
from ..values.core import Value
from ..values.variables import RESERVED
from .defaults import evaluate_defaults
from .scope import Scope

__all__ = ["render_epp"]


def render_epp(scope: Scope, function: str, text: str, file: str, given: Mapping[str, Value] | None, *, outside: Scope) -> Value:
    """
    What a template says; `outside` is the scope whose variables it sees.

    Raises:
        EvaluationError: it is no valid EPP, or its parameters do not fit.
    Source: language reference 12.1.
    """
    source = Source(text, file)
    try:
        template = scope.compilation.loader.template(source)
    except ParseError as error:
        raise EvaluationError(f"{function}(): Invalid EPP: {error}", hint=error.hint) from error
    inner = outside.local()
    if template.parameters is None:
        for name, value in (given or {}).items():
            inner.vars[name] = value
        return template.body(inner)
    values = _bound(inner, template, given or {})
    return template.body(inner, *values)


def _bound(inner: Scope, template: Template, given: Mapping[str, Value]) -> list[Value]:
    """The parameters' values, in order. A parameter given undef gets its default."""
    assert template.parameters is not None
    for name in given:
        if name in RESERVED:
            raise EvaluationError(f"Attempt to assign to a reserved variable name: '{name}'")
    bound: dict[str, Value] = dict(given)
    bound.update(evaluate_defaults(inner, template.parameters, given, "lambda"))
    wanted = [(each.name, each.type(inner), each.has_default) for each in template.parameters]
    declared = {name for name, _, _ in wanted}
    # A surplus undef is no argument.
    problems = check_parameters("lambda", wanted, {name: value for name, value in bound.items() if name in declared or value is not None})
    if problems is not None:
        raise EvaluationError(problems)
    return [bound.get(parameter.name) for parameter in template.parameters]
