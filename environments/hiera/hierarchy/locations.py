"""The locations of a level: its paths, globs and URIs with a node's variables filled in."""

from __future__ import annotations

import itertools
import posixpath
from dataclasses import dataclass

from language.values.core import Value
from shared.errors import BadData

from ...files.code_files import CodeFiles
from ..data.config import HierarchyEntry
from ..errors import DataError
from ..interpolation import read_variable
from ..invocation import Invocation

MAX_NAME = 255
"""Bytes of a file's name."""
MAX_PATH = 4096


@dataclass(frozen=True, slots=True)
class DataLocation:
    """
    A file or URI that may have data.

    Attributes:
        original: as hiera.yaml has it.
        text: the path or URI.
        kind: path or uri.
    """

    original: str
    text: str
    exists: bool
    kind: str = "path"


def locations_of(entry: HierarchyEntry, invocation: Invocation, files: CodeFiles) -> list[DataLocation] | None:
    """Return the locations of a level by descending priority; None when the entry names no location at all."""
    if not entry.location:
        return None
    if entry.location in ("uri", "uris"):
        return [DataLocation(pattern, fill_pattern(pattern, invocation), True, "uri") for pattern in entry.patterns]
    datadir = fill_pattern(entry.datadir, invocation)
    if escapes(entry.datadir if entry.datadir.startswith("/") else f"/{entry.datadir}", datadir):
        return []
    if entry.location in ("glob", "globs"):
        return [
            location
            for pattern in entry.patterns
            for location in _glob_locations(datadir, pattern, fill_pattern(pattern, invocation), files)
        ]
    if entry.mapped is not None:
        return _mapped_locations(entry, datadir, invocation, files)
    return [_path_location(datadir, pattern, fill_pattern(pattern, invocation), entry.extension, files) for pattern in entry.patterns]


def extra_locations(entry: HierarchyEntry, paths: list[str], invocation: Invocation, files: CodeFiles) -> list[DataLocation]:
    """Return the locations of the levels that the caller of an old function puts before all others."""
    datadir = fill_pattern(entry.datadir, invocation)
    return [_path_location(datadir, path, fill_pattern(path, invocation), entry.extension, files) for path in paths]


def fill_pattern(pattern: str, invocation: Invocation) -> str:
    """Return a pattern with its variables replaced; DataError when it has methods."""
    return str(invocation.interpolate(pattern, methods=False)) if "%{" in pattern else pattern


def _path_location(datadir: str, pattern: str, path: str, extension: str, files: CodeFiles) -> DataLocation:
    if extension and not path.endswith(extension):
        path += extension
    if escapes(pattern, path):
        return DataLocation(pattern, f"{datadir}/{pattern}", False)
    full = posixpath.normpath(path if path.startswith("/") else f"{datadir}/{path}")
    return DataLocation(pattern, full, files.exists(full))


def escapes(pattern: str, path: str) -> bool:
    """
    Return whether the variables in a pattern make it a path that may not be read: in another folder, or one that no file can have.

    What a node says about itself must not lead out of the data. A `..` or an absolute path in hiera.yaml itself is allowed.
    """
    parts = path.split("/")
    if "\0" in path or len(path) > MAX_PATH or any(len(part.encode("utf-8", "surrogatepass")) > MAX_NAME for part in parts):
        return True
    # Only what a variable has added is suspicious; the administrator's own pattern may go anywhere.
    return parts.count("..") > pattern.split("/").count("..") or (path.startswith("/") and not pattern.startswith("/"))


def _glob_locations(datadir: str, declared: str, pattern: str, files: CodeFiles) -> list[DataLocation]:
    if escapes(declared, pattern):
        return []
    original = f"{datadir}/{pattern}"
    try:
        paths = [path for alternative in _alternatives(pattern) for path in files.matching(datadir, alternative)]
    except BadData as error:
        raise DataError(error.message, hint=error.hint) from error
    return [DataLocation(original, path, True) for path in paths]


def _mapped_locations(entry: HierarchyEntry, datadir: str, invocation: Invocation, files: CodeFiles) -> list[DataLocation]:
    assert entry.mapped is not None
    source, bound = entry.mapped
    value = read_variable(invocation, source, "mapped_path[0]")
    if value is None or value == "" or value == [] or value == {}:
        return []
    values: list[Value] = (
        [[key, item] for key, item in value.items()] if isinstance(value, dict) else value if isinstance(value, list) else [value]
    )
    template = entry.patterns[0]
    locations = []
    for item in values:
        invocation.bound[bound] = item
        try:
            path = fill_pattern(template, invocation)
        finally:
            del invocation.bound[bound]
        locations.append(_path_location(datadir, template, path, "", files))
    return locations


def _alternatives(pattern: str) -> list[str]:
    """Return the expanded patterns of a glob pattern with `{a,b}`; raise BadData when there are more than 1000."""
    start = pattern.find("{")
    depth = 0
    commas = [start]
    for offset in range(start, len(pattern)) if start >= 0 else ():
        depth += {"{": 1, "}": -1}.get(pattern[offset], 0)
        if pattern[offset] == "," and depth == 1:
            commas.append(offset)
        if depth == 0:
            bounds = [*commas, offset]
            parts = [pattern[left + 1 : right] for left, right in itertools.pairwise(bounds)]
            patterns = [inner for part in parts for inner in _alternatives(pattern[:start] + part + pattern[offset + 1 :])]
            # Nested braces multiply: a short pattern can stand for millions.
            if len(patterns) > 1000:
                raise BadData(f"The pattern {pattern[:100]!r} has more than 1000 alternatives")
            return patterns
    return [pattern]
