"""Templates: EPP with its parameters, and ERB, as Python where it can be and by Ruby where not."""

from __future__ import annotations

from collections.abc import Mapping

from shared.errors import EvaluationError, ParseError, Unsupported

from ..erb import Doubt, RubyStop
from ..erb.runtime.session import TemplateSession
from ..loading.erb_templates import template_line
from ..loading.loaded_files import Template
from ..syntax.source import Source
from ..types.descriptions.describe import check_parameters
from ..values.core import Value
from ..values.variables import RESERVED
from .compilation import Scope
from .defaults import evaluate_defaults


def render_epp(scope: Scope, function: str, text: str, file: str, parameters: Mapping[str, Value] | None, outside: Scope) -> Value:
    """
    Return the text of a template; `outside` is the scope whose variables it sees.

    Raises:
        EvaluationError: it is not valid EPP, or its parameters do not fit.
    Source: language reference 12.1.
    """
    source = Source(text, file)
    try:
        template = scope.compilation.loader.template(source)
    except ParseError as error:
        raise EvaluationError(f"{function}(): Invalid EPP: {error}", hint=error.hint) from error
    # A template's own variables must not leak into the scope that renders it.
    inner = outside.local()
    # Without a parameter list a template takes any hash, and its keys become variables.
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


# --- ERB ----------------------------------------------------------------------------------------------------------


def render_erb(scope: Scope, text: str, name: str | None, file: str | None) -> str:
    """
    Return the text of an ERB template.

    A translated template that stops, because Ruby would raise an error or because we are not certain what Ruby does with its values, is
    rendered by Ruby from its beginning; functions that were called are not called again.

    Raises:
        EvaluationError: rendering failed; the message has the reference's words.
        Unsupported: only Ruby can render it, and there is none.
    """
    host = scope.compilation.host
    session = TemplateSession(scope)
    stop: RubyStop | None = None
    template = scope.compilation.loader.erb_templates.get(text, file)
    # The setting is the way out for a site that suspects the translation.
    if template.body is not None and host.setting("native_templates") is not False:
        try:
            rendered = template.body(session)
            session.keep_changes()
            return rendered
        except RubyStop as error:
            stop = error
    if host.ruby is not None:
        # Ruby starts from the beginning; the answers of functions that were called are passed on, since they may have side effects.
        return host.ruby.erb(scope, text, name, file, session.answers, template.impurity)
    if stop is None or isinstance(stop, Doubt):
        line, reason = (template.line, template.reason) if stop is None else (template_line(stop.__traceback__), str(stop))
        place = f" (line {line}: {reason})" if line else ""
        raise Unsupported(
            f"{file or 'The text given to inline_template()'} is an ERB template, which needs Ruby{place}",
            hint="Install Ruby on the master (see the setting ruby), or rewrite it as EPP.",
        ) from stop
    if name is None:
        raise EvaluationError(f"Failed to parse inline template: {stop}") from stop
    line = template_line(stop.__traceback__)
    raise EvaluationError(f"Failed to parse template {name}:\n  Filepath: {file}\n  Line: {line}\n  Detail: {stop}\n") from stop
