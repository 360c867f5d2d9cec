"""One hiera.yaml (version 5) with its data files: the levels of an environment, or of a module."""

from __future__ import annotations

import itertools
import posixpath
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared import plainjson, plainyaml
from shared.errors import BadData, ConfigError, EvaluationError, Location, Unsupported

from ..compiler.locations import FINAL
from ..compiler.text import to_s
from ..compiler.values import Value, entries
from ..environment_files import Files
from .interpolation import Template, Variables, variable

__all__ = ["Layer"]

Warn = Callable[[str], None]
_LOCATIONS = ("path", "paths", "glob", "globs", "uri", "uris", "mapped_paths")
_BACKENDS = {"yaml_data": "yaml", "json_data": "json"}
_FUNCTIONS = ("data_hash", "lookup_key", "data_dig", "hiera3_backend")


@dataclass(frozen=True)
class Level:
    """One entry of the hierarchy; `kind` is path, glob or mapped; `mapped` the variable and the name bound to its values."""

    name: str
    datadir: Template
    backend: str
    kind: str
    patterns: tuple[Template, ...]
    mapped: tuple[str, str] | None = None


class Layer:
    """
    The data that the hiera.yaml at `path` describes. `module` is the name that all its keys have to begin with; None for an environment.

    Raises:
        ConfigError: the configuration is not valid. Unsupported: it asks for what is not there yet.
    """

    def __init__(self, path: str, config: bytes, files: Files, module: str | None = None) -> None:
        self.folder = posixpath.dirname(path)
        self.files = files
        self.module = module
        self.path = path
        self._data: dict[tuple[str, str], Mapping[str, Any]] = {}
        self._paths: dict[tuple[int, tuple[Any, ...]], list[tuple[str, str]]] = {}
        try:
            read = plainyaml.loads(config, aliases=True)
        except BadData as error:
            raise ConfigError(f"Unable to parse ({self.path}): {error.message}", where=FINAL) from error
        given: Mapping[str, Any] = read if isinstance(read, dict) else {}
        version = given.get("version")
        if version != 5:
            raise Unsupported(f"{self.path}: version {version} of hiera.yaml is not supported yet", hint="Version 5 is.")
        self.defaults: Mapping[str, Any] = given.get("defaults") or {}
        self.levels = self._levels(given.get("hierarchy"))
        self.fallback: list[Level] = []
        if given.get("default_hierarchy"):
            if module is None:
                raise self._wrong("'default_hierarchy' is only allowed in the module layer")
            self.fallback = self._levels(given["default_hierarchy"])

    # --- configuration ---

    def _levels(self, hierarchy: Any) -> list[Level]:
        if hierarchy is None:
            hierarchy = [{"name": "Common", "path": "common.yaml"}]
        try:
            found = [self._level(entry) for entry in hierarchy]
        except EvaluationError as error:
            raise self._wrong(error.message) from error
        seen: set[str] = set()
        for level in found:
            if level.name in seen:
                raise self._wrong(f"Hierarchy name '{level.name}' defined more than once.")
            seen.add(level.name)
        return found

    def _wrong(self, message: str) -> ConfigError:
        return ConfigError(message, where=Location(self.path))

    def _level(self, entry: Mapping[str, Any]) -> Level:
        name = str(entry.get("name", ""))
        functions = [key for key in _FUNCTIONS if key in entry] or [key for key in _FUNCTIONS if key in self.defaults]
        if len(functions) > 1:
            raise self._wrong(f"Only one of {_listed(_FUNCTIONS)} can be defined in hierarchy '{name}'")
        if functions and functions[0] != "data_hash":
            raise Unsupported(f"{self.path}: the level '{name}' uses {functions[0]}, which is not supported yet")
        if entry.get("options") or self.defaults.get("options"):
            raise Unsupported(f"{self.path}: options of the level '{name}' are not supported yet")
        function = entry.get("data_hash") or self.defaults.get("data_hash") or "yaml_data"
        if function not in _BACKENDS:
            raise Unsupported(f"{self.path}: the level '{name}' uses the backend {function}, which is not supported yet")
        locations = [key for key in _LOCATIONS if key in entry]
        if len(locations) > 1:
            raise self._wrong(f"Only one of {_listed(_LOCATIONS)} can be defined in hierarchy '{name}'")
        datadir = Template(str(entry.get("datadir") or self.defaults.get("datadir") or "data"))
        kind = locations[0] if locations else ""
        if kind in ("uri", "uris"):
            raise Unsupported(f"{self.path}: the level '{name}' uses {kind}, which is not supported yet")
        if kind == "mapped_paths":
            given = entry[kind]
            if not isinstance(given, list) or len(given) != 3:
                raise self._wrong(f"mapped_paths of the level '{name}' has to have three entries")
            variable_, bound, template = map(str, given)
            return Level(name, datadir, _BACKENDS[function], "mapped", (Template(template),), (variable_, bound))
        given = entry.get(kind) if kind else []
        patterns = given if isinstance(given, list) else [given]
        return Level(name, datadir, _BACKENDS[function], kind.rstrip("s"), tuple(Template(str(each)) for each in patterns))

    # --- data ---

    def values(self, key: str, variables: Variables, warn: Warn, *, fallback: bool = False) -> Iterator[Value]:
        """What the files say of a top-level key, raw, the one that counts most first."""
        for data in self.files_in_order(variables, warn, fallback=fallback):
            if key in data:
                yield data[key]

    def files_in_order(self, variables: Variables, warn: Warn, *, fallback: bool = False) -> Iterator[Mapping[str, Any]]:
        for index, level in enumerate(self.fallback if fallback else self.levels):
            for path, backend in self._located(-1 - index if fallback else index, level, variables):
                yield self._read(path, backend, warn)

    def _located(self, index: int, level: Level, variables: Variables) -> Sequence[tuple[str, str]]:
        """The files of a level; what the variables in it were when they were last asked is remembered."""
        names = [*level.datadir.names, *[name for pattern in level.patterns for name in pattern.names]]
        if level.mapped is not None:
            return self._mapped(level, variables)
        values = {name: variable(name, variables) for name in names}
        try:
            key = (index, tuple(values.values()))
            known = self._paths.get(key)
        except TypeError:  # an array or hash in a path
            return self._found(level, values.__getitem__)
        if known is None:
            if len(self._paths) > 10_000:
                self._paths.clear()
            known = self._paths[key] = self._found(level, values.__getitem__)
        return known

    def _mapped(self, level: Level, variables: Variables) -> list[tuple[str, str]]:
        assert level.mapped is not None
        source, bound = level.mapped
        value = variable(source, variables)
        given = [list(pair) for pair in entries(value)] if isinstance(value, dict) else value if isinstance(value, list) else [value]
        found: list[tuple[str, str]] = []
        for each in given:
            if each is None or each == "":
                continue

            def bound_value(name: str, each: Value = each) -> Value:
                if name == bound:
                    return each
                if name.startswith(f"{bound}."):
                    return variable(name, lambda root: each if root == bound else variables(root))
                return variable(name, variables)

            found += self._found(level, bound_value)
        return found

    def _found(self, level: Level, values: Callable[[str], Value]) -> list[tuple[str, str]]:
        datadir = level.datadir.filled(values)
        base = datadir if datadir.startswith("/") else f"{self.folder}/{datadir}"
        found: list[tuple[str, str]] = []
        for pattern in level.patterns:
            wanted = pattern.filled(values)
            if level.kind == "glob":
                found += [(path, level.backend) for each in _alternatives(wanted) for path in self.files.matching(base, each)]
            elif ".." not in wanted.split("/"):  # a fact must not lead out of the data
                found.append((f"{base}/{wanted}", level.backend))
        return found

    def _read(self, path: str, backend: str, warn: Warn) -> Mapping[str, Any]:
        found = self._data.get((path, backend))
        if found is None:
            found = self._data[path, backend] = self._parsed(path, backend, warn)
        return found

    def _parsed(self, path: str, backend: str, warn: Warn) -> Mapping[str, Any]:
        content = self.files.read(path)
        if content is None:
            return {}
        try:
            read = plainyaml.loads(content, aliases=True) if backend == "yaml" else plainjson.loads(content)
        except BadData as error:
            raise EvaluationError(f"Unable to parse ({path}): {error.message}", where=FINAL) from error
        if not isinstance(read, dict):
            warn(f"{path}: file does not contain a valid {backend} hash")
            return {}
        if self.module is None:
            return read
        kept = {key: value for key, value in read.items() if key == "lookup_options" or to_s(key).startswith(f"{self.module}::")}
        if len(kept) < len(read):
            warn(
                f"Module '{self.module}': Value returned from data_hash function '{backend}_data', when using location '{path}', "
                "must use keys qualified with the name of the module"
            )
        return kept


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
            return [each for part in parts for each in _alternatives(pattern[:start] + part + pattern[at + 1 :])]
    return [pattern]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f", or {names[-1]}"
