"""What Ruby may ask about the compilation that it works for, by the names of the questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from language.callables.signatures import Closure
from language.catalog.resources import capitalized_type
from language.evaluation.runtime import call_method
from language.values.core import MISSING, Strictness, Value
from shared.ral import Platform

from .descriptions import module_data, resource_data, source_data

if TYPE_CHECKING:
    from language.evaluation.compilation import Scope


class ScopeQuestions:
    """Answers the questions that take nothing but the scope that Ruby is called from."""

    def _on_variable(self, scope: Scope, name: str) -> Value:
        return scope.data_context().variable(name)

    def _on_peek(self, scope: Scope, name: str) -> Value:
        value = scope.find(name)
        return None if value is MISSING else value

    def _on_fact(self, scope: Scope, name: str) -> Value:
        facts = scope.global_scope().find("facts")
        return Platform(facts).fact(name) if isinstance(facts, dict) else None

    def _on_defaults(self, scope: Scope, type_name: str) -> Value:
        return scope.defaults_of(type_name)

    def _on_find(self, scope: Scope, name: str, kind: str) -> str | None:
        return scope.compilation.host.find_file(name, kind)

    def _on_exists(self, scope: Scope, name: str) -> bool:
        return scope.exists(name)

    def _on_bound(self, scope: Scope, name: str) -> bool:
        return name in scope.vars

    def _on_scope_kind(self, scope: Scope) -> str:
        return scope.kind

    def _on_source(self, scope: Scope) -> Value:
        return source_data(scope.source)

    def _on_variables(self, scope: Scope) -> Value:
        return scope.variables()

    def _on_scope_name(self, scope: Scope) -> str:
        return scope.name()

    def _on_function(self, scope: Scope, name: str) -> bool:
        return scope.has_function(name)

    def _on_method(self, scope: Scope, value: Any, name: str, args: list[Value], block: Closure | None) -> Value:
        return call_method(scope, name, block, value, *args)

    def _on_log(self, scope: Scope, level: str, text: str) -> None:
        scope.log(level, text)

    def _on_warn_once(self, scope: Scope, kind: str, key: str, text: str) -> None:
        scope.warn_once(kind, key, text)

    def _on_setting(self, scope: Scope, name: str) -> Value:
        value = scope.setting(name)
        return scope.compilation.reporter.strict.value if name == "strict" else value

    def _on_set_strict(self, scope: Scope, value: str) -> None:
        scope.compilation.reporter.strict = Strictness(value)

    def _on_environment(self, scope: Scope) -> str:
        return scope.compilation.host.environment

    def _on_module(self, scope: Scope, name: str) -> Value:
        return module_data(scope.compilation.host, name)

    def _on_facts(self, scope: Scope) -> Value:
        return self._on_peek(scope.global_scope(), "facts")

    def _on_classes(self, scope: Scope) -> Value:
        return list(scope.compilation.catalog.classes)

    def _on_tags(self, scope: Scope) -> Value:
        return list(scope.compilation.catalog.tags)

    def _on_resource(self, scope: Scope, type_name: str, title: str) -> Value:
        type_name = capitalized_type(type_name)
        return resource_data(scope.compilation.catalog.find(type_name, capitalized_type(title) if type_name == "Class" else title))

    def _on_resources(self, scope: Scope) -> Value:
        return [resource_data(resource) for resource in scope.compilation.catalog]

    def _on_own_resource(self, scope: Scope) -> Value:
        return resource_data(scope.resource)
