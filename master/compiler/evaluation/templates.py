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


def render_epp(scope: Scope, function: str, text: str, file: str, parameters: Mapping[str, Value] | None, *, outside: Scope) -> Value:
    """
    Return the text of a template; `outside` is the scope whose variables it sees.

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
        for name, value in (parameters or {}).items():
            inner.vars[name] = value
        return template.body(inner)
    values = _bind_parameters(inner, template, parameters or {})
    return template.body(inner, *values)


def _bind_parameters(inner: Scope, template: Template, arguments: Mapping[str, Value]) -> list[Value]:
    """Return the parameters' values, in order. A parameter given undef gets its default."""
    assert template.parameters is not None
    for name in arguments:
        if name in RESERVED:
            raise EvaluationError(f"Attempt to assign to a reserved variable name: '{name}'")
    values: dict[str, Value] = dict(arguments)
    values.update(evaluate_defaults(inner, template.parameters, arguments, "lambda"))
    declared_parameters = [(parameter.name, parameter.type(inner), parameter.has_default) for parameter in template.parameters]
    names = {name for name, _, _ in declared_parameters}
    # A surplus undef is no argument.
    problems = check_parameters(
        "lambda", declared_parameters, {name: value for name, value in values.items() if name in names or value is not None}
    )
    if problems is not None:
        raise EvaluationError(problems)
    return [values.get(parameter.name) for parameter in template.parameters]
