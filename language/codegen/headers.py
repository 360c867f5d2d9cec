"""
Headers describe a file before any of its code is written: which definitions it has, and their parameters.

A header is plain data, so that it can be stored on disk. It holds the type and the default of a parameter as long as these are simple,
which they nearly always are: code is written for the rest only.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from shared.errors import EvaluationError, Unsupported

from ..syntax import nodes as n
from ..syntax.source import Source
from ..types.builtin import BUILTIN_TYPES
from ..types.notation.parse import parse_type
from ..values.core import Value
from .expressions import is_constant_in_type
from .frames import walk
from .typesets import MEMBER, Member

NONE, CONSTANT, READ, CODE = range(4)
"""The kinds of defaults: there is none; a value; the name of a variable that is read; code."""


class ParameterHeader(NamedTuple):
    """
    A parameter of a class, define or template, which callers name.

    Attributes:
        type: None for Any; the text of a type that consists of built-in types only; True when code has to evaluate the type.
        kind: the kind of the default: NONE, CONSTANT, READ or CODE.
        default: of a CONSTANT the value, which is shared and never changed; of READ the name of the variable; else None.
    """

    name: str
    type: str | bool | None
    kind: int
    default: Any = None


class DefinitionHeader(NamedTuple):
    """
    A definition of a file, or its code outside of any.

    Attributes:
        kind: class, define, node, function, alias, main, epp.
        matches: a node's names; a regular expression is a tuple of its source.
        parameters: of classes, defines and templates; None: a template that takes any.
    """

    kind: str
    name: str
    line: int
    column: int
    parent: str | None = None
    matches: tuple[str | tuple[str], ...] = ()
    parameters: tuple[ParameterHeader, ...] | None = ()


def headers(program: n.Program, source: Source) -> list[DefinitionHeader]:
    """
    Return the headers of a file's definitions in the order of `program.definitions`, then one for the code outside of them, if any.

    Raises:
        Unsupported: something that cannot be compiled, with its place.
    """
    definition_headers = [_header(definition, source) for definition in program.definitions]
    body = program.body
    line, column = _line_and_column(body, source)
    if isinstance(body, n.EppExpression):
        parameters = None if body.parameters is None else _parameters(body.parameters, source)
        definition_headers.append(DefinitionHeader("epp", "", line, column, parameters=parameters))
    elif _has_code(body):
        definition_headers.append(DefinitionHeader("main", "", line, column))
    return definition_headers


def _line_and_column(node: n.SyntaxNode, source: Source) -> tuple[int, int]:
    where = source.locate(node.at)
    return where.line or 0, where.column or 0


def _has_code(body: n.SyntaxNode) -> bool:
    if isinstance(body, n.BlockExpression):
        return any(_has_code(statement) for statement in body.statements)
    return not isinstance(
        body, n.Nop | n.ClassDefinition | n.DefineDefinition | n.NodeDefinition | n.FunctionDefinition | n.TypeAliasDefinition
    )


def _header(node: n.SyntaxNode, source: Source) -> DefinitionHeader:
    line, column = _line_and_column(node, source)
    if isinstance(node, n.ClassDefinition):
        return DefinitionHeader("class", node.name, line, column, node.parent, parameters=_parameters(node.parameters, source))
    if isinstance(node, n.DefineDefinition):
        return DefinitionHeader("define", node.name, line, column, parameters=_parameters(node.parameters, source))
    if isinstance(node, n.NodeDefinition):
        return DefinitionHeader("node", "", line, column, _parent(node), tuple(_match(match) for match in node.matches))
    if isinstance(node, n.FunctionDefinition) and not isinstance(node, n.PlanDefinition):
        return DefinitionHeader("function", node.name, line, column)
    if isinstance(node, n.TypeAliasDefinition):
        return DefinitionHeader(MEMBER if isinstance(node, Member) else "alias", node.name, line, column)
    raise Unsupported(f"{type(node).__name__} cannot be compiled", where=source.locate(node.at))


def _match(match: n.SyntaxNode) -> str | tuple[str]:
    if isinstance(match, n.RegexpLiteral):
        return (match.source,)
    if isinstance(match, n.DefaultLiteral):
        return "default"
    return str(getattr(match, "value", ""))


def _parent(node: n.NodeDefinition) -> str | None:
    if isinstance(node.parent, n.StringLiteral | n.QualifiedName):
        return node.parent.value
    return "default" if isinstance(node.parent, n.DefaultLiteral) else None


# --- parameters ---------------------------------------------------------------------------------------------------


def _parameters(parameters: tuple[n.ParameterDeclaration, ...], source: Source) -> tuple[ParameterHeader, ...]:
    return tuple([ParameterHeader(p.name, _type(p.type, source), *_default(p.default)) for p in parameters])


def _default(node: n.SyntaxNode | None) -> tuple[int, Value]:
    if node is None:
        return NONE, None
    if isinstance(node, n.VariableExpression) and not node.name.isdecimal():
        return READ, node.name
    try:
        return CONSTANT, _plain_value(node)
    except _NotPlainError:
        return CODE, None


class _NotPlainError(Exception):
    pass


def _plain_value(node: n.SyntaxNode) -> Value:
    """Return the value of a constant of scalars and collections of them."""
    match node:
        case n.IntegerLiteral() | n.FloatLiteral() | n.StringLiteral() | n.BooleanLiteral() | n.QualifiedName():
            return node.value
        case n.UndefLiteral():
            return None
        case n.ArrayLiteral():
            return [_plain_value(item) for item in node.values]
        case n.HashLiteral():
            return {_key(entry.key): _plain_value(entry.value) for entry in node.entries}
    raise _NotPlainError


def _key(node: n.SyntaxNode) -> str | int:
    if isinstance(node, n.StringLiteral | n.IntegerLiteral | n.QualifiedName):
        return node.value
    raise _NotPlainError


_SIMPLE = re.compile(r"(?:[\w\s:\[\],{}=>-]|'[^'\\]*'|\"[^\"\\$]*\"|/(?:[^/\\]|\\.)*/)+", re.ASCII)
_ODD_NUMBER = re.compile(r"(?<![\w.'])0\w")
_NAMES = re.compile(r"(?:Object|TypeSet|Error|Init)\b")


def _type(node: n.SyntaxNode | None, source: Source) -> str | bool | None:
    """Return a type expression of built-in types as text that `parse_type` reads alike; True where that is not certain."""
    if node is None:
        return None
    if not is_constant_in_type(node) or any(
        isinstance(inner, n.QualifiedReference) and inner.value.removeprefix("::").lower() not in _BUILTIN
        for inner in walk(node, into_lambdas=False)
    ):
        return True
    text = source.text[node.at : node.end]
    if _SIMPLE.fullmatch(text) and not _ODD_NUMBER.search(text) and not _NAMES.search(text):
        try:
            parse_type(text)
        except EvaluationError:
            return True  # code will say so at its place
        return text
    return True


_BUILTIN = frozenset(BUILTIN_TYPES)
