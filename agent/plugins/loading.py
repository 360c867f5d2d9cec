"""Types and providers in Python that modules bring, for one run."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import ConfigError, PuppetError, text_with_hint
from shared.models.catalog import Catalog
from shared.ral import Providers, Type
from shared.types import builtin_types

from ..providers import builtin_providers, platform_here
from ..state.runlog import RunLog

if TYPE_CHECKING:
    from ..providers.file.context import FileContext


@dataclass(frozen=True, slots=True)
class Plugins:
    """
    The types and providers of one run.

    Attributes:
        folders: The directories of modules' plugins.
        types: Puppet's own types, and those of `folders` that the catalog uses, by name.
        broken: The types that the catalog uses and that could not be loaded, with their errors, which are in the log already.
    """

    folders: Sequence[Path]
    types: Mapping[str, type[Type]]
    broken: Mapping[str, PuppetError]
    log: RunLog

    def providers(self, *, files: Callable[[], FileContext], facts: Mapping[str, Any]) -> Providers:
        """Return all providers for this machine; those of modules are loaded when a resource of their type is met."""
        platform = platform_here(facts)
        builtin = builtin_providers(log=self.log, files=files, providers=lambda: run_providers, types=self.types, platform=platform)
        makers = builtin
        if any((folder / "puppet" / "provider").is_dir() for folder in self.folders):
            from shared.ral.plugins import plugin_providers

            makers = plugin_providers(self.folders, self.types, builtin, on_broken=lambda name, err: log_error(self.log, err))
        run_providers: Providers = Providers(makers, platform)
        return run_providers


def plugins_for(catalog: Catalog, folders: Sequence[Path], log: RunLog) -> Plugins:
    """
    Return the types for a catalog; the files in `folders` (like a module's `lib`) are executed anew. Blocks.

    A file that cannot be loaded is one error in the log. Puppet's own types cannot be replaced.
    """
    builtin = builtin_types()
    module_types: Mapping[str, type[Type]] = {}
    broken: dict[str, PuppetError] = {}

    def note(name: str, err: ConfigError) -> None:
        broken[name] = err
        log_error(log, err)

    if any((folder / "puppet" / kind).is_dir() for folder in folders for kind in ("type", "provider")):
        from shared.ral.plugins import plugin_types

        module_types = plugin_types(folders, names=used_types(catalog) - builtin.keys(), on_broken=note)
    return Plugins(folders, ChainMap(dict(module_types), builtin) if module_types else builtin, broken, log)  # type: ignore[arg-type]  # it is only read


def used_types(catalog: Catalog) -> frozenset[str]:
    """Return the names of all types that a catalog has resources of, or purges."""
    names = {resource.type.lower() for resource in catalog.resources}
    purged = {str(resource.parameters.get("name", resource.title)) for resource in catalog.resources if resource.type == "Resources"}
    return frozenset(names | purged)


def log_error(log: RunLog, err: PuppetError) -> None:
    """Log an error with its hint."""
    log.err(text_with_hint(err))
