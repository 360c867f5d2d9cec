"""The site's data, and what Hiera may ask of the scope in which something is looked up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.errors import EvaluationError

from ..errors.locations import FINAL
from ..host import NO_ARGUMENTS, DataContext, LookupArguments, LookupMethods
from ..types.notation.parse import parse_type
from ..values.core import MISSING, Strictness, Value
from ..values.puppet_type import PuppetType

if TYPE_CHECKING:
    from .compilation import Compilation
    from .definition_lookup import DefinitionLookup
    from .scopes.scope import Scope


class SiteData:
    """The site's data for one compilation; `session` is what the host keeps between two lookups."""

    def __init__(self, compilation: Compilation) -> None:
        self.compilation = compilation
        self.session: dict[str, Any] = {}

    def value(self, key: str, scope: Scope, merge: Any = None, arguments: LookupArguments = NO_ARGUMENTS) -> Value:
        """Return the value of a key; raise NotFoundInData when there is none. `merge` None: as the data says."""
        return self.compilation.host.lookup(key, self.context_for(scope), merge, arguments)

    def lookup_context(self, scope: Scope, module: str | None) -> LookupMethods:
        """Return what works behind a `Puppet::LookupContext` that a manifest made itself."""
        return self.compilation.host.lookup_context(self.context_for(scope), module)

    def context_for(self, scope: Scope) -> DataContext:
        """Return what Hiera may ask of a scope of this compilation."""
        return ScopeDataContext(self.compilation, scope, self.session)


class ScopeDataContext:
    """The DataContext of one scope: its variables are those that the scope sees."""

    __slots__ = ("compilation", "scope", "session")

    def __init__(self, compilation: Compilation, scope: Scope, session: dict[str, Any]) -> None:
        self.compilation = compilation
        self.scope = scope
        self.session = session

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
            name = name.removeprefix("::") if reason else name  # as the reference names it
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
    """Return why a variable of a class is not set: the class does not exist, or is not evaluated; '' for any other variable."""
    class_name = name.removeprefix("::").rpartition("::")[0]
    if not class_name:
        return ""
    class_scope = compilation.scopes.by_class.get(class_name)
    if class_scope is not None:
        source = class_scope.source
        if class_scope is not scope or source is None or all(parameter.name in class_scope.vars for parameter in source.parameters):
            return ""
    exists = compilation.definitions.has_class(class_name)
    return f"class {class_name} {'has not been evaluated' if exists else 'could not be found'}"
