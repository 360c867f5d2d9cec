"""
Types and providers that modules bring in Python: `lib/puppet/type/<type>.py` and `lib/puppet/provider/<type>/<name>.py`.

A type's file defines one subclass of Type of the file's name; a provider's file one subclass of Provider, which is made without
arguments. A provider gets at its type with `from puppet_type_<type> import …`. The files are code that the administrator put on
the module path (an agent: what pluginsync fetched from its master); they stand beside the Ruby ones, which other agents load.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

from ..errors import ConfigError
from .core import Type
from .providers import Provider

B = TypeVar("B")
Makers = Mapping[str, Callable[[], Sequence[Provider[Any]]]]


def plugin_types(folders: Sequence[Path]) -> dict[str, type[Type]]:
    """
    The types below `folders` (each a module's `lib`, or the agent's libdir), by name; of two with one name the first wins.

    Loading runs the files anew, so that a daemon uses what was synchronised last.

    Raises:
        ConfigError: a file cannot be loaded, or does not define the one type that its name says.
    """
    found: dict[str, type[Type]] = {}
    for folder in folders:
        for path in sorted((folder / "puppet" / "type").glob("*.py")):
            if path.stem.isidentifier() and path.stem not in found:
                cls = _only(_load(path, f"puppet_type_{path.stem}"), Type, path, lambda each: "declaration" in vars(each))
                if cls.declaration.name != path.stem:
                    raise ConfigError(f"{path} defines the type {cls.declaration.name}, not {path.stem}")
                found[path.stem] = cls
    return found


def plugin_providers(folders: Sequence[Path], types: Mapping[str, type[Type]], builtin: Makers) -> Makers:
    """
    What makes the providers of every type: those of `builtin`, then the modules' own; files are loaded when a type is met.

    Raises (when called for a type): ConfigError: a file cannot be loaded, or is of another type than its folder says.
    """
    files: dict[str, dict[str, Path]] = {}
    for folder in folders:
        for path in sorted((folder / "puppet" / "provider").glob("*/*.py")):
            if path.parent.name in types and path.stem.isidentifier():
                files.setdefault(path.parent.name, {}).setdefault(path.stem, path)

    def maker(type_name: str, paths: Mapping[str, Path]) -> Callable[[], Sequence[Provider[Any]]]:
        def make() -> Sequence[Provider[Any]]:
            ours = builtin[type_name]() if type_name in builtin else ()
            return [*ours, *(_provider(path, type_name) for path in paths.values())]

        return make

    return {**builtin, **{type_name: maker(type_name, paths) for type_name, paths in files.items()}}


def _provider(path: Path, type_name: str) -> Provider[Any]:
    cls: type[Provider[Any]] = _only(_load(path, f"puppet_provider_{type_name}_{path.stem}"), Provider, path, lambda each: True)
    if cls.serves.declaration.name != type_name:
        raise ConfigError(f"{path} is a provider of {cls.serves.declaration.name}, not of {type_name}")
    try:
        return cls()
    except TypeError as err:
        raise ConfigError(f"Could not make the provider of {path}: {err}", hint="A module's provider is made without arguments.") from err


class _FromSource(SourceFileLoader):
    """Compiles the file each time and leaves no bytecode beside it, which pluginsync would take for a stray file."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _load(path: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path, loader=_FromSource(name, str(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as err:
        del sys.modules[name]
        raise ConfigError(f"Could not load {path}: {type(err).__name__}: {err}") from err
    return module


def _only(module: ModuleType, base: type[B], path: Path, counts: Callable[[type[B]], bool]) -> type[B]:
    """The one class of a kind that a file defines."""
    classes = [
        each
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, base)
        and each.__module__ == module.__name__
        and not each.__name__.startswith("_")
        and counts(each)
    ]
    if len(classes) != 1:
        raise ConfigError(f"{path} must define one subclass of {base.__name__}, not {len(classes)}")
    return classes[0]
