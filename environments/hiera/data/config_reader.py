"""Reads and checks hiera.yaml in its versions 3, 4 and 5. Source: language reference 18.2, 18.3."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from language.types.notation.parse import parse_type
from language.values.core import PuppetType
from shared.errors import BadData, EvaluationError, Location

from ..errors import DataError
from ..merging import DEFAULT, Merge, flatten, merge_of, require_type
from .config import HierarchyConfig, HierarchyEntry, line_of
from .files import parse_yaml

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


@lru_cache(maxsize=16)
def _parsed_type(text: str) -> PuppetType:
    return parse_type(text)


def default_config(folder: str) -> HierarchyConfig:
    """Return the configuration of a folder without a hiera.yaml: data/common.yaml, if it exists."""
    return HierarchyConfig(None, 5, _ConfigReader(None, folder, "", "module").entries_5(DEFAULT_5["hierarchy"], {}))


def read_config(path: str, content: bytes, layer: str, *, codedir: str, warn: Callable[[str], None]) -> HierarchyConfig:
    """
    Return the checked configuration in a file.

    Args:
        layer: global, environment or module.
        codedir: the folder below which version 3 has its data by default.
    Raises:
        DataError: an entry is wrong; located in the file.
        EvaluationError: it is not YAML, or does not have the structure of its version.
    """
    try:
        document = parse_yaml(content)
    except BadData as error:
        raise EvaluationError(f"({path}): {error.message}") from error
    if not isinstance(document, dict):
        warn(f"{path}: File exists but does not contain a valid YAML hash. Falling back to Hiera version 3 default config")
        document = dict(DEFAULT_3)
    config: dict[str, Any] = _without_symbols(document)
    version = config.get("version", 3)
    if isinstance(version, str) and version.isdigit():
        version = int(version)
    reader = _ConfigReader(path, posixpath.dirname(path), content.decode("utf-8", "replace"), layer)
    if version == 5:
        return reader.version_5(config)
    if version not in (3, 4):
        raise DataError(f"This runtime does not support hiera.yaml version {version}", where=Location(path), final=True)
    return reader.version_4(config) if version == 4 else reader.version_3(config, codedir)


def _without_symbols(value: Any) -> Any:
    """Return a value with its symbols as plain strings, at every depth."""
    if isinstance(value, str):
        return str(value) if value.__class__ is not str else value
    if isinstance(value, list):
        return [_without_symbols(item) for item in value]
    if isinstance(value, dict):
        return {_without_symbols(key): _without_symbols(item) for key, item in value.items()}
    return value


class _ConfigReader:
    """Reads one configuration; `path` is None for the default one."""

    def __init__(self, path: str | None, folder: str, text: str, layer: str) -> None:
        self.path = path
        self.folder = folder
        self.text = text
        self.layer = layer

    def failure(self, message: str, line: int | None = None) -> DataError:
        return DataError(message, where=Location(self.path, line), final=True)

    def check_type(self, type_text: str, config: dict[str, Any]) -> None:
        """Raise EvaluationError when the configuration is not of a type."""
        require_type(f"The Lookup Configuration at '{self.path}'", _parsed_type(type_text), config)

    def absolute(self, datadir: str) -> str:
        return datadir if datadir.startswith("/") else f"{self.folder}/{datadir}"

    # --- version 5 ---

    def version_5(self, config: dict[str, Any]) -> HierarchyConfig:
        for key in ("defaults", "hierarchy"):
            if config.get(key) is None:
                config.pop(key, None)
        self.check_type(_VERSION_5, config)
        hierarchy = config.get("hierarchy", DEFAULT_5["hierarchy"])
        defaults = config.get("defaults", {"datadir": "data", "data_hash": "yaml_data"})
        self._check_defaults(defaults)
        for entry in [*hierarchy, *config.get("plan_hierarchy", [])]:
            self._check_entry(entry, defaults)
        default_hierarchy = config.get("default_hierarchy")
        if default_hierarchy is not None:
            if self.layer != "module":
                line = line_of(self.text, r"(?:^|\s+)default_hierarchy:")
                raise self.failure("'default_hierarchy' is only allowed in the module layer", line)
            for entry in default_hierarchy:
                self._check_entry(entry, defaults)
        return HierarchyConfig(
            self.path,
            5,
            self.entries_5(hierarchy, defaults),
            self.entries_5(default_hierarchy, defaults) if default_hierarchy is not None else None,
            text=self.text,
        )

    def _check_defaults(self, defaults: Mapping[str, Any]) -> None:
        if sum(key in defaults for key in FUNCTIONS) > 1:
            raise self.failure(f"Only one of {_enumerate(FUNCTIONS)} can be defined in defaults")
        for key in RESERVED:
            if key in defaults.get("options", {}):
                raise self.failure(f"Option key '{key}' used in defaults is reserved by Puppet")

    def _check_entry(self, entry: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        name = entry["name"]
        count = sum(key in entry for key in ALL_FUNCTIONS)
        if count == 0 and not any(key in defaults for key in FUNCTIONS):
            raise self.failure(f"One of {_enumerate(FUNCTIONS)} must be defined in hierarchy '{name}'")
        if count > 1:
            raise self.failure(f"Only one of {_enumerate(FUNCTIONS)} can be defined in hierarchy '{name}'")
        backend = entry.get("hiera3_backend")
        if backend is not None and self.layer != "global":
            raise self.failure("'hiera3_backend' is only allowed in the global layer", line_of(self.text, r"\s+hiera3_backend:"))
        if backend in _BUILT_IN:
            line = line_of(self.text, rf"\s+hiera3_backend:\s*['\"]?{backend}(?:[^\w]|$)")
            raise self.failure(f'Use "data_hash: {backend}_data" instead of "hiera3_backend: {backend}"', line)
        if sum(key in entry for key in LOCATIONS) > 1:
            raise self.failure(f"Only one of {_enumerate(LOCATIONS)} can be defined in hierarchy '{name}'")
        for key in RESERVED:
            if key in entry.get("options", {}):
                raise self.failure(f"Option key '{key}' used in hierarchy '{name}' is reserved by Puppet")

    def entries_5(self, hierarchy: Sequence[Mapping[str, Any]], defaults: Mapping[str, Any]) -> tuple[HierarchyEntry, ...]:
        entries: dict[str, HierarchyEntry] = {}
        for entry in hierarchy:
            name = entry["name"]
            if name in entries:
                raise self._defined_twice("Hierarchy name", name, rf"\s+name:\s+['\"]?{re.escape(name)}(?:[^\w]|$)")
            kind = next((key for key in ALL_FUNCTIONS if key in entry), None)
            source = entry if kind is not None else defaults
            kind = kind or next((key for key in FUNCTIONS if key in defaults), "data_hash")
            location = next((key for key in LOCATIONS if key in entry), "")
            value = entry.get(location, [])
            mapped = (value[0], value[1]) if location == "mapped_paths" else None
            patterns = (value[2],) if mapped else tuple(value) if isinstance(value, list) else (value,)
            datadir = self.absolute(entry.get("datadir") or defaults.get("datadir") or "data")
            options = entry.get("options") or defaults.get("options") or {}
            entries[name] = HierarchyEntry(name, kind, source.get(kind, "yaml_data"), datadir, location, patterns, mapped, options)
        return tuple(entries.values())

    def _defined_twice(self, subject: str, name: str, pattern: str) -> DataError:
        """Return the error for a name that occurs twice; `pattern` matches the lines that define it."""
        first = line_of(self.text, pattern)
        line = line_of(self.text, pattern, first + 1) if first else None
        message = f"{subject} '{name}' {'is ' if subject == 'Backend' else ''}defined more than once."
        return self.failure(f"{message} First defined at (line: {first})" if line else message, line or first)

    # --- version 4 ---

    def version_4(self, config: dict[str, Any]) -> HierarchyConfig:
        config.setdefault("datadir", "data")
        config.setdefault("hierarchy", [{"name": "common", "backend": "yaml"}])
        self.check_type(_VERSION_4, config)
        entries: dict[str, HierarchyEntry] = {}
        for entry in config["hierarchy"]:
            name, backend = entry["name"], entry["backend"]
            if name in entries:
                raise self._defined_twice("Hierarchy name", name, rf"\s+name:\s+['\"]?{re.escape(name)}(?:[^\w]|$)")
            if backend not in _BUILT_IN:
                line = line_of(self.text, rf"[^\w]{re.escape(backend)}(?:[^\w]|$)")
                raise self.failure(f"No data provider is registered for backend '{backend}'", line)
            paths = tuple(entry.get("paths") or [entry.get("path") or name])
            datadir = self.absolute(entry.get("datadir") or config["datadir"])
            extension = f".{_EXTENSIONS.get(backend, backend)}"
            entries[name] = HierarchyEntry(name, "data_hash", f"{backend}_data", datadir, "paths", paths, extension=extension)
        return HierarchyConfig(self.path, 4, tuple(entries.values()), text=self.text)

    # --- version 3 ---

    def version_3(self, config: dict[str, Any], codedir: str) -> HierarchyConfig:
        config = {"version": 3, **DEFAULT_3, "deep_merge_options": {}, **{key: value for key, value in config.items() if value is not None}}
        backends = flatten(config["backends"])
        backend_types = "".join(
            f", Optional['{name}']=>Hash[String[1], Any]" for name in dict.fromkeys(backends) if re.fullmatch(r"[\w-]+", str(name))
        )
        self.check_type(_VERSION_3.format(backends=backend_types), config)
        entries: dict[str, HierarchyEntry] = {}
        for backend in backends:
            if backend in entries:
                raise self._defined_twice("Backend", backend, rf"[^\w]{re.escape(backend)}(?:[^\w]|$)")
            settings = config.get(backend) or {}
            datadir = settings.get("datadir") or f"{codedir}/environments/%{{::environment}}/hieradata"
            extension = f".{settings.get('extension') or _EXTENSIONS.get(backend, backend)}"
            kind, function = ("data_hash", f"{backend}_data") if backend in _BUILT_IN else ("hiera3_backend", backend)
            options: Mapping[str, Any] = {}
            if backend == "eyaml":
                kind, function = "lookup_key", "eyaml_lookup_key"
                options = {key: value for key, value in settings.items() if key != "datadir"}
            paths = tuple(flatten(config["hierarchy"]))
            entries[backend] = HierarchyEntry(
                backend, kind, function, str(datadir), "paths", paths, None, options, extension, version_3=True
            )
        return HierarchyConfig(self.path, 3, tuple(entries.values()), merge=self._merge_3(config), text=self.text)

    def _merge_3(self, config: Mapping[str, Any]) -> Merge:
        behavior = config["merge_behavior"]
        if behavior == "native":
            return DEFAULT
        return merge_of({"strategy": "reverse_deep" if behavior == "deep" else "unconstrained_deep", **config["deep_merge_options"]})


def _enumerate(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f", or {names[-1]}"
