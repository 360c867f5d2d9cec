"""The choice of the terminus that answers for an indirection."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import Any

from environments.directories import Environments
from shared.errors import ConfigError, text_with_hint
from shared.indirector import Binding, Indirection, Terminus
from shared.indirector.plugins import Plugin, PluginContext, find_models, find_plugins, indirection_in, indirection_of, terminus_of
from shared.indirector.routes import read_routes
from shared.settings import MasterSettings

log = logging.getLogger("puppet.indirector")

Factories = Mapping[str, Callable[[], Terminus[Any]]]


def built_in_terminus(indirection: str, factories: Factories, name: str) -> Terminus[Any]:
    """Return the terminus of that name; ConfigError when there is none."""
    if name not in factories:
        raise ConfigError(f"There is no terminus {name} for {indirection}", hint=f"There are {', '.join(sorted(factories))}.")
    return factories[name]()


class TerminusRegistry:
    """The termini by name: routes.yaml decides first, then the setting, then the default; modules may add more."""

    def __init__(self, settings: MasterSettings, environments: Environments) -> None:
        self.settings = settings
        self.routes = read_routes(settings.route_file, "master")
        modules = environments.modulepath(settings.environment) if environments.has(settings.environment) else []
        libs = [lib for base in modules if base.is_dir() for lib in sorted(base.glob("*/lib"))]
        self.plugins = find_plugins([*libs, settings.libdir])
        self.models = find_models([*libs, settings.libdir])

    def terminus(self, indirection: Indirection[Any], factories: Factories, name: str) -> Terminus[Any]:
        """Return the terminus that answers."""
        route = self.routes.get(indirection.name)
        return self.terminus_named(indirection, factories, (route.terminus if route else None) or name)

    def cache(self, indirection: Indirection[Any], factories: Factories, name: str = "") -> Terminus[Any] | None:
        """Return the cache, None when there is to be none."""
        route = self.routes.get(indirection.name)
        chosen = route.cache if route is not None and route.cache is not None else name
        return self.terminus_named(indirection, factories, chosen) if chosen else None

    def terminus_named(self, indirection: Indirection[Any], factories: Factories, name: str) -> Terminus[Any]:
        """Return the terminus of that name; ConfigError when there is none."""
        plugin = None if name in factories else self.plugins.get((indirection.name, name))
        if plugin is None:
            return built_in_terminus(indirection.name, factories, name)
        return terminus_of(plugin, PluginContext(self.settings.model_dump(), indirection=indirection))

    def own_indirections(self, bound_names: Set[str], reserved_names: Set[str]) -> list[Binding[Any]]:
        """
        Return bindings of the indirections that modules declare.

        A route names the terminus; otherwise it is the first that is not `rest`, which is for agents. One that cannot be served is one
        error in the log.

        Args:
            bound_names: Indirections that are built in, which nothing replaces.
            reserved_names: Names that no indirection may have, for endpoints have them.
        """
        bindings: dict[str, Binding[Any]] = {}
        for name in dict.fromkeys([*self.models, *(of for of, _ in self.plugins)]):
            if name in bound_names and name not in self.models:
                continue  # a terminus of a built-in one
            try:
                binding = self._own_binding(name, built_in=name in bound_names or name in reserved_names)
            except ConfigError as err:
                log.error("The indirection %s of a module is not served: %s", name, text_with_hint(err))
                continue
            if binding is not None:
                bindings[name] = binding
        return list(bindings.values())

    def _own_binding(self, name: str, *, built_in: bool) -> Binding[Any] | None:
        """Return the binding of an indirection of a module; None when no file declares one of that name. ConfigError."""
        route = self.routes.get(name)
        plugins = {terminus: plugin for (of, terminus), plugin in self.plugins.items() if of == name}
        if name in self.models:
            declared: Indirection[Any] | None = indirection_in(self.models[name])
        else:
            declared = self._declared_beside_terminus(plugins)
        if declared is None:
            return None
        if built_in:
            raise ConfigError(f"that name is the master's own (file: {self._file(name, plugins)})", hint="Give it another name.")
        terminus = (route.terminus if route else None) or next((each for each in plugins if each != "rest"), "")
        if terminus not in plugins:
            known = f"there is no terminus {terminus}" if terminus else "it has no terminus for a master"
            raise ConfigError(f"{known} (file: {self._file(name, plugins)})", hint=f"One would be lib/puppet/indirector/{name}/NAME.py.")
        cache = route.cache if route else ""
        context = PluginContext(self.settings.model_dump(), indirection=declared)
        return Binding(
            declared,
            terminus_of(plugins[terminus], context),
            cache=terminus_of(plugins[cache], context) if cache and cache in plugins else None,
        )

    @staticmethod
    def _declared_beside_terminus(plugins: Mapping[str, Plugin]) -> Indirection[Any] | None:
        return next((declared for plugin in plugins.values() if (declared := indirection_of(plugin)) is not None), None)

    def _file(self, name: str, plugins: Mapping[str, Plugin]) -> Path:
        return self.models[name] if name in self.models else next(plugin.path for plugin in plugins.values())
