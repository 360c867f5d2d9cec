"""Expressions given from outside of any manifest, as those of `puppet epp render --values`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shared.errors import ParseError, PuppetError

from . import nodes as n
from .checker import Issue as Finding
from .checker import check, refuse
from .codecache import StoredUnit
from .codegen import compile_program
from .loader import LoadedFile
from .locations import UNIT, located
from .parser import parse
from .runtime import NAMES
from .source import Source
from .values import Value

if TYPE_CHECKING:
    from .compiler import Compiler

__all__ = ["evaluate"]

_RESULT = "the value"
"""A variable that no manifest can name."""


def evaluate(compiler: Compiler, source: Source) -> Value:
    """
    The value of the last expression of `source`, evaluated at top scope; the variables it sets stay there.

    Raises:
        ParseError: it is wrong, or defines something. EvaluationError: located.
    """
    strict: Any = compiler.world.setting("strict") or "warning"
    program = parse(source)

    def warn(level: str, finding: Finding) -> None:
        compiler.log(level, finding.message, where=finding.where)

    refuse(check(program, source, strict=strict), warn)
    if program.definitions:
        where = source.locate(program.definitions[0].at)
        raise ParseError("Nothing can be defined here", where=where, hint="Give expressions and assignments only.")
    stored = StoredUnit.of(*_compiled(program, source), ())
    bodies: list[Any] = []
    names = {**NAMES, UNIT: LoadedFile(source, stored), "_main": bodies.append}
    exec(stored.code, names)  # noqa: S102 -- code that this compiler made
    try:
        for body in bodies:
            body(compiler.top)
    except PuppetError as error:
        raise located(error) from error
    return compiler.top.vars.pop(_RESULT, None)


def _compiled(program: n.Program, source: Source) -> tuple[Any, Any]:
    """Its code, in which the last statement's value is kept."""
    body = program.body
    statements = body.statements if isinstance(body, n.Block) else (body,)
    last = statements[-1] if statements else body
    if not isinstance(last, n.Nop):
        kept = n.Binary(last.at, last.end, "=", n.Variable(last.at, last.at, _RESULT), last)
        program = replace(program, body=n.Block(body.at, body.end, (*statements[:-1], kept)))
    unit = compile_program(program, source)
    return unit.code, unit.marks
