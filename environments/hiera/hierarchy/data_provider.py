"""The hierarchy of one hiera.yaml, resolved for the variables of a node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from language.values.core import MISSING, MaybeValue, Value
from shared.errors import EvaluationError

from ..data.config import HierarchyConfig, HierarchyEntry
from ..data.files import DataFile
from ..data.sources import DataSources
from ..invocation import Invocation
from ..keys import LookupKey
from ..merging import Merge
from .levels import HierarchyLevel
from .locations import DataLocation, locations_of

_UNDEFINED = re.compile(r"Undefined variable '([^']+)'")


class _LazyFile:
    """One data file of a layer, read when it is first needed."""

    __slots__ = ("file", "level", "location")

    def __init__(self, level: HierarchyLevel, location: DataLocation) -> None:
        self.level = level
        self.location = location
        self.file: DataFile | None = None

    def value(self, invocation: Invocation, root: str) -> MaybeValue:
        """Return the value of a top-level key; MISSING when the file does not have it."""
        file = self.file
        if file is None:
            file = self.file = self.level.hash_at(invocation, self.location)
        if root not in file.data:
            return MISSING
        value, has_expressions = file.value(root, self._label)
        return invocation.interpolate(value) if has_expressions else value

    def _label(self) -> str:
        return self.level.label_at(self.location)


class DataProvider:
    """
    The levels of one configuration, with a node's variables filled in; they are resolved again when these variables change.

    Attributes:
        layer: Global, Environment or Module.
    """

    def __init__(self, layer: str, config: HierarchyConfig, sources: DataSources, module: str | None = None) -> None:
        self.layer = layer
        self.config = config
        self.sources = sources
        self.module = module
        self._levels: list[HierarchyLevel] | None = None
        self._default_levels: list[HierarchyLevel] = []
        self._reads: list[tuple[str, Value]] = []
        self._files: list[list[_LazyFile]] | None = None

    @property
    def title(self) -> str:
        module = f'"{self.module}" ' if self.module is not None else ""
        return f"{self.layer} {module}Data Provider ({self.config.name})"

    # --- data files alone, the common case ---

    def has_only_files(self, invocation: Invocation) -> bool:
        """Return whether all levels are data files, which `find_in_files` can search."""
        self._resolve(invocation)
        return self._files is not None

    def find_in_files(self, invocation: Invocation, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value of a key; MISSING when there is none. It is the one that its levels would give, but faster."""
        return self._find_first(invocation, key) if merge.first else self._find_merged(invocation, key, merge)

    def _find_first(self, invocation: Invocation, key: LookupKey) -> MaybeValue:
        root = key.root
        for files in self._files or ():
            for file in files:
                value = file.value(invocation, root)
                if value is not MISSING:
                    return value
        return MISSING

    def _find_merged(self, invocation: Invocation, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the merged value: the values of the locations of each level first, then those of the levels."""
        root = key.root
        result: MaybeValue = MISSING
        value_of_level: MaybeValue = MISSING
        files_by_level = self._files or []
        assert self._levels is not None
        for level, files in zip(self._levels, files_by_level, strict=True):
            value_of_level = MISSING
            for file in files:
                value = file.value(invocation, root)
                if value is not MISSING:
                    value_of_level = merge.prepare(value) if value_of_level is MISSING else merge.merge(value_of_level, value)
            if value_of_level is MISSING:
                continue
            if len(level.locations) == 1 and merge.strategy == "unique":
                only_value = files[0].value(invocation, root)
                value_of_level = value_of_level if only_value is MISSING else merge.single(only_value)
            result = merge.prepare(value_of_level) if result is MISSING else merge.merge(result, value_of_level)
        return merge.single(value_of_level) if value_of_level is not MISSING and len(files_by_level) == 1 else result

    # --- levels ---

    def levels(self, invocation: Invocation, *, default: bool = False) -> list[HierarchyLevel]:
        """
        Return the levels of the hierarchy, or of the default hierarchy.

        Raises:
            DataError: an expression of the configuration is wrong.
            EvaluationError: a variable is undefined, and that is an error.
        """
        levels = self._resolve(invocation)
        return self._default_levels if default else levels

    def is_outdated(self, invocation: Invocation) -> bool:
        """Return whether the levels were resolved with variables that have other values now."""
        return self._levels is not None and any(invocation.peek(name) != value for name, value in self._reads)

    def _resolve(self, invocation: Invocation) -> list[HierarchyLevel]:
        """Return the levels of the hierarchy, resolved again if they are outdated."""
        if self._levels is not None and not self.is_outdated(invocation):
            return self._levels
        inner = invocation.inner_for_paths()
        try:
            levels = self._levels_of(self.config.entries, inner)
            default_levels = self._levels_of(self.config.default_entries or (), inner)
        except EvaluationError as error:
            match = _UNDEFINED.match(error.message)
            if match is None and error.message.startswith("Interpolation using method"):
                raise self.config.failure(error.message) from error
            if match is None:
                raise
            line = self.config.line_of(rf"%\{{['\"]?{re.escape(match[1])}['\"]?}}")
            raise self.config.failure(f"Undefined variable '{match[1]}'", line) from error
        self._reads = list({name: (name, value) for name, value in inner.reads or ()}.values())
        self._files = None
        if all(level.is_file for level in levels):
            self._files = [
                [_LazyFile(level, location) for location in level.locations if location is not None and location.exists] for level in levels
            ]
        self._levels, self._default_levels = levels, default_levels
        return levels

    def _levels_of(self, entries: Sequence[HierarchyEntry], invocation: Invocation) -> list[HierarchyLevel]:
        levels = []
        for entry in entries:
            locations = locations_of(entry, invocation, self.sources.data.files)
            if self.config.path is None and locations is not None:  # the default configuration: only files that exist
                locations = [location for location in locations if location.exists]
                if not locations:
                    continue
            options: Any = invocation.interpolate(dict(entry.options), methods=False) if entry.options else {}
            levels.append(HierarchyLevel(entry, locations, options, module=self.module, config_path=self.config.path, sources=self.sources))
        return levels
