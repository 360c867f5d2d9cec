"""
The unit of a file: its definitions, with code that is written when it is first needed.

A catalog needs the code of only a few definitions: of one of a site's node blocks, for instance. Therefore a file's headers are made when
it is read, and the code of each definition when that is first evaluated. Both are cached by the content of the file (`codecache`).
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, Literal

from ..syntax.checker.diagnostics import Severity
from ..syntax.nodes import Program
from ..syntax.parser import parse
from ..syntax.source import Source
from . import DefinitionHeader, Marks, ParameterHeader, body_code, headers, parameters_code
from .typesets import with_members

StoredWarning = tuple[Severity, str, int | None, int | None, bool]
"""Severity, message, line, column, and whether it is the lexer's."""

Part = Literal["body", "parameters"]
_WRITTEN_BY: dict[Part, Callable[..., CodeType]] = {"body": body_code, "parameters": parameters_code}


@dataclass(slots=True)
class Unit:
    """
    One file as the compiler caches it.

    Attributes:
        parts: the code of the definitions that were used so far, by the header's index.
        program: the tree that more code can be written from; when it is None the text is parsed again.
    """

    headers: list[DefinitionHeader]
    warnings: tuple[StoredWarning, ...] = ()
    epp: bool = False
    program: Program | None = None
    parts: dict[tuple[int, Part], CodeType] = field(default_factory=dict)

    @classmethod
    def read(cls, program: Program, source: Source, *, epp: bool = False, warnings: Iterable[StoredWarning] = ()) -> Unit:
        """
        Return the unit of a file that was parsed and checked.

        Raises:
            Unsupported: it defines something that cannot be compiled, with its place.
        """
        program = with_members(program)
        return cls(headers(program, source), tuple(warnings), epp, program)

    def code(self, index: int, part: Part, source: Source) -> CodeType:
        """
        Return the code of a part, for the file that `source` names.

        Raises:
            Unsupported: it has a construct that cannot be compiled, with its place.
        """
        code = self.parts.get((index, part))
        if code is None:
            code = self.parts[index, part] = _WRITTEN_BY[part](self._tree(source), source, index)
        name = source.file or "(code)"
        # Two files with the same content share one unit, but error places need each file's own name.
        return code if code.co_filename == name else with_filename(code, name)

    def marks(self, source: Source) -> Marks:
        """Return the data for error messages at each place in the existing code; they are determined by writing the code again."""
        marks: Marks = {}
        program = self._tree(source)
        # Marks are not stored with the code: only errors need them, and they would double its size.
        for index, part in self.parts:
            _WRITTEN_BY[part](program, source, index, marks=marks)
        return marks

    def _tree(self, source: Source) -> Program:
        return self.program or with_members(parse(source, epp=self.epp))

    def pack(self) -> bytes:
        """Return the unit without its tree as bytes for the disk."""
        # marshal and not pickle: it is the only format for code objects, and it loads no classes.
        return marshal.dumps(([_plain(header) for header in self.headers], self.warnings, self.epp, self.parts))

    @classmethod
    def unpack(cls, data: bytes) -> Unit:
        """
        Return the unit that `pack` wrote. The code in it will be run, so the data must come from a trusted file.

        Raises:
            ValueError, EOFError, TypeError: it is not a unit.
        """
        plain, warnings, epp, parts = marshal.loads(data)  # noqa: S302 -- see above
        return cls([_header(header) for header in plain], warnings, epp, None, parts)


def _plain(header: DefinitionHeader) -> tuple[object, ...]:
    """Return a header without the names of its fields, which `marshal` does not know."""
    *rest, parameters = header
    return (*rest, None if parameters is None else tuple([tuple(parameter) for parameter in parameters]))


def _header(plain: tuple[Any, ...]) -> DefinitionHeader:
    header = DefinitionHeader._make(plain)
    if header.parameters is None:
        return header
    return header._replace(parameters=tuple([ParameterHeader(*parameter) for parameter in header.parameters]))


def with_filename(code: CodeType, filename: str) -> CodeType:
    """Return the same code with another file name."""
    constants = tuple([with_filename(constant, filename) if isinstance(constant, CodeType) else constant for constant in code.co_consts])
    return code.replace(co_filename=filename, co_consts=constants)
