"""From a manifest's syntax tree to a Python code object, with the manifest's own lines and columns."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType

from .. import nodes as n
from ..source import Source
from . import calls, control, declarations, definitions, expressions
from .writer import Effect, Place, Rule, Writer

__all__ = ["CompiledUnit", "Marks", "compile_program"]

CODE_VERSION = 1
"""To be raised whenever the same manifest would give other code: what is cached on disk is then not used any more."""

Marks = dict[Place, tuple[str, int, int, dict[str, tuple[int, int]]]]
"""What an error needs to know of a place: the construct's label, its line and column in characters, those of its operands."""


@dataclass(frozen=True, slots=True)
class CompiledUnit:
    """One file, compiled. Running `code` with a namespace of the runtime makes its definitions known; only errors read `marks`."""

    code: CodeType
    marks: Marks


def compile_program(program: n.Program, source: Source) -> CompiledUnit:
    """
    The code of a whole file.

    Raises:
        Unsupported: a construct that cannot be compiled, with its place.
    """
    rules: dict[type[n.Node], Rule] = {}
    effects: dict[type[n.Node], Effect] = {}
    for module in (expressions, control, calls, declarations, definitions):
        rules.update(module.RULES)
        effects.update(getattr(module, "EFFECTS", {}))
    writer = Writer(source, rules, effects)
    for definition in program.definitions:
        definitions.register(writer, definition)
    if isinstance(program.body, n.Epp):
        definitions.epp(writer, program.body)
    elif _has_code(program.body):
        definitions.main(writer, program.body)
    tree = ast.Module(writer.module, [])
    code = compile(tree, source.file or "(code)", "exec", dont_inherit=True, optimize=0)
    return CompiledUnit(code, writer.marks)


def _has_code(body: n.Node) -> bool:
    if isinstance(body, n.Block):
        return any(_has_code(statement) for statement in body.statements)
    return not isinstance(body, n.Nop | n.ClassDefinition | n.DefineDefinition | n.NodeDefinition | n.FunctionDefinition | n.TypeAlias)
