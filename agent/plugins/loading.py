"""Types and providers of modules in Python, for one run."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shared.errors import PuppetError, text_with_hint
from shared.models.catalog import Catalog
from shared.ral import Providers, Type
from shared.ral.providers import ProviderFactories
from shared.types import CORE, builtin_types

from ..providers import ProviderRun, builtin_providers, platform_here
from ..state.runlog import RunLog

if TYPE_CHECKING:
    from ..providers.file.context import FileContext
    from ..ruby.needs import RubyNeeds
    from ..ruby.process import RubyProcess

Uses = Mapping[str, Mapping[str, bool]]
"""The names of types, in lower case, with the attributes that are used of each, and whether one of their values is an array of several."""
_FAMILIES = (frozenset(("concat_file", "concat_fragment")),)
"""Built-in types that only work together."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """
    The types and providers of one run.

    Attributes:
        folders: The directories of modules' plugins.
        types: The built-in types, and those of `folders` that the catalog uses, by name.
        replaced: The built-in types that a module's replaces; see `replaced_types`.
        broken: The types that the catalog uses and that could not be loaded, with their errors.
    """

    folders: Sequence[Path]
    types: Mapping[str, type[Type]]
    broken: Mapping[str, PuppetError]
    log: RunLog
    replaced: frozenset[str] = frozenset()
    ruby: RubyProcess | None = None  # the process of types in Ruby, when there are any
    ruby_providers: ProviderFactories = field(default_factory=dict)
    ruby_files: Mapping[str, Mapping[str, Path]] = field(default_factory=dict)  # providers in Ruby of the agent's own types

    def providers(self, *, files: Callable[[], FileContext], facts: Mapping[str, Any]) -> Providers:
        """Return all providers for this machine; those of modules are loaded when a resource of their type is met."""
        platform = platform_here(facts)
        makers = builtin_providers(ProviderRun(self.log, files, lambda: run_providers, self.types, platform))
        makers = {name: make for name, make in makers.items() if name not in self.replaced}
        if any((folder / "puppet" / "provider").is_dir() for folder in self.folders):
            from shared.ral.plugins import plugin_providers

            makers = plugin_providers(self.folders, self.types, makers, on_broken=lambda name, err: log_error(self.log, err))
        if self.ruby_files:
            from ..ruby.builtin import providers_in_ruby

            makers = {**makers, **providers_in_ruby(self.ruby, self.ruby_files, makers)}
        run_providers: Providers = Providers({**makers, **self.ruby_providers}, platform)
        return run_providers

    def close(self) -> None:
        """End the processes that were started for the run. Blocks for a moment."""
        if self.ruby is not None:
            self.ruby.close()


def plugins_for(catalog: Catalog, folders: Sequence[Path], log: RunLog, ruby: RubyNeeds | None = None) -> Plugins:
    """Return the types for a catalog; see `plugins_of`."""
    return plugins_of(used_types(catalog), folders, log, ruby, catalog)


def plugins_of(uses: Uses, folders: Sequence[Path], log: RunLog, ruby: RubyNeeds | None = None, catalog: Catalog | None = None) -> Plugins:
    """
    Return the used types; the files in `folders` (like a module's `lib`) are executed again. Blocks.

    A file that cannot be loaded is one error in `broken`, and in the log where there is no catalog. A built-in type counts before a
    module's, but for `replaced_types`; of a module's type in Python and in Ruby the one in Python.

    Args:
        ruby: what types in Ruby need; None: their resources fail.
        catalog: the run's, which types in Ruby may ask.
    """
    broken: dict[str, PuppetError] = {}

    def note(name: str, err: PuppetError) -> None:
        broken[name] = err
        if catalog is None:  # a run ends with the error
            log_error(log, err)

    if not any((folder / "puppet" / kind).is_dir() for folder in folders for kind in ("type", "provider")):
        return Plugins(folders, builtin_types(), broken, log)

    from shared.ral.plugins import plugin_types

    replaced = replaced_types(uses, folders)
    builtin = builtin_types(without=replaced)
    names = frozenset(uses)
    module_types = plugin_types(folders, names=names - builtin.keys(), on_broken=note)
    types: Mapping[str, type[Type]] = ChainMap(dict(module_types), builtin) if module_types else builtin  # type: ignore[arg-type]  # it is only read
    plugins = Plugins(folders, types, broken, log, replaced)
    if ruby is None:
        return plugins

    from ..ruby.builtin import files_of_providers
    from ..ruby.loading import in_ruby

    ruby_names = in_ruby(folders, names - builtin.keys() - module_types.keys() - broken.keys())
    files = files_of_providers(folders, names & builtin.keys())
    if not ruby_names and not files:
        return plugins
    process = ruby.process(folders, log, catalog) if ruby.settings.program else None
    plugins = replace(plugins, ruby=process, ruby_files=files)
    return _with_ruby(plugins, ruby_names, broken, note) if ruby_names else plugins


def replaced_types(uses: Uses, folders: Sequence[Path]) -> frozenset[str]:
    """
    Return the built-in types that lack an attribute which is used, or have one value where several are used, and that a module in
    `folders` has, too.

    A type that is built in is that of some release of its module, and another release may have more. The types of Puppet itself are not
    replaced.
    """
    builtin = builtin_types()
    lacking = {name for name in builtin.keys() & uses.keys() - CORE if not _can_be_used(builtin[name], uses[name])}
    related = {name for family in _FAMILIES if lacking & family for name in family}
    return frozenset(name for name in lacking | related if any(_has_type(folder, name) for folder in folders))


def _can_be_used(declared: type[Type], attributes: Mapping[str, bool]) -> bool:
    known = declared.declaration.attributes
    return all(name in known and not (several and known[name].is_property and not known[name].many) for name, several in attributes.items())


def _has_type(folder: Path, name: str) -> bool:
    return any((folder / "puppet" / "type" / f"{name}.{kind}").is_file() for kind in ("py", "rb"))


def _with_ruby(plugins: Plugins, names: Sequence[str], broken: dict[str, PuppetError], note: Callable[[str, PuppetError], None]) -> Plugins:
    """Return the plugins of a catalog that also uses the types `names`, which are in Ruby; `broken` gets those that cannot be used."""
    from ..ruby.loading import ruby_types, without_ruby

    if plugins.ruby is None:
        missing = without_ruby(names)
        broken |= dict.fromkeys(names, missing)
        log_error(plugins.log, missing)
        return plugins
    made, makers = ruby_types(plugins.ruby, names, note)
    all_types = ChainMap(dict(made), plugins.types)  # type: ignore[arg-type]  # it is only read
    plugins.ruby.types = all_types
    return replace(plugins, types=all_types, ruby_providers=makers)


def used_types(catalog: Catalog) -> Uses:
    """Return the types that a catalog has resources of, or purges, with the attributes that it sets."""
    uses: dict[str, dict[str, bool]] = {}
    for resource in catalog.resources:
        attributes = uses.setdefault(resource.type.lower(), {})
        for name, value in resource.parameters.items():
            attributes[name] = attributes.get(name, False) or (isinstance(value, list) and len(value) > 1)
        if resource.type == "Resources":
            uses.setdefault(str(resource.parameters.get("name", resource.title)), {})
    return uses


def log_error(log: RunLog, err: PuppetError) -> None:
    """Log an error with its hint."""
    log.err(text_with_hint(err))
