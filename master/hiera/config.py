"""hiera.yaml in its versions 3, 4 and 5, read and checked. Source: language reference 18.2, 18.3."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from shared.errors import BadData, EvaluationError, Location

from ..compiler.types.base import PuppetType
from ..compiler.types.notation.parse import parse_type
from .datafiles import yaml_text
from .failures import DataError
from .merging import DEFAULT, Merge, merge_of, typed

__all__ = ["Config", "Entry", "default_config", "read_config"]

FUNCTIONS = ("data_hash", "lookup_key", "data_dig", "hiera3_backend")
ALL_FUNCTIONS = (*FUNCTIONS, "v4_data_hash")
LOCATIONS = ("path", "paths", "glob", "globs", "uri", "uris", "mapped_paths")
RESERVED = ("path", "uri")
_EXTENSIONS = {"hocon": "conf"}
_BUILT_IN = ("yaml", "json", "hocon")

_OPTIONS = r"Hash[Pattern[/\A[A-Za-z](:?[0-9A-Za-z_-]*[0-9A-Za-z])?\z/], Data]"
_HIERARCHY = (
    f"Array[Struct[{{name=>String[1], Optional[options]=>{_OPTIONS}, "
    "Optional[data_hash]=>String[1], Optional[lookup_key]=>String[1], Optional[hiera3_backend]=>String[1], "
    "Optional[v4_data_hash]=>String[1], Optional[data_dig]=>String[1], "
    "Optional[path]=>String[1], Optional[paths]=>Array[String[1], 1, default], "
    "Optional[glob]=>String[1], Optional[globs]=>Array[String[1], 1, default], "
    "Optional[uri]=>String[1], Optional[uris]=>Array[String[1], 1, default], "
    "Optional[mapped_paths]=>Array[String[1], 3, 3], Optional[datadir]=>String[1]}]]"
)
_VERSION_5 = (
    "Struct[{version=>Integer[5, 5], Optional[defaults]=>Struct[{Optional[data_hash]=>String[1], Optional[lookup_key]=>String[1], "
    f"Optional[data_dig]=>String[1], Optional[datadir]=>String[1], Optional[options]=>{_OPTIONS}}}], "
    f"Optional[hierarchy]=>{_HIERARCHY}, Optional[plan_hierarchy]=>{_HIERARCHY}, Optional[default_hierarchy]=>{_HIERARCHY}}}]"
)
_VERSION_4 = (
    "Struct[{version=>Integer[4, 4], Optional[datadir]=>String[1], Optional[hierarchy]=>Array[Struct[{backend=>String[1], "
    "name=>String[1], Optional[datadir]=>String[1], Optional[path]=>String[1], Optional[paths]=>Array[String[1]]}]]}]"
)
_VERSION_3 = (
    "Struct[{{Optional[version]=>Integer[3, 3], Optional[backends]=>Variant[String[1], Array[String[1]]], Optional[logger]=>String[1], "
    "Optional[merge_behavior]=>Enum['deep', 'deeper', 'native'], "
    "Optional[deep_merge_options]=>Hash[String[1], Variant[String, Boolean]], "
    "Optional[hierarchy]=>Variant[String[1], Array[String[1]]]{backends}}}]"
)
DEFAULT_5: Mapping[str, Any] = {"hierarchy": [{"name": "Common", "path": "common.yaml"}]}
DEFAULT_3: Mapping[str, Any] = {"backends": ["yaml"], "hierarchy": ["nodes/%{::trusted.certname}", "common"], "merge_behavior": "native"}


@dataclass(frozen=True)
class Entry:
    """
    One entry of a hierarchy.

    Attributes:
        kind: what the function is: one of ALL_FUNCTIONS.
        datadir: below which paths are, absolute; may hold expressions.
        location: one of LOCATIONS, '' for none; `patterns` are what it says; `mapped` the variable and the name bound to its values.
        extension: is put behind paths that lack it, with its dot.
        site: a backend of version 3, whose paths may come from the caller too.
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
    site: bool = False


@dataclass(frozen=True)
class Config:
    """
    What a hiera.yaml says; `path` is None when there is none and the default holds.

    `merge` is the strategy that version 3 has for hashes.
    """

    path: str | None
    version: int
    entries: tuple[Entry, ...]
    default_entries: tuple[Entry, ...] | None = None
    merge: Merge = DEFAULT
    text: str = ""

    @property
    def name(self) -> str:
        return f"hiera configuration version {self.version}"

    def line_of(self, pattern: str, start: int = 1) -> int | None:
        return _line(self.text, pattern, start)

    def failure(self, message: str, line: int | None = None) -> DataError:
        return DataError(message, where=Location(self.path, line), final=True)


@lru_cache(maxsize=16)
def _type(text: str) -> PuppetType:
    return parse_type(text)


def _line(text: str, pattern: str, start: int = 1) -> int | None:
    """The first line from `start` on that a pattern matches, comments left out."""
    wanted = re.compile(pattern)
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if number >= start and wanted.search(_uncommented(line)):
            return number
    return None


def _uncommented(line: str) -> str:
    quote = ""
    for at, char in enumerate(line):
        if char in "\"'":
            quote = "" if quote == char else quote or char
        elif char == "#":  # in quotes as well, as the reference does
            return line[:at]
    return line


def default_config(folder: str) -> Config:
    """What holds without a hiera.yaml: common.yaml in the folder `data` beside it, if it is there."""
    return Config(None, 5, _Reader(None, folder, "", "module")._entries_5(DEFAULT_5["hierarchy"], {}))


def read_config(path: str, content: bytes, place: str, *, codedir: str, warn: Callable[[str], None]) -> Config:
    """
    The configuration in a file, checked.

    Args:
        place: global, environment or module.
        codedir: below which version 3 looks for data by default.
    Raises:
        DataError: located in the file. EvaluationError: it is not YAML, or not of the shape that its version asks for.
    """
    try:
        read = yaml_text(content)
    except BadData as error:
        raise EvaluationError(f"({path}): {error.message}") from error
    if not isinstance(read, dict):
        warn(f"{path}: File exists but does not contain a valid YAML hash. Falling back to Hiera version 3 default config")
        read = dict(DEFAULT_3)
    given: dict[str, Any] = _plain(read)
    version = given.get("version", 3)
    if isinstance(version, str) and version.isdigit():
        version = int(version)
    reader = _Reader(path, posixpath.dirname(path), content.decode("utf-8", "replace"), place)
    if version == 5:
        return reader.version_5(given)
    if version not in (3, 4):
        raise DataError(f"This runtime does not support hiera.yaml version {version}", where=Location(path), final=True)
    return reader.version_4(given) if version == 4 else reader.version_3(given, codedir)


def _plain(value: Any) -> Any:
    """Symbols as texts, at every depth."""
    if isinstance(value, str):
        return str(value) if value.__class__ is not str else value
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    return value


class _Reader:
    """One configuration while it is read."""

    def __init__(self, path: str | None, folder: str, text: str, place: str) -> None:
        self.path = path
        self.folder = folder
        self.text = text
        self.place = place

    def fail(self, message: str, line: int | None = None) -> DataError:
        return DataError(message, where=Location(self.path, line), final=True)

    def shaped(self, type_text: str, given: Mapping[str, Any]) -> None:
        typed(f"The Lookup Configuration at '{self.path}'", _type(type_text), given)

    def below(self, datadir: str) -> str:
        return datadir if datadir.startswith("/") else f"{self.folder}/{datadir}"

    # --- version 5 ---

    def version_5(self, given: dict[str, Any]) -> Config:
        for key in ("defaults", "hierarchy"):
            if given.get(key) is None:
                given.pop(key, None)
        self.shaped(_VERSION_5, given)
        hierarchy = given.get("hierarchy", DEFAULT_5["hierarchy"])
        defaults = given.get("defaults", {"datadir": "data", "data_hash": "yaml_data"})
        self._check_defaults(defaults)
        for entry in [*hierarchy, *given.get("plan_hierarchy", [])]:
            self._check_entry(entry, defaults)
        default_hierarchy = given.get("default_hierarchy")
        if default_hierarchy is not None:
            if self.place != "module":
                line = _line(self.text, r"(?:^|\s+)default_hierarchy:")
                raise self.fail("'default_hierarchy' is only allowed in the module layer", line)
            for entry in default_hierarchy:
                self._check_entry(entry, defaults)
        return Config(
            self.path,
            5,
            self._entries_5(hierarchy, defaults),
            self._entries_5(default_hierarchy, defaults) if default_hierarchy is not None else None,
            text=self.text,
        )

    def _check_defaults(self, defaults: Mapping[str, Any]) -> None:
        if sum(key in defaults for key in FUNCTIONS) > 1:
            raise self.fail(f"Only one of {_listed(FUNCTIONS)} can be defined in defaults")
        for key in RESERVED:
            if key in defaults.get("options", {}):
                raise self.fail(f"Option key '{key}' used in defaults is reserved by Puppet")

    def _check_entry(self, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        name = entry["name"]
        count = sum(key in entry for key in ALL_FUNCTIONS)
        if count == 0 and not any(key in defaults for key in FUNCTIONS):
            raise self.fail(f"One of {_listed(FUNCTIONS)} must be defined in hierarchy '{name}'")
        if count > 1:
            raise self.fail(f"Only one of {_listed(FUNCTIONS)} can be defined in hierarchy '{name}'")
        backend = entry.get("hiera3_backend")
        if backend is not None and self.place != "global":
            raise self.fail("'hiera3_backend' is only allowed in the global layer", _line(self.text, r"\s+hiera3_backend:"))
        if backend in _BUILT_IN:
            line = _line(self.text, rf"\s+hiera3_backend:\s*['\"]?{backend}(?:[^\w]|$)")
            raise self.fail(f'Use "data_hash: {backend}_data" instead of "hiera3_backend: {backend}"', line)
        if sum(key in entry for key in LOCATIONS) > 1:
            raise self.fail(f"Only one of {_listed(LOCATIONS)} can be defined in hierarchy '{name}'")
        for key in RESERVED:
            if key in entry.get("options", {}):
                raise self.fail(f"Option key '{key}' used in hierarchy '{name}' is reserved by Puppet")

    def _entries_5(self, hierarchy: Sequence[Mapping[str, Any]], defaults: Mapping[str, Any]) -> tuple[Entry, ...]:
        found: dict[str, Entry] = {}
        for given in hierarchy:
            name = given["name"]
            if name in found:
                raise self._twice("Hierarchy name", name, rf"\s+name:\s+['\"]?{re.escape(name)}(?:[^\w]|$)")
            kind = next((key for key in ALL_FUNCTIONS if key in given), None)
            said = given if kind is not None else defaults
            kind = kind or next((key for key in FUNCTIONS if key in defaults), "data_hash")
            location = next((key for key in LOCATIONS if key in given), "")
            value = given.get(location, [])
            mapped = (value[0], value[1]) if location == "mapped_paths" else None
            patterns = (value[2],) if mapped else tuple(value) if isinstance(value, list) else (value,)
            datadir = self.below(given.get("datadir") or defaults.get("datadir") or "data")
            options = given.get("options") or defaults.get("options") or {}
            found[name] = Entry(name, kind, said.get(kind, "yaml_data"), datadir, location, patterns, mapped, options)
        return tuple(found.values())

    def _twice(self, what: str, name: str, pattern: str) -> DataError:
        first = _line(self.text, pattern)
        line = _line(self.text, pattern, first + 1) if first else None
        message = f"{what} '{name}' {'is ' if what == 'Backend' else ''}defined more than once."
        return self.fail(f"{message} First defined at (line: {first})" if line else message, line or first)

    # --- version 4 ---

    def version_4(self, given: dict[str, Any]) -> Config:
        given.setdefault("datadir", "data")
        given.setdefault("hierarchy", [{"name": "common", "backend": "yaml"}])
        self.shaped(_VERSION_4, given)
        found: dict[str, Entry] = {}
        for entry in given["hierarchy"]:
            name, backend = entry["name"], entry["backend"]
            if name in found:
                raise self._twice("Hierarchy name", name, rf"\s+name:\s+['\"]?{re.escape(name)}(?:[^\w]|$)")
            if backend not in _BUILT_IN:
                line = _line(self.text, rf"[^\w]{re.escape(backend)}(?:[^\w]|$)")
                raise self.fail(f"No data provider is registered for backend '{backend}'", line)
            paths = tuple(entry.get("paths") or [entry.get("path") or name])
            datadir = self.below(entry.get("datadir") or given["datadir"])
            extension = f".{_EXTENSIONS.get(backend, backend)}"
            found[name] = Entry(name, "data_hash", f"{backend}_data", datadir, "paths", paths, extension=extension)
        return Config(self.path, 4, tuple(found.values()), text=self.text)

    # --- version 3 ---

    def version_3(self, given: dict[str, Any], codedir: str) -> Config:
        given = {"version": 3, **DEFAULT_3, "deep_merge_options": {}, **{key: value for key, value in given.items() if value is not None}}
        backends = _several(given["backends"])
        own = "".join(
            f", Optional['{name}']=>Hash[String[1], Any]" for name in dict.fromkeys(backends) if re.fullmatch(r"[\w-]+", str(name))
        )
        self.shaped(_VERSION_3.format(backends=own), given)
        found: dict[str, Entry] = {}
        for backend in backends:
            if backend in found:
                raise self._twice("Backend", backend, rf"[^\w]{re.escape(backend)}(?:[^\w]|$)")
            settings = given.get(backend) or {}
            datadir = settings.get("datadir") or f"{codedir}/environments/%{{::environment}}/hieradata"
            extension = f".{settings.get('extension') or _EXTENSIONS.get(backend, backend)}"
            kind, function = ("data_hash", f"{backend}_data") if backend in _BUILT_IN else ("hiera3_backend", backend)
            options: Mapping[str, Any] = {}
            if backend == "eyaml":
                kind, function = "lookup_key", "eyaml_lookup_key"
                options = {key: value for key, value in settings.items() if key != "datadir"}
            paths = tuple(_several(given["hierarchy"]))
            found[backend] = Entry(backend, kind, function, str(datadir), "paths", paths, None, options, extension, site=True)
        return Config(self.path, 3, tuple(found.values()), merge=self._merge_3(given), text=self.text)

    def _merge_3(self, given: Mapping[str, Any]) -> Merge:
        behavior = given["merge_behavior"]
        if behavior == "native":
            return DEFAULT
        return merge_of({"strategy": "reverse_deep" if behavior == "deep" else "unconstrained_deep", **given["deep_merge_options"]})


def _several(given: Any) -> list[Any]:
    if not isinstance(given, list):
        return [given]
    return [inner for item in given for inner in _several(item)]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f", or {names[-1]}"
