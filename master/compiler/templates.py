"""EPP templates: their text, with their parameters given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shared.errors import EvaluationError, ParseError

from .issues import NotYet
from .scope import RESERVED
from .source import Source
from .types.describe import check_parameters
from .values import Value

if TYPE_CHECKING:
    from .loaded_files import Template
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
        template = scope.compiler.loader.template(source)
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
    bound: dict[str, Value] = {}
    for name, value in given.items():
        if name in RESERVED:
            raise EvaluationError(f"Attempt to assign to a reserved variable name: '{name}'")
        if value is not None:
            inner.vars[name] = value
        bound[name] = value
    for parameter in template.parameters:
        name = parameter.name
        if bound.get(name) is None and parameter.has_default:
            later = {
                each.name: f"lambda: default expression for ${name} tries to illegally access not yet evaluated ${each.name}"
                for each in template.parameters
                if each.name not in inner.vars
            }
            inner.pending = later
            try:
                bound[name] = parameter.value(inner)
            except NotYet as error:
                raise EvaluationError(error.message) from None
            finally:
                inner.pending = None
            inner.vars[name] = bound[name]
    wanted = [(each.name, each.type(inner), each.has_default) for each in template.parameters]
    problems = check_parameters("lambda", wanted, dict(bound))
    if problems is not None:
        raise EvaluationError(problems)
    for parameter in template.parameters:
        inner.vars.setdefault(parameter.name, bound.get(parameter.name))
    return [bound.get(parameter.name) for parameter in template.parameters]
