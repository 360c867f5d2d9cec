"""The interface through which Hiera uses the scope of a lookup."""

from __future__ import annotations

from typing import Any

from shared.errors import EvaluationError, PuppetError

from ..errors.locations import FINAL
from ..types.notation.parse import parse_type
from ..values.core import MISSING, PuppetType, Strictness, Value
from .compilation import Compilation, Scope
from .definition_lookup import DefinitionLookup


class ScopeDataContext:
    """The DataContext of one scope: its variables are those that the scope sees."""

    __slots__ = ("compilation", "scope", "session")

    def __init__(self, scope: Scope) -> None:
        self.compilation = scope.compilation
        self.scope = scope
        self.session = self.compilation.data_session

    @property
    def types(self) -> DefinitionLookup:
        return self.compilation.definitions

    def peek(self, name: str) -> Value:
        value = self.scope.find(name)
        return None if value is MISSING else value

    def variable(self, name: str) -> Value:
        value = self.scope.find(name)
        if value is not MISSING:
            return value
        strict = self.compilation.reporter.strict
        if strict is not Strictness.OFF:
            reason = _reason_unset(self.compilation, self.scope, name)
            name = name.removeprefix("::") if reason else _name_above(self.compilation, name)  # as the reference names it
            message = f"Undefined variable '{name}'; {reason}"
            if strict is Strictness.ERROR:
                raise EvaluationError(message)
            self.compilation.log.warn_once("undefined_variables", f"Variable: {name}", message)
        return None

    def fact(self, name: str) -> Value:
        return self.compilation.fact(name)

    def warn(self, message: str) -> None:
        # The warning is logged when a file is read, which the next lookup may not do again.
        self.compilation.mark_uncacheable("data have something to complain about")
        self.compilation.log.add("warning", message)

    def warn_once(self, kind: str, key: str, message: str, file: str) -> None:
        self.compilation.log.warn_once(kind, key, message, file=file)

    def function(self, name: str) -> Any:
        return self.compilation.definitions.find_function(name)

    def caller(self, name: str) -> Value:
        if name == "calling_module":
            return self.scope.module_name
        owner: Scope | None = self.scope
        # Hiera's %{calling_class} is the class around a define or lambda, not the define itself.
        while owner is not None and owner.kind != "class":
            owner = owner.next if owner.kind == "local" else owner.parent
        class_name = owner.source.name.lower() if owner is not None and owner.source is not None else None
        return class_name.replace("::", "/") if class_name is not None and name == "calling_class_path" else class_name

    def convert(self, key: str, value: Value, conversion: Value) -> Value:
        name, *arguments = conversion if isinstance(conversion, list) else [conversion]
        try:
            type_ = name if isinstance(name, PuppetType) else parse_type(str(name), self.compilation.definitions)
        except EvaluationError as error:
            raise EvaluationError(
                f"Invalid data type in lookup_options for key '{key}' could not parse '{name}', error: '{error.message}",
                where=FINAL,
                hint=error.hint,
            ) from error
        try:
            return self.compilation.definitions.function("new").call(self.scope, [type_, value, *arguments])
        except EvaluationError as error:
            raise EvaluationError(
                f"The convert_to lookup_option for key '{key}' raised error: {error.message}", where=FINAL, hint=error.hint
            ) from error


def _reason_unset(compilation: Compilation, scope: Scope, name: str) -> str:
    """Return why a variable of a class is not set: it does not exist, cannot be loaded, or is not evaluated; '' for any other variable."""
    class_name = name.removeprefix("::").rpartition("::")[0]
    if not class_name:
        return ""
    class_scope = compilation.scopes.by_class.get(class_name)
    if class_scope is not None:
        source = class_scope.source
        if class_scope is not scope or source is None or all(parameter.name in class_scope.vars for parameter in source.parameters):
            return ""
    try:
        exists = compilation.definitions.has_class(class_name)
    except PuppetError as error:
        return str(error)
    return f"class {class_name} {'has not been evaluated' if exists else 'could not be found'}"


def _name_above(compilation: Compilation, name: str) -> str:
    """Return the name of a variable of a class as one of the class that it inherits last; other names are unchanged."""
    class_name, _, variable = name.removeprefix("::").rpartition("::")
    if not class_name:
        return name
    definition = compilation.definitions.find_class(class_name)
    while definition is not None and definition.parent is not None:
        definition = definition.parent
    return f"::{class_name if definition is None else definition.name}::{variable}"
