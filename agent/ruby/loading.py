"""The types that a catalog uses and modules have in Ruby."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.errors import ConfigError, PuppetError, ResourceError, Unsupported
from shared.ral import Provider
from shared.ral.providers import ProviderFactories

from .process import RubyProcess, RubyReport
from .providers import RubyProvider
from .types import RubyType, declared_type

_NAME = re.compile(r"\w+")


def in_ruby(folders: Sequence[Path], names: Iterable[str]) -> list[str]:
    """Return those of the types `names` that a folder, like a module's `lib`, has a file in Ruby for; a name that is a path has none."""
    names_of_files = sorted(name for name in names if _NAME.fullmatch(name))
    return [name for name in names_of_files if any((folder / "puppet" / "type" / f"{name}.rb").is_file() for folder in folders)]


def ruby_types(
    ruby: RubyProcess, names: Sequence[str], on_broken: Callable[[str, PuppetError], None]
) -> tuple[Mapping[str, type[RubyType]], ProviderFactories]:
    """
    Return types in Ruby by name, and the factory of their providers.

    Args:
        on_broken: called with each type that cannot be used, and why.
    """
    types: dict[str, type[RubyType]] = {}
    makers: dict[str, Callable[[], Sequence[Provider[Any]]]] = {}
    for name, data in _declarations(ruby, names, on_broken).items():
        if "error" in data:
            report = RubyReport.of(data["error"])
            reason = report.error("It")
            place = f" ({report.file}:{report.line})" if report.file and not report.lacks else ""
            on_broken(name, ConfigError(f"Could not load the type {name}: {reason.message}{place}", hint=reason.hint))
            continue
        try:
            types[name] = declared_type(ruby, name, data)
        except (TypeError, KeyError, ValueError) as err:
            on_broken(name, ConfigError(f"Could not use the type {name}: {err}"))
            continue
        makers[name] = _maker(ruby, types[name], data)
    return types, makers


def _declarations(
    ruby: RubyProcess, names: Sequence[str], on_broken: Callable[[str, PuppetError], None]
) -> Mapping[str, Mapping[str, Any]]:
    """Return Ruby's descriptions of types, by name. If all of them together fail, each is requested alone, so that one fails no other."""
    try:
        declarations = ruby.ask("declare", list(names))
    except ResourceError as err:
        if len(names) > 1:
            return {name: data for each in names for name, data in _declarations(ruby, [each], on_broken).items()}
        on_broken(names[0], ConfigError(f"Could not load the type {names[0]}: {err.message}", hint=err.hint))
        return {}
    return {name: declarations.get(name) or {} for name in names}


def _maker(ruby: RubyProcess, declared: type[RubyType], data: Mapping[str, Any]) -> Callable[[], Sequence[Provider[Any]]]:
    has_providers = "provider" in declared.declaration.attributes

    def make() -> Sequence[Provider[Any]]:
        each = data["providers"] if has_providers else [None]
        return [RubyProvider(ruby, declared, one, data) for one in each]

    return make


def without_ruby(names: Sequence[str]) -> Unsupported:
    """Return the error for types that need a `ruby` where there is none."""
    return Unsupported(
        f"Types of modules are in Ruby, and there is no ruby to run them: {', '.join(names)}",
        hint="Install it (Debian, Ubuntu, Fedora: the package ruby); neither Puppet nor gems are needed. "
        "Until then their resources fail, and the rest of the catalog is applied.",
    )
