"""From a manifest's syntax tree to Python code objects, with the manifest's own lines and columns."""

from __future__ import annotations

import ast
from types import CodeType

from ..syntax import nodes as n
from ..syntax.source import Source
from . import calls, control, declarations, definitions, expressions, texts
from .headers import CONSTANT, NONE, READ, DefinitionHeader, ParameterHeader, headers
from .writer import Effect, Marks, Rule, Writer

__all__ = [
    "CONSTANT",
    "NONE",
    "READ",
    "DefinitionHeader",
    "Marks",
    "ParameterHeader",
    "body_code",
    "headers",
    "parameters_code",
]

CODE_VERSION = 11
"""Raise this whenever the same manifest gives other code or headers; the code that older versions cached on disk is then not used."""

_MODULES = (expressions, texts, control, calls, declarations, definitions)
_RULES: dict[type[n.SyntaxNode], Rule] = {node: rule for module in _MODULES for node, rule in module.RULES.items()}
_EFFECTS: dict[type[n.SyntaxNode], Effect] = {
    node: effect for module in _MODULES for node, effect in getattr(module, "EFFECTS", {}).items()
}


def body_code(program: n.Program, source: Source, index: int, *, marks: Marks | None = None) -> CodeType:
    """
    Return the code of the definition that the header of that index describes: it sets `_body`, of functions also `_own_signature`.

    `marks`, unless it is None, is filled with the data for error messages; it can also be filled later by writing the code again.

    Raises:
        Unsupported: a construct that cannot be compiled, with its place.
    """
    writer = Writer(source, _RULES, _EFFECTS, marks)
    definitions.body(writer, _node(program, index))
    return _compile(writer)


def parameters_code(program: n.Program, source: Source, index: int, *, marks: Marks | None = None) -> CodeType:
    """Return the code for types and defaults of the parameters of a class, define or template: it sets `_types` and `_defaults`."""
    writer = Writer(source, _RULES, _EFFECTS, marks)
    definitions.parameters(writer, _node(program, index))
    return _compile(writer)


def _node(program: n.Program, index: int) -> n.SyntaxNode:
    return program.definitions[index] if index < len(program.definitions) else program.body


def _compile(writer: Writer) -> CodeType:
    tree = ast.Module(writer.module, [])
    return compile(tree, writer.source.file or "(code)", "exec", dont_inherit=True, optimize=0)
