"""
Data of an environment or module: `hiera.yaml` version 5 with YAML and JSON files, the first value found.

Merging, other backends and lookup_options are refused by name.
Source: language reference 18.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shared import plainjson, plainyaml
from shared.errors import BadData, ConfigError, EvaluationError, Unsupported

from .compiler.locations import FINAL
from .compiler.text import to_s
from .compiler.values import Value, key_of
from .compiler.world import NotFoundInData

if TYPE_CHECKING:
    from .environment_files import Files

__all__ = ["Hiera"]

Interpolate = Callable[[str], Value]
_EMPTY = ("", "::", "''", '""', '"::"', "'::'")
_METHOD = re.compile(r"""(\w+)\((?:"([^"]*)"|'([^']*)')\)\Z""")
_INTERPOLATION = re.compile(r"%\{([^}]*)\}")
_LOCATIONS = ("path", "paths", "glob", "globs", "uri", "uris", "mapped_paths")
_BACKENDS = {"yaml_data": "yaml", "json_data": "json"}
MAX_DEPTH = 40


class _Level:
    def __init__(self, name: str, datadir: str, backend: str, kind: str, patterns: Sequence[str]) -> None:
        self.name = name
        self.datadir = datadir
        self.backend = backend
        self.kind = kind  # path or glob
        self.patterns = list(patterns)


class Hiera:
    """
    The data below `folder`, as its hiera.yaml says.

    Raises:
        ConfigError: the configuration is not valid. Unsupported: it asks for what is not there yet.
    """

    def __init__(self, folder: str, config: bytes, files: Files) -> None:
        self.folder = folder
        self.files = files
        self._data: dict[str, Mapping[str, Any]] = {}
        path = f"{folder}/hiera.yaml"
        try:
            read = plainyaml.loads(config)
        except BadData as error:
            raise ConfigError(f"Unable to parse ({path}): {error.message}") from error
        self.levels = self._levels(read if isinstance(read, dict) else {}, path)

    def _levels(self, config: Mapping[str, Any], path: str) -> list[_Level]:
        version = config.get("version")
        if version != 5:
            raise Unsupported(f"{path}: version {version} of hiera.yaml is not supported yet", hint="Version 5 is.")
        defaults = config.get("defaults") or {}
        hierarchy = config.get("hierarchy")
        if hierarchy is None:
            hierarchy = [{"name": "Common", "path": "common.yaml"}]
        for name in ("default_hierarchy",):
            if config.get(name):
                raise Unsupported(f"{path}: '{name}' is not supported yet")
        return [self._level(entry, defaults, path) for entry in hierarchy]

    def _level(self, entry: Mapping[str, Any], defaults: Mapping[str, Any], path: str) -> _Level:
        name = str(entry.get("name", ""))
        if entry.get("options") or ("options" in defaults and not any(key in entry for key in ("data_hash", "lookup_key", "data_dig"))):
            raise Unsupported(f"{path}: options of the level '{name}' are not supported yet")
        for key in ("lookup_key", "data_dig", "hiera3_backend"):
            if key in entry or (key in defaults and "data_hash" not in entry):
                raise Unsupported(f"{path}: the level '{name}' uses {key}, which is not supported yet")
        function = entry.get("data_hash") or defaults.get("data_hash") or "yaml_data"
        if function not in _BACKENDS:
            raise Unsupported(f"{path}: the level '{name}' uses the backend {function}, which is not supported yet")
        locations = [key for key in _LOCATIONS if key in entry]
        if len(locations) > 1:
            raise ConfigError(f"{path}: Only one of {', '.join(_LOCATIONS)} can be defined in hierarchy '{name}'")
        kind = locations[0] if locations else "path"
        if kind not in ("path", "paths", "glob", "globs"):
            raise Unsupported(f"{path}: the level '{name}' uses {kind}, which is not supported yet")
        given = entry.get(kind, "common.yaml" if not locations else None)
        patterns = given if isinstance(given, list) else [given]
        datadir = str(entry.get("datadir") or defaults.get("datadir") or "data")
        return _Level(name, datadir, _BACKENDS[function], kind.rstrip("s"), [str(each) for each in patterns])

    # --- lookup ---

    def lookup(self, key: str, interpolate: Interpolate) -> Value:
        """The first value of `key`, interpolated; dots dig into it. NotFoundInData when there is none."""
        return self._lookup(key, interpolate, ())

    def _lookup(self, key: str, interpolate: Interpolate, active: tuple[str, ...]) -> Value:
        if key in active:
            raise EvaluationError(f"Recursive lookup detected in [{', '.join(active)}]")
        if len(active) > MAX_DEPTH:
            raise EvaluationError(f"The lookup of '{key}' is nested more than {MAX_DEPTH} deep")
        root, *digs = _segments(key)
        if root == "lookup_options":
            raise NotFoundInData(key)
        for path, backend in self._paths(interpolate):
            data = self._read(path, backend)
            if "lookup_options" in data:
                raise Unsupported(f"{path}: lookup_options are not supported yet")
            if root not in data:
                continue
            value = self._value(data[root], interpolate, (*active, key))
            try:
                return _dug(value, digs, key)
            except NotFoundInData:
                continue
        raise NotFoundInData(key)

    def _paths(self, interpolate: Interpolate) -> Sequence[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        for level in self.levels:
            datadir = self._variables(level.datadir, interpolate)
            base = datadir if datadir.startswith("/") else f"{self.folder}/{datadir}"
            for pattern in level.patterns:
                wanted = self._variables(pattern, interpolate)
                if level.kind == "glob":
                    found += [(path, level.backend) for path in self.files.matching(base, wanted)]
                elif ".." not in wanted.split("/"):
                    found.append((f"{base}/{wanted}", level.backend))
        return found

    def _read(self, path: str, backend: str) -> Mapping[str, Any]:
        found = self._data.get(path)
        if found is None:
            found = self._data[path] = self._parsed(path, backend)
        return found

    def _parsed(self, path: str, backend: str) -> Mapping[str, Any]:
        content = self.files.read(path)
        if content is None:
            return {}
        try:
            read = plainyaml.loads(content) if backend == "yaml" else plainjson.loads(content)
        except BadData as error:
            raise EvaluationError(f"Unable to parse ({path}): {error.message}", where=FINAL) from error
        return read if isinstance(read, dict) else {}

    # --- interpolation ---

    def _value(self, value: Any, interpolate: Interpolate, active: tuple[str, ...]) -> Value:
        if isinstance(value, str):
            return self._text(value, interpolate, active) if "%{" in value else value
        if isinstance(value, list):
            return [self._value(item, interpolate, active) for item in value]
        if isinstance(value, dict):
            return {key_of(self._value(key, interpolate, active)): self._value(item, interpolate, active) for key, item in value.items()}
        return value

    def _text(self, text: str, interpolate: Interpolate, active: tuple[str, ...]) -> Value:
        whole = _INTERPOLATION.fullmatch(text)
        if whole is not None:
            method = _METHOD.match(whole[1].strip())
            if method is not None and method[1] == "alias":
                return self._found(method[2] or method[3] or "", interpolate, active)

        def replaced(match: re.Match[str]) -> str:
            return to_s(self._expression(match[1].strip(), interpolate, active))

        return _INTERPOLATION.sub(replaced, text)

    def _expression(self, expression: str, interpolate: Interpolate, active: tuple[str, ...]) -> Value:
        if expression in _EMPTY:
            return ""
        method = _METHOD.match(expression)
        if method is None:
            return _variable(expression, interpolate)
        name, argument = method[1], method[2] if method[2] is not None else method[3]
        if name in ("lookup", "hiera"):
            return self._found(argument, interpolate, active)
        if name == "scope":
            return _variable(argument, interpolate)
        if name == "literal":
            return argument
        if name == "alias":
            raise EvaluationError("'alias' interpolation is only permitted if the expression is equal to the entire string")
        raise EvaluationError(f"Unknown interpolation method '{name}'")

    def _found(self, key: str, interpolate: Interpolate, active: tuple[str, ...]) -> Value:
        try:
            return self._lookup(key, interpolate, active)
        except NotFoundInData:
            return None

    def _variables(self, text: str, interpolate: Interpolate) -> str:
        if "%{" not in text:
            return text

        def replaced(match: re.Match[str]) -> str:
            expression = match[1].strip()
            if _METHOD.match(expression):
                raise EvaluationError("Interpolation using method syntax is not allowed in this context")
            return "" if expression in _EMPTY else to_s(_variable(expression, interpolate))

        return _INTERPOLATION.sub(replaced, text)


def _variable(expression: str, interpolate: Interpolate) -> Value:
    root, *digs = _segments(expression)
    try:
        return _dug(interpolate(root), digs, expression)
    except NotFoundInData:
        return None


def _segments(key: str) -> list[str]:
    """`a.b."x.y"` as its parts."""
    if "." not in key and '"' not in key and "'" not in key:
        return [key]
    found = [match[1] or match[2] or match[3] or "" for match in re.finditer(r"""(?:^|\.)(?:"([^"]*)"|'([^']*)'|([^.]*))""", key)]
    return found or [key]


def _dug(value: Value, digs: Sequence[str], key: str) -> Value:
    for part in digs:
        if isinstance(value, dict):
            if part not in value:
                number = int(part) if part.isdecimal() else None
                if number is None or number not in value:
                    raise NotFoundInData(key)
                value = value[number]
                continue
            value = value[part]
        elif isinstance(value, list):
            if not part.isdecimal() or int(part) >= len(value):
                raise NotFoundInData(key)
            value = value[int(part)]
        elif value is None:
            raise NotFoundInData(key)
        else:
            from .compiler.labels import label

            raise EvaluationError(
                f"Data Provider type mismatch: Got {label(value)} when a hash-like object was expected to access value using "
                f"'{part}' from key '{key}'"
            )
    return value
