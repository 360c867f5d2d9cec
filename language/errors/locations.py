"""
Finds the place in a manifest where an exception was raised.

Places cost nothing as long as no error occurs: every instruction of generated code has the manifest's line and column (`co_positions`).
The deepest frame of the traceback that belongs to a manifest has the place of the error. The `marks` of its file, which are computed
when the first error needs them, map the place to the construct's label and the places of its operands.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from types import CodeType, FrameType, TracebackType
from typing import Protocol, TypeAlias

from shared.errors import CompileError, EvaluationError, Location, PuppetError

from .control import Jump
from .issues import BadOperand, LanguageError, OperandError

UNIT = "__manifest__"
"""The global of generated code that holds its MarkedFile."""

Position: TypeAlias = tuple[int, int, int, int]
"""The beginning and end of an instruction's source: line and column, line and column; Python counts columns in octets of UTF-8."""

Mark: TypeAlias = tuple[str, int, int, dict[str, tuple[int, int]]]
"""The label of a construct, its line and column, and line and column of each operand by the operand's name."""


class SourceText(Protocol):
    """The text of a manifest; `starts` are the offsets of its lines."""

    @property
    def file(self) -> str | None: ...
    @property
    def text(self) -> str: ...
    @property
    def starts(self) -> Sequence[int]: ...


class MarkedFile(Protocol):
    """The data from which the place of an error is computed: a manifest, with the mark of each position of its instructions."""

    @property
    def source(self) -> SourceText: ...
    def marks(self) -> Mapping[Position, Mark]: ...


FINAL = Location(None)
"""The `where` of an error whose message is complete: it names no place, and none is added."""


def locate_error(error: PuppetError) -> PuppetError:
    """
    Return `error` with its place and in the reference's words; the same error when it has a place already.

    Source: language reference 15.
    """
    if error.where is not None:
        return error
    origin = _deepest(error.__traceback__)
    if origin is None:
        error.where = FINAL
        return error
    unit, position = origin
    label, line, column, operands = _marked(unit, position)
    message = error.message
    if isinstance(error, LanguageError | BadOperand):
        line, column = operands.get(str(error.operand), (line, column))
        message = f"Evaluation Error: {message}"
    elif isinstance(error, OperandError):
        line, column = operands.get(error.operand, (line, column))
        message = f"Evaluation Error: Error while evaluating {error.label}, {message}"
    elif label:
        message = f"Evaluation Error: Error while evaluating {label}, {message}"
    else:
        message = f"Evaluation Error: {message}"
    located_error = error if isinstance(error, CompileError) else EvaluationError(error.message, hint=error.hint)
    located_error.message = message
    located_error.args = (message,)
    located_error.where = Location(unit.source.file, line, column)
    return located_error


def stray_jump_error(jump: Jump) -> PuppetError:
    """Return the error for a jump that nothing caught. It names the line only, as the reference does."""
    origin = _deepest(jump.__traceback__)
    error = jump.stray()
    error.where = Location(origin[0].source.file, origin[1][0]) if origin is not None else FINAL
    return error


def place_of(error: BaseException) -> Location | None:
    """Return the place in a manifest where an exception was raised; None when no manifest's code is in its traceback."""
    origin = _deepest(error.__traceback__)
    if origin is None:
        return None
    _, line, column, _ = _marked(*origin)
    return Location(origin[0].source.file, line, column)


def current_place(operand: int | None = None) -> Location | None:
    """Return the place in a manifest that is being evaluated, or that of one of its operands; None outside of manifests."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        unit: MarkedFile | None = frame.f_globals.get(UNIT)
        if unit is not None:
            position = _position(frame.f_code, frame.f_lasti)
            _, line, column, operands = _marked(unit, position)
            line, column = operands.get(str(operand), (line, column))
            return Location(unit.source.file, line, column)
        frame = frame.f_back
    return None


def current_line() -> Location | None:
    """Return the file and the line that are being evaluated, sooner than `current_place` could; None outside of manifests."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        unit: MarkedFile | None = frame.f_globals.get(UNIT)
        if unit is not None:
            return Location(unit.source.file, frame.f_lineno)
        frame = frame.f_back
    return None


def _deepest(traceback: TracebackType | None) -> tuple[MarkedFile, Position] | None:
    deepest: tuple[MarkedFile, CodeType, int] | None = None
    while traceback is not None:
        unit: MarkedFile | None = traceback.tb_frame.f_globals.get(UNIT)
        if unit is not None:
            deepest = (unit, traceback.tb_frame.f_code, traceback.tb_lasti)
        traceback = traceback.tb_next
    if deepest is None:
        return None
    unit, code, instruction = deepest
    return unit, _position(code, instruction)


def _position(code: CodeType, instruction: int) -> Position:
    # Python has no way to ask for the position of one instruction; islice at least counts them in C.
    line, end_line, column, end_column = next(islice(code.co_positions(), instruction // 2, None), (code.co_firstlineno,) * 2 + (0, 0))
    return line or 0, column or 0, end_line or 0, end_column or 0


def _marked(unit: MarkedFile, position: Position) -> Mark:
    try:
        mark = unit.marks().get(position)
    except RecursionError:  # the stack is too full to read the file again; the place that Python has must suffice
        mark = None
    if mark is not None:
        return mark
    return "", position[0], _column(unit, *position[:2]), {}


def _column(unit: MarkedFile, line: int, octets: int) -> int:
    """Return the column in characters, from 1, of a place that Python counts in octets of UTF-8."""
    source = unit.source
    if source.text.isascii() or not 0 < line <= len(source.starts):
        return octets + 1
    start = source.starts[line - 1]
    before = source.text[start : start + octets].encode("utf-8", "surrogatepass")[:octets]
    return len(before.decode("utf-8", "replace")) + 1
