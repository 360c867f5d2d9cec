"""Patterns of file names as Ruby's `Dir.glob` reads them, matched through `CodeFiles`, which so records what was looked at."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from shared.errors import EvaluationError

from .code_files import CodeFiles

MAX_FOLDERS = 10_000
"""Folders whose names are read for one pattern."""

_ESCAPED = re.compile(r"\\(.)")
_WILD = re.compile(r"(?<!\\)[*?\[]")
_SPECIAL = re.compile(r"[*?\[\\]")
_BRACE = re.compile(r"\\.|([{},])", re.DOTALL)


def _alternatives(pattern: str) -> list[str]:
    """Return the patterns that the first braces of a pattern stand for; none when it has no closed ones."""
    parts: list[str] = []
    depth = first = begin = 0
    for match in _BRACE.finditer(pattern):
        if match[1] == "{":
            depth += 1
            if depth == 1:
                first, begin = match.start(), match.end()
        elif depth == 1 and match[1] is not None:
            parts.append(pattern[begin : match.start()])
            begin = match.end()
        if match[1] == "}" and depth:
            depth -= 1
            if not depth:
                return [f"{pattern[:first]}{part}{pattern[match.end() :]}" for part in parts]
    return []


class Globbing:
    """
    One search for the files and folders that a pattern matches: `*`, `**/`, `?`, `[…]`, `{…,…}` and `\\`.

    Args:
        check: Raises EvaluationError for a path that may not be read; called before it is known to exist.
    """

    def __init__(self, files: CodeFiles, check: Callable[[str], None]) -> None:
        self.files = files
        self.check = check
        self.folders = 0

    def matches(self, pattern: str) -> Iterator[str]:
        """Yield the matches of an absolute pattern, folder by folder in the order of their names."""
        alternatives = _alternatives(pattern)
        if alternatives:
            for alternative in alternatives:
                yield from self.matches(alternative)
            return
        special = _SPECIAL.search(pattern)
        if special is None:
            self.check(pattern)
            if self.files.is_folder(pattern) if pattern.endswith("/") else self.files.exists(pattern):
                yield pattern
            return
        folder = pattern[: special.start()].rpartition("/")[0]
        *parts, last = pattern.removeprefix(f"{folder}/").split("/")
        found = self._below(folder, [*filter(None, parts), last])
        yield from sorted(dict.fromkeys(found), key=lambda path: path.split("/"))

    def _below(self, folder: str, parts: Sequence[str]) -> Iterator[str]:
        part, rest = parts[0], parts[1:]
        if part == "**" and rest:
            yield from self._below(folder, rest)
            for name in self._names(folder):
                path = f"{folder}/{name}"
                if not name.startswith(".") and self.files.is_folder(path) and not Path(self.files.actual(path)).is_symlink():
                    yield from self._below(path, parts)
        elif _WILD.search(part):
            wanted = _ESCAPED.sub(lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], part).replace("[^", "[!")
            for name in self._names(folder):
                if fnmatch.fnmatchcase(name, wanted) and (part.startswith(".") or not name.startswith(".")):
                    yield from self._at(f"{folder}/{name}", rest)
        else:
            name = _ESCAPED.sub(lambda match: match[1], part)
            yield from self._at(f"{folder}/{name}", rest)

    def _at(self, path: str, rest: Sequence[str]) -> Iterator[str]:
        self.check(path)
        if rest and (rest[0] or len(rest) > 1):
            yield from self._below(path, rest)
        elif self.files.is_folder(path) if rest else self.files.exists(path):
            yield f"{path}/" if rest else path  # a slash at the end asks for folders

    def _names(self, folder: str) -> Sequence[str]:
        self.check(folder or "/")
        self.folders += 1
        if self.folders > MAX_FOLDERS:
            raise EvaluationError(f"A pattern may look into {MAX_FOLDERS} folders at most", hint="Name the folders in it.")
        return self.files.names(folder or "/")
