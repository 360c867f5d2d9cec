"""
Types and providers of modules in Python: `lib/puppet/type/<type>.py` and `lib/puppet/provider/<type>/<name>.py`.

A type's file defines one subclass of Type of the file's name; a provider's file one subclass of Provider, which is made without
arguments. They get at each other with `from puppet_type_<type> import …` and `from puppet_provider_<type>_<name> import …`. The
files are code that the administrator put on the module path (an agent: what pluginsync fetched from its master); they stand
beside the Ruby ones, which other agents load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import pluginfiles
from ..errors import ConfigError
from .core import Type
from .providers import Confine, Provider, ProviderFactories

OnBroken = Callable[[str, ConfigError], None]
"""Called with the name of the type (or, as `type/name`, of the provider) that cannot be loaded, and why."""

_TYPE, _PROVIDER = "puppet_type_", "puppet_provider_"


def plugin_types(
    folders: Sequence[Path], *, names: frozenset[str] | None = None, on_broken: OnBroken | None = None
) -> dict[str, type[Type]]:
    """
    Return the types below `folders` (each a module's `lib`, or the agent's libdir), by name; of two with one name the first wins.

    Loading runs the files again, so that a daemon uses the files that were synchronised last.

    Args:
        names: only these; None: all.
        on_broken: called with each type that cannot be used; the others are loaded all the same.
    Raises:
        ConfigError: without `on_broken`: a file cannot be loaded, or does not define the one type that its name says.
    """
    files = _PluginFiles.of(folders)
    files.install_finder()
    types_by_name: dict[str, type[Type]] = {}
    for name in files.types:
        if names is not None and name not in names:
            continue
        try:
            types_by_name[name] = _load_type(name, files.types[name])
        except ConfigError as err:
            if on_broken is None:
                raise
            on_broken(name, err)
    return types_by_name


def plugin_providers(
    folders: Sequence[Path], types: Mapping[str, type[Type]], builtin: ProviderFactories, *, on_broken: OnBroken | None = None
) -> ProviderFactories:
    """
    Return the factories of all types' providers: `builtin`, then the modules' own; files are loaded when a type is first used.

    Args:
        on_broken: called with each provider that cannot be loaded; a stand-in that fits no system and gives the reason replaces it.
    Raises (when a factory is called):
        ConfigError: without `on_broken`: a file cannot be loaded, or is of another type than its folder says.
    """
    files = _PluginFiles.of(folders).providers

    def maker(type_name: str, paths: Mapping[str, Path]) -> Callable[[], Sequence[Provider[Any]]]:
        def make() -> Sequence[Provider[Any]]:
            providers: list[Provider[Any]] = list(builtin[type_name]()) if type_name in builtin else []
            for name, path in paths.items():
                try:
                    providers.append(_load_provider(name, path, type_name))
                except ConfigError as err:
                    if on_broken is None:
                        raise
                    on_broken(f"{type_name}/{name}", err)
                    providers.append(_unusable(types[type_name], name, err))
            return providers

        return make

    return {**builtin, **{name: maker(name, paths) for name, paths in files.items() if name in types}}


def make_importable(folders: Sequence[Path], check: pluginfiles.Check | None = None) -> None:
    """Let the code of modules import the types and providers below `folders` that pass `check`; earlier loaded ones are discarded."""
    _PluginFiles.of(folders).install_finder(check)


def _load_type(name: str, path: Path) -> type[Type]:
    cls = pluginfiles.only(_load(path, f"{_TYPE}{name}", f"the type {name}"), Type, lambda cls: "declaration" in vars(cls))
    if cls.declaration.name != name:
        raise ConfigError(f"{path} defines the type {cls.declaration.name}, not {name}")
    _check_patterns(cls, path)
    return cls


def _check_patterns(cls: type[Type], path: Path) -> None:
    """Raise ConfigError for a pattern of values that is not a regular expression; otherwise the first value would find that out."""
    patterns = [(attribute.name, pattern) for attribute in cls.declaration.attributes.values() for pattern in attribute.patterns]
    if not patterns:
        return
    import regex

    for name, pattern in patterns:
        try:
            regex.compile(pattern)
        except regex.error as err:
            raise ConfigError(f"The pattern /{pattern}/ of the attribute {name} in {path} is not valid: {err}") from err


def _load_provider(name: str, path: Path, type_name: str) -> Provider[Any]:
    module = _load(path, f"{_PROVIDER}{type_name}_{name}", f"the provider {name} of {type_name}")
    cls: type[Provider[Any]] = pluginfiles.only(module, Provider)
    if cls.serves.declaration.name != type_name:
        raise ConfigError(f"{path} is a provider of {cls.serves.declaration.name}, not of {type_name}")
    try:
        return cls()
    except Exception as err:
        raise ConfigError(
            f"Could not make the provider of {path}: {type(err).__name__}: {err}",
            where=pluginfiles.place(err, path, beside=_import_root(path)),
            hint="A module's provider is made without arguments.",
        ) from err


def _unusable(serves: type[Type], name: str, err: ConfigError) -> Provider[Any]:
    """Return a stand-in for a provider that cannot be loaded: it fits no system."""
    stand_in: Provider[Any] = Provider()
    stand_in.serves, stand_in.name = serves, name  # type: ignore[misc]  # of this one instance
    stand_in.confine = (Confine(f"its file to be loaded: {err}", lambda platform: False),)  # type: ignore[misc]
    return stand_in


class _PluginFiles:
    """The files of types and providers by name."""

    def __init__(self, types: Mapping[str, Path], providers: Mapping[str, Mapping[str, Path]]) -> None:
        self.types = types
        self.providers = providers

    @classmethod
    def of(cls, folders: Sequence[Path]) -> _PluginFiles:
        types: dict[str, Path] = {}
        providers: dict[str, dict[str, Path]] = {}
        for folder in folders:
            for path in _python_files(folder / "puppet" / "type", "*.py"):
                types.setdefault(path.stem, path)
            for path in _python_files(folder / "puppet" / "provider", "*/*.py"):
                providers.setdefault(path.parent.name, {}).setdefault(path.stem, path)
        return cls(types, providers)

    def install_finder(self, check: pluginfiles.Check | None = None) -> None:
        """Let them import each other; modules loaded by an earlier run are discarded."""
        files = {f"{_TYPE}{name}": path for name, path in self.types.items()} | {
            f"{_PROVIDER}{type_name}_{name}": path for type_name, paths in self.providers.items() for name, path in paths.items()
        }
        pluginfiles.PluginFinder(files, (_TYPE, _PROVIDER), check).install()


def _python_files(folder: Path, pattern: str) -> Iterator[Path]:
    return (path for path in sorted(folder.glob(pattern)) if path.stem.isidentifier())


def _load(path: Path, name: str, label: str) -> ModuleType:
    """Return the module in a file; a module that another file has imported already is returned as it is."""
    return sys.modules[name] if name in sys.modules else pluginfiles.load(path, name, label, beside=_import_root(path))


def _import_root(path: Path) -> Path:
    """Return the folder `puppet` of all types and providers, which may import each other."""
    return path.parent.parent if path.parent.name == "type" else path.parent.parent.parent
