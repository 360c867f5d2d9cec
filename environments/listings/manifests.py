"""Manifests and templates on disk, the errors that can be found in them without evaluation, and the text of an expression."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from language.loading.loaded_files import judge_metaparameter
from language.syntax import nodes as n
from language.syntax.checker import Diagnostic, check
from language.syntax.checker.report import CHILDREN
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import Location, ParseError, PuppetError


def problems(source: Source, strict: str, *, epp: bool = False) -> list[Diagnostic]:
    """Return all errors and warnings about a text."""
    try:
        program = parse(source, epp=epp)
        found = check(program, source, strict=strict)  # type: ignore[arg-type]
    except ParseError as err:
        return [Diagnostic("error", err.message, err.where or Location(source.file), err.hint)]
    is_wrong = any(diagnostic.severity == "error" for diagnostic in found)
    return found if is_wrong else [*found, *_metaparameters(program, source)]


def _metaparameters(program: n.Program, source: Source) -> Iterator[Diagnostic]:
    """Yield the errors of parameters with the names of metaparameters: those of classes, then those of defined types."""
    for kind in (n.ClassDefinition, n.DefineDefinition):
        for node in program.definitions:
            if isinstance(node, kind):
                for parameter in node.parameters:
                    severity, message = judge_metaparameter(node.name, parameter.name, parameter.default is not None)
                    if message:
                        yield Diagnostic(severity, message, source.locate(parameter.at))


def source_of(file: Path) -> Source:
    """Return a file's text; raise PuppetError when it cannot be read."""
    try:
        return Source(file.read_text("utf-8"), str(file.absolute()))
    except (OSError, UnicodeDecodeError) as err:
        raise PuppetError(f"Could not read {file}: {err}") from err


def manifests_below(folder: Path) -> Iterator[Path]:
    """Yield all manifests below a folder. Symbolic links are followed, as to modules elsewhere, but no folder is visited twice."""
    seen: set[tuple[int, int]] = set()
    for folder_path, folders, names in os.walk(folder, followlinks=True):
        status = os.stat(folder_path)  # noqa: PTH116 -- a text, as os.walk yields it
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders.sort()
        yield from (Path(folder_path, name) for name in names if name.endswith(".pp"))


def text_of(node: n.SyntaxNode, source: Source) -> str:
    """Return the text of an expression. A binary expression begins at its operator, so this searches for the leftmost part."""
    start, end = node.at, node.end
    pending = [node]
    while pending:
        part = pending.pop()
        start, end = min(start, part.at), max(end, part.end)
        for field in CHILDREN[type(part)]:
            value = getattr(part, field)
            pending += value if isinstance(value, tuple) else [value] if value is not None else []
    return source.text[start:end]
