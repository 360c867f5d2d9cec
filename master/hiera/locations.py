"""Where the data of a level is: its paths, globs and URIs with the variables of a node put in."""

from __future__ import annotations

import itertools
import posixpath
from dataclasses import dataclass

from shared.errors import BadData

from ..compiler.values.core import Value
from ..files.code_files import CodeFiles
from .config import Entry
from .failures import DataError
from .interpolation import interpolated, variable
from .invocations import Invocation

__all__ = ["Location", "extra_locations", "locations_of"]

MAX_NAME = 255
"""Octets of a file's name."""
MAX_PATH = 4096


@dataclass(frozen=True, slots=True)
class Location:
    """`text` is the path or URI, `original` what hiera.yaml says."""

    original: str
    text: str
    exists: bool
    kind: str = "path"


def locations_of(entry: Entry, invocation: Invocation, files: CodeFiles) -> list[Location] | None:
    """The locations of a level, the one that counts most first; None when it has none and wants none."""
    if not entry.location:
        return None
    if entry.location in ("uri", "uris"):
        return [Location(pattern, filled(pattern, invocation), True, "uri") for pattern in entry.patterns]
    datadir = filled(entry.datadir, invocation)
    if leads_out(entry.datadir if entry.datadir.startswith("/") else f"/{entry.datadir}", datadir):
        return []
    if entry.location in ("glob", "globs"):
        return [found for pattern in entry.patterns for found in _globbed(datadir, pattern, filled(pattern, invocation), files)]
    if entry.mapped is not None:
        return _mapped(entry, datadir, invocation, files)
    return [_path(datadir, pattern, filled(pattern, invocation), entry.extension, files) for pattern in entry.patterns]


def extra_locations(entry: Entry, paths: list[str], invocation: Invocation, files: CodeFiles) -> list[Location]:
    """The levels that the caller of an old function puts in front."""
    datadir = filled(entry.datadir, invocation)
    return [_path(datadir, path, filled(path, invocation), entry.extension, files) for path in paths]


def filled(pattern: str, invocation: Invocation) -> str:
    """A pattern with its variables; methods are not allowed in it."""
    return str(interpolated(invocation, pattern, methods=False)) if "%{" in pattern else pattern


def _path(datadir: str, pattern: str, path: str, extension: str, files: CodeFiles) -> Location:
    if extension and not path.endswith(extension):
        path += extension
    if leads_out(pattern, path):
        return Location(pattern, f"{datadir}/{pattern}", False)
    full = posixpath.normpath(path if path.startswith("/") else f"{datadir}/{path}")
    return Location(pattern, full, files.exists(full) and not files.is_folder(full))


def leads_out(pattern: str, path: str) -> bool:
    """
    Whether the variables in a pattern make it a path that may not be read: of another folder, or of no file there can be.

    What a node says of itself must not lead out of the data. A `..` or an absolute path in hiera.yaml is its author's own business.
    """
    parts = path.split("/")
    if "\0" in path or len(path) > MAX_PATH or any(len(part.encode("utf-8", "surrogatepass")) > MAX_NAME for part in parts):
        return True
    return parts.count("..") > pattern.split("/").count("..") or (path.startswith("/") and not pattern.startswith("/"))


def _globbed(datadir: str, declared: str, pattern: str, files: CodeFiles) -> list[Location]:
    if leads_out(declared, pattern):
        return []
    original = f"{datadir}/{pattern}"
    try:
        found = [path for each in _alternatives(pattern) for path in files.matching(datadir, each)]
    except BadData as error:
        raise DataError(error.message, hint=error.hint) from error
    return [Location(original, path, True) for path in found]


def _mapped(entry: Entry, datadir: str, invocation: Invocation, files: CodeFiles) -> list[Location]:
    assert entry.mapped is not None
    source, bound = entry.mapped
    value = variable(invocation, source, "mapped_path[0]")
    if value is None or value == "" or value == [] or value == {}:
        return []
    given: list[Value] = (
        [[key, item] for key, item in value.items()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    )
    template = entry.patterns[0]
    found = []
    for each in given:
        invocation.bound[bound] = each
        try:
            path = filled(template, invocation)
        finally:
            del invocation.bound[bound]
        found.append(_path(datadir, template, path, "", files))
    return found


def _alternatives(pattern: str) -> list[str]:
    """`{a,b}` of a glob pattern written out, outermost first."""
    start = pattern.find("{")
    depth = 0
    commas = [start]
    for at in range(start, len(pattern)) if start >= 0 else ():
        depth += {"{": 1, "}": -1}.get(pattern[at], 0)
        if pattern[at] == "," and depth == 1:
            commas.append(at)
        if depth == 0:
            bounds = [*commas, at]
            parts = [pattern[one + 1 : two] for one, two in itertools.pairwise(bounds)]
            found = [each for part in parts for each in _alternatives(pattern[:start] + part + pattern[at + 1 :])]
            if len(found) > 1000:
                raise BadData(f"The pattern {pattern[:100]!r} has more than 1000 alternatives")
            return found
    return [pattern]
