"""One rendering of a translated template: its access to the scope, whose values are the language's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...values.core import DEFAULT, MISSING, ForeignObject, Iterator, own, refill
from ..errors import Doubt
from .values import DEFAULT_SYMBOL, UNDEF, RubySymbol, Value, class_name, copy, from_key, symbol

_NOT_WORD = re.compile(r"\W")


def instance_variables(scope: Any, names: Sequence[str] | frozenset[str]) -> dict[str, Value]:
    """Return the variables of a scope that a template has as instance variables, by their names there; without those that are undef."""
    values: dict[str, Value] = {}
    renamed: dict[str, str] | None = None  # by the name in Ruby: the name of a variable that is no name in Ruby
    for name in names:
        value = scope.find(name)
        if value is MISSING and "_" in name:
            if renamed is None:
                renamed = {_NOT_WORD.sub("_", other): other for other in reversed(scope.special_names()) if _NOT_WORD.search(other)}
            if name in renamed:
                value = scope.find(renamed[name])
        if value is not None and value is not MISSING:
            values[name] = value
    return values


class TemplateSession:
    """
    One rendering.

    Attributes:
        answers: what functions have returned so far, so that Ruby can render the template in our place without calling them again.
    """

    __slots__ = ("_copied", "answers", "compilation", "scope")

    def __init__(self, scope: Any) -> None:
        self.scope = scope
        self.compilation = scope.compilation
        self.answers: list[Any] = []
        # Of the variables that the template may change: name, value, what was in it, and the template's copy.
        self._copied: list[tuple[str, Value, Value, Value]] = []

    def read(self, names: Sequence[str], is_copied: bool) -> list[Value]:
        """Return the values of instance variables."""
        found: Mapping[str, Value] = instance_variables(self.scope, names)
        values = [self._from_language(found[name], is_copied) if name in found else None for name in names]
        if is_copied:
            pairs = zip(names, values, strict=True)
            self._copied = [(name, found[name], own(found[name]), value) for name, value in pairs if value.__class__ in (list, dict)]
        return values

    def keep_changes(self) -> None:
        """
        Give variables the values that the template has changed in place, and the parameters of the resource that had the same values.

        Values of the language do not change, because constants of a manifest are the same objects for all nodes.
        """
        for name, before, content, copied in self._copied:
            scope = self.scope
            while scope.kind == "local" and name not in scope.vars and scope.next is not None:
                scope = scope.next
            if name in scope.vars and (after := to_language(copied)) != content:
                scope.replace(before, after)

    def variable(self, name: Value, is_copied: bool) -> Value:
        """`scope['name']`"""
        if name.__class__ is not str:
            raise Doubt("the name of a variable")
        value = self.scope.data_context().variable(name)
        held = self.compilation.template_values.get(id(value))
        return held[1] if held is not None else self._from_language(value, is_copied)

    def to_hash(self, is_copied: bool) -> dict[str, Value]:
        """`scope.to_hash`: all variables that are set."""
        variables = self.scope.variables()
        return {name: self._from_language(value, is_copied) for name, value in variables.items() if value is not None}

    def set(self, name: Value, value: Value) -> Value:
        """`scope.setvar`: until the end of the compilation templates see the same object in the variable."""
        if name.__class__ is not str:
            raise Doubt("the name of a variable")
        stored = to_language(value)
        self.scope.set(name, stored)
        if stored.__class__ in (list, dict):
            self.compilation.template_values[id(stored)] = (stored, value)
        self.answers.append(None)
        return value

    def has_variable(self, name: Value) -> bool:
        if name.__class__ is not str:
            raise Doubt("the name of a variable")
        value = self.scope.find(name)
        return value is not None and value is not MISSING

    def call(self, name: str, arguments: list[Value]) -> Value:
        """Return the result of a function of the language."""
        passed = [to_language(argument) for argument in arguments]
        value = self.scope.call_function(name, passed)
        if self.compilation.changed:
            self._keep_changes_of_arguments(arguments, passed)
        self.answers.append(value)
        return self._from_language(value, is_copied=True)

    def _keep_changes_of_arguments(self, arguments: list[Value], passed: list[Any]) -> None:
        """Change what a function has got, and has changed in place."""
        for argument, given in zip(arguments, passed, strict=True):
            before, after = self.compilation.changed.get(id(given), (None, None))
            if before is not given or before is None:
                continue
            if not any(argument is copied for *_, copied in self._copied):
                self.scope.replace(argument, after)
            else:
                refill(argument, self._from_language(after, is_copied=True))

    def _from_language(self, value: Any, is_copied: bool) -> Value:
        if value.__class__ is str or value is None:
            return value
        if value is DEFAULT:
            return DEFAULT_SYMBOL
        if value.__class__ is ForeignObject and value.ruby_class == "Symbol":
            return symbol(value.text)
        if value.__class__ is Iterator:
            raise Doubt("an Iterator")
        ruby = self.compilation.host.ruby
        if ruby is not None and ruby.has_set(value):
            raise Doubt("a value that Ruby has set")
        return copy(value) if is_copied else value


def to_language(value: Value) -> Any:
    """Return the value of the language for one of a template's."""
    if value.__class__ is str or value is None or value.__class__ in (int, bool, float):
        if value.__class__ is int and value.bit_length() >= 64:
            raise Doubt("a large number")
        return value
    if value.__class__ is list:
        return [to_language(item) for item in value]
    if value.__class__ is dict:
        return {_language_key(from_key(key), key): to_language(item) for key, item in value.items()}
    if value.__class__ is RubySymbol:
        return None if value is UNDEF else DEFAULT if value is DEFAULT_SYMBOL else ForeignObject("Symbol", value.name)
    class_name(value)
    raise Doubt(f"a {value.__class__.__name__} that is handed to the language")


def _language_key(value: Value, key: Any) -> Any:
    return to_language(value) if value.__class__ is RubySymbol else key
