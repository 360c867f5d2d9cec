"""What data may ask of the compilation that looks it up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shared.errors import EvaluationError

from ..errors.locations import FINAL
from ..host import DataContext
from ..types.base import PuppetType
from ..values.core import Strictness, Value
from .scope import MISSING

if TYPE_CHECKING:
    from .compilation import Compilation
    from .scope import Scope

__all__ = ["data_context_for"]


def data_context_for(compilation: Compilation, scope: Scope, session: dict[str, Any]) -> DataContext:
    """The context for one lookup, with the variables that `scope` sees."""

    def peek(name: str) -> Value:
        found = scope.find(name)
        return None if found is MISSING else found

    def variable(name: str) -> Value:
        found = scope.find(name)
        if found is not MISSING:
            return found
        strict = compilation.reporter.strict
        if strict is not Strictness.OFF:
            message = f"Undefined variable '{name}'; {_why(compilation, scope, name)}"
            if strict is Strictness.ERROR:
                raise EvaluationError(message)
            compilation.warn_once("undefined_variables", f"Variable: {name}", message)
        return None

    def warn(message: str) -> None:
        # Said when a file is read, which may not be at the next lookup.
        compilation.mark_uncacheable("data have something to complain about")
        compilation.log("warning", message)

    def caller(name: str) -> Value:
        if name == "calling_module":
            return scope.module_name
        owner: Scope | None = scope
        while owner is not None and owner.kind != "class":
            owner = owner.next if owner.kind == "local" else owner.parent
        found = owner.source.name.lower() if owner is not None and owner.source is not None else None
        return found.replace("::", "/") if found is not None and name == "calling_class_path" else found

    def convert(key: str, value: Value, wanted: Any) -> Value:
        name, *arguments = wanted if isinstance(wanted, list) else [wanted]
        try:
            type_ = name if isinstance(name, PuppetType) else compilation.type_from_text(str(name))
        except EvaluationError as error:
            raise EvaluationError(
                f"Invalid data type in lookup_options for key '{key}' could not parse '{name}', error: '{error.message}",
                where=FINAL,
                hint=error.hint,
            ) from error
        try:
            return compilation.function("new").call(scope, [type_, value, *arguments])
        except EvaluationError as error:
            raise EvaluationError(
                f"The convert_to lookup_option for key '{key}' raised error: {error.message}", where=FINAL, hint=error.hint
            ) from error

    return DataContext(
        variable,
        peek,
        compilation.fact,
        caller,
        convert,
        warn,
        lambda kind, key, message, file: compilation.warn_once(kind, key, message, file=file),
        compilation.find_function,
        scope,
        compilation,
        session,
    )


def _why(compilation: Compilation, scope: Scope, name: str) -> str:
    """The reason that stands behind the complaint: of a class that is not there, or not yet."""
    class_name = name.removeprefix("::").rpartition("::")[0]
    if not class_name:
        return ""
    made = compilation.class_scopes.get(class_name)
    if made is not None and not (
        made is scope and made.source is not None and any(p.name not in made.vars for p in made.source.parameters)
    ):
        return ""
    known = compilation.find_class(class_name) is not None
    return f"class {class_name} {'has not been evaluated' if known else 'could not be found'}"
