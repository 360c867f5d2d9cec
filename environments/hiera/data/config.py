"""A hiera.yaml as it was read: its entries, and where its lines are. Source: language reference 18.2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.errors import Location

from ..errors import DataError
from ..merging import DEFAULT, Merge


@dataclass(frozen=True)
class HierarchyEntry:
    """
    One entry of a hierarchy.

    Attributes:
        kind: the kind of the function: data_hash, lookup_key, data_dig, hiera3_backend or v4_data_hash.
        datadir: the absolute folder of the paths; may contain expressions.
        location: the key that gives the locations (path, globs, mapped_paths, …); '' for none.
        patterns: the value of that key.
        mapped: of mapped_paths the variable, and the name that is bound to each of its values.
        extension: is appended to paths that lack it, with its dot.
        version_3: a backend of version 3, whose paths may come from the caller too.
    """

    name: str
    kind: str
    function: str
    datadir: str = ""
    location: str = ""
    patterns: tuple[str, ...] = ()
    mapped: tuple[str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    extension: str = ""
    version_3: bool = False


@dataclass(frozen=True)
class HierarchyConfig:
    """
    The content of a hiera.yaml.

    Attributes:
        path: None when there is no such file and this is the default.
        merge: the strategy that version 3 has for hashes.
        text: the whole file, in which the lines of errors are found.
    """

    path: str | None
    version: int
    entries: tuple[HierarchyEntry, ...]
    default_entries: tuple[HierarchyEntry, ...] | None = None
    merge: Merge = DEFAULT
    text: str = ""

    @property
    def name(self) -> str:
        return f"hiera configuration version {self.version}"

    def line_of(self, pattern: str) -> int | None:
        return line_of(self.text, pattern)

    def failure(self, message: str, line: int | None = None) -> DataError:
        """Return an error located in this file."""
        return DataError(message, where=Location(self.path, line), final=True)


def line_of(text: str, pattern: str, start: int = 1) -> int | None:
    """Return the number of the first line from `start` on that matches a regular expression outside of comments; None when no line does."""
    regexp = re.compile(pattern)
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if number >= start and regexp.search(_without_comment(line)):
            return number
    return None


def _without_comment(line: str) -> str:
    quote = ""
    for offset, char in enumerate(line):
        if char in "\"'":
            quote = "" if quote == char else quote or char
        elif char == "#":  # in quotes as well, as the reference does
            return line[:offset]
    return line
