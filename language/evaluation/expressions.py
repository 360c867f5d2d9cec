"""Expressions given from outside of any manifest, as those of `puppet epp render --values`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from shared.errors import ParseError, PuppetError

from ..codegen.units import Unit
from ..errors.locations import locate_error
from ..loading.loaded_files import LoadedFile
from ..syntax import nodes as n
from ..syntax.checker import Diagnostic, check, log_and_refuse
from ..syntax.parser import parse
from ..syntax.source import Source
from ..values.core import Value
from .compilation import Compilation
from .runtime import NAMES

_RESULT = "the value"
"""A variable that no manifest can name."""


def evaluate(compilation: Compilation, source: Source) -> Value:
    """
    Return the value of the last expression of `source`, evaluated at top scope; the variables it sets stay there.

    Raises:
        ParseError: it is wrong, or defines something. EvaluationError: located.
    """
    strict: Any = compilation.host.setting("strict") or "warning"
    program = parse(source)

    def warn(level: str, diagnostic: Diagnostic) -> None:
        compilation.log.add(level, diagnostic.message, where=diagnostic.where)

    log_and_refuse(check(program, source, strict=strict), warn)
    if program.definitions:
        where = source.locate(program.definitions[0].at)
        raise ParseError("Nothing can be defined here", where=where, hint="Give expressions and assignments only.")
    unit = Unit.read(_assign_last_value(program), source)
    file = LoadedFile(source, unit, NAMES, lambda changed: None)
    try:
        for index in range(len(unit.headers)):
            file.run(index, "body")["_body"](compilation.top)
    except PuppetError as error:
        raise locate_error(error) from error
    return compilation.top.vars.pop(_RESULT, None)


def _assign_last_value(program: n.Program) -> n.Program:
    """Return the program that stores the last statement's value in a variable."""
    body = program.body
    statements = body.statements if isinstance(body, n.BlockExpression) else (body,)
    last = statements[-1] if statements else body
    if isinstance(last, n.Nop):
        return program
    assignment = n.BinaryOperation(last.at, last.end, "=", n.VariableExpression(last.at, last.at, _RESULT), last)
    return replace(program, body=n.BlockExpression(body.at, body.end, (*statements[:-1], assignment)))
