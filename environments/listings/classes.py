"""
Lists the classes of a manifest for tools: their parameters' types and defaults, as far as these follow from the text alone.

Source: protocol reference 3.15.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from language.syntax import nodes as n
from language.syntax.checker import Diagnostic, check, log_and_refuse
from language.syntax.checker.report import Strict
from language.syntax.parser import parse
from language.syntax.source import Source
from language.types.builtin import BUILTIN_TYPES
from language.types.kinds.base import TypeReference
from language.types.kinds.references import ResourceEntryType
from language.types.notation.access import no_access_error, type_from_access
from language.values.core import DEFAULT, PuppetType, Value, key_of
from shared.errors import EvaluationError
from shared.regexps import Regexp

from .key_order import sorted_as_clojure
from .manifests import text_of

ListedClass = dict[str, Any]
"""The keys name and params; each parameter has a name and, where it has one, type, default_source and default_literal."""


def classes(source: Source, *, strict: Strict, log: Callable[[str, Diagnostic], None]) -> list[ListedClass]:
    """Return the classes of one file, in the order in which they end; raise ParseError for an invalid file. `log` gets the warnings."""
    program = parse(source)
    log_and_refuse(check(program, source, strict=strict), log)
    definitions = [definition for definition in program.definitions if isinstance(definition, n.ClassDefinition)]
    return [
        {"name": definition.name.removeprefix("::"), "params": [_parameter(parameter, source) for parameter in definition.parameters]}
        for definition in definitions
    ]


def _parameter(parameter: n.ParameterDeclaration, source: Source) -> ListedClass:
    """Return one parameter, its keys in the order of puppetserver, which sorts them."""
    listed: ListedClass = {}
    if parameter.default is not None:
        literal = _literal(parameter.default)
        if literal is not None and literal is not _UNDECIDABLE:
            listed["default_literal"] = sorted_as_clojure(literal)
        listed["default_source"] = text_of(parameter.default, source)
    listed["name"] = parameter.name
    if parameter.type is not None:
        with suppress(EvaluationError):  # a type that depends on a run; puppetserver then answers the whole request with an error
            listed["type"] = str(_Types(source).value(parameter.type))
    return listed


class _Undecidable:
    """The value of an expression that only a run of the manifest can compute."""


_UNDECIDABLE = _Undecidable()
_PLAIN = (n.IntegerLiteral, n.FloatLiteral, n.StringLiteral, n.BooleanLiteral, n.QualifiedName)


def _literal(node: n.SyntaxNode) -> Any:
    """Return the value of a default that is plain data, None for undef, _UNDECIDABLE for anything else."""
    if isinstance(node, _PLAIN):
        return node.value
    if isinstance(node, n.UndefLiteral):
        return None
    if isinstance(node, n.ConcatenatedString) and len(node.segments) == 1 and isinstance(node.segments[0], n.StringLiteral):
        return node.segments[0].value
    if isinstance(node, n.ArrayLiteral):
        values = [_literal(element) for element in node.values]
        return _UNDECIDABLE if any(element is _UNDECIDABLE for element in values) else values
    if isinstance(node, n.HashLiteral):
        entries = [(_literal(element.key), _literal(element.value)) for element in node.entries]
        if any(not isinstance(key, str) or value is _UNDECIDABLE for key, value in entries):
            return _UNDECIDABLE
        return dict(entries)
    return _UNDECIDABLE


# The resource types that are known without an environment: Puppet's own.
_OF_PUPPET = "component exec file filebucket group node notify package resources schedule service stage tidy user whit"
_RESOURCES = frozenset(_OF_PUPPET.split())
_LOADED_LATER = frozenset(("error", "target"))  # data types that puppetserver knows only in an environment


class _Types:
    """Evaluates type expressions without an environment: Puppet's own types are known, any other is a reference by its name."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def value(self, node: n.SyntaxNode) -> Value:
        """Return the value of a part of a type expression; raise EvaluationError when only a run can compute it."""
        match node:
            case n.QualifiedReference():
                name = node.value.removeprefix("::")
                lower = name.lower()
                if lower in _RESOURCES:
                    return ResourceEntryType(name)
                known = None if lower in _LOADED_LATER else BUILTIN_TYPES.get(lower)
                return TypeReference(name) if known is None else known
            case n.AccessExpression(left=n.QualifiedReference()):
                return self._access(node)
            case n.RegexpLiteral():
                return Regexp(node.source)
            case n.DefaultLiteral():
                return DEFAULT
            case n.ArrayLiteral():
                return [self.value(part) for part in node.values]
            case n.HashLiteral():
                return {key_of(self.value(part.key)): self.value(part.value) for part in node.entries}
            case n.UnaryOperation(op="-", operand=n.IntegerLiteral(value=number) | n.FloatLiteral(value=number)):
                return -number
        literal = _literal(node)
        if isinstance(literal, _Undecidable):
            raise EvaluationError("Only running the manifest shows this type")
        constant: Value = literal
        return constant

    def _access(self, node: n.AccessExpression) -> PuppetType:
        base, keys = self.value(node.left), [self.value(key) for key in node.keys]
        if isinstance(base, TypeReference):
            return TypeReference(text_of(node, self.source))
        if not isinstance(base, PuppetType):
            raise no_access_error(base)
        type_ = type_from_access(base, keys)
        if not isinstance(type_, PuppetType):
            raise EvaluationError("Not a type")
        return type_
