"""
The classes of a manifest as tools list them: their parameters' types and defaults, as far as these can be told without running anything.

Source: protocol reference 3.15.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..compiler.syntax import nodes as n
from ..compiler.syntax.checker import Diagnostic, check, refuse
from ..compiler.syntax.checker.findings import Strict
from ..compiler.syntax.parser import parse
from ..compiler.syntax.source import Source
from ..compiler.types.base import PuppetType, TypeReference
from ..compiler.types.builtin import BUILTIN_TYPES
from ..compiler.types.notation.access import type_from_access
from ..compiler.types.references import ResourceType
from ..compiler.values.core import DEFAULT, Value, key_of
from .key_order import sorted_as_clojure
from .source_text import text_of

__all__ = ["Listed", "classes"]

Listed = dict[str, Any]
"""name and params; each of these with name and, where there is one, type, default_source and default_literal."""


def classes(source: Source, *, strict: Strict, log: Callable[[str, Diagnostic], None]) -> list[Listed]:
    """The classes of one file, in the order in which they end; ParseError when the file is wrong. `log` gets what is odd about it."""
    program = parse(source)
    refuse(check(program, source, strict=strict), log)
    found = [each for each in program.definitions if isinstance(each, n.ClassDefinition)]
    return [{"name": each.name.removeprefix("::"), "params": [_parameter(one, source) for one in each.parameters]} for each in found]


def _parameter(parameter: n.Parameter, source: Source) -> Listed:
    """In the order of puppetserver, which sorts all keys."""
    found: Listed = {}
    if parameter.default is not None:
        literal = _literal(parameter.default)
        if literal is not None and literal is not _OPEN:
            found["default_literal"] = sorted_as_clojure(literal)
        found["default_source"] = text_of(parameter.default, source)
    found["name"] = parameter.name
    if parameter.type is not None:
        try:
            found["type"] = str(_Types(source).value(parameter.type))
        except EvaluationError:
            pass  # a type that only running can tell; puppetserver answers the whole question with an error then
    return found


class _Open:
    """What only running can tell."""


_OPEN = _Open()
_PLAIN = (n.Integer, n.Float, n.String, n.Boolean, n.Name)


def _literal(node: n.Node) -> Any:
    """The value of a default that is plain data; None for undef, _OPEN for whatever else there is."""
    if isinstance(node, _PLAIN):
        return node.value
    if isinstance(node, n.Undef):
        return None
    if isinstance(node, n.Interpolated) and len(node.segments) == 1 and isinstance(node.segments[0], n.String):
        return node.segments[0].value
    if isinstance(node, n.Array):
        values = [_literal(each) for each in node.values]
        return _OPEN if any(each is _OPEN for each in values) else values
    if isinstance(node, n.Hash):
        entries = [(_literal(each.key), _literal(each.value)) for each in node.entries]
        if any(not isinstance(key, str) or value is _OPEN for key, value in entries):
            return _OPEN
        return dict(entries)
    return _OPEN


# The types of resources that are known without any environment: those that Puppet itself has.
_OF_PUPPET = "component exec file filebucket group node notify package resources schedule service stage tidy user whit"
_RESOURCES = frozenset(_OF_PUPPET.split())
_LOADED_LATER = frozenset(("error", "target"))  # data types that puppetserver finds in an environment only


class _Types:
    """Type expressions without an environment: types of Puppet itself are known, every other is a reference by its name."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def value(self, node: n.Node) -> Value:
        """What a part of a type expression is; EvaluationError when only running can tell."""
        match node:
            case n.TypeName():
                name = node.value.removeprefix("::")
                lower = name.lower()
                if lower in _RESOURCES:
                    return ResourceType(name)
                known = None if lower in _LOADED_LATER else BUILTIN_TYPES.get(lower)
                return TypeReference(name) if known is None else known
            case n.Access(left=n.TypeName()):
                return self._access(node)
            case n.Regex():
                return Regexp(node.source)
            case n.Default():
                return DEFAULT
            case n.Array():
                return [self.value(each) for each in node.values]
            case n.Hash():
                return {key_of(self.value(each.key)): self.value(each.value) for each in node.entries}
            case n.Unary(op="-", operand=n.Integer() | n.Float()):
                return -node.operand.value  # type: ignore[attr-defined]  # mypy does not narrow what a nested pattern has matched
        literal = _literal(node)
        if isinstance(literal, _Open):
            raise EvaluationError("Only running the manifest tells this type")
        found: Value = literal
        return found

    def _access(self, node: n.Access) -> PuppetType:
        base, keys = self.value(node.left), [self.value(each) for each in node.keys]
        if isinstance(base, TypeReference):
            return TypeReference(text_of(node, self.source))
        found = type_from_access(base, keys)
        if not isinstance(found, PuppetType):
            raise EvaluationError("Not a type")
        return found
