"""The choice of the terminus that answers for an indirection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.errors import ConfigError
from shared.indirector import Binding, Indirection, Terminus
from shared.indirector.plugins import PluginContext, find_plugins, indirection_of, terminus_of
from shared.indirector.routes import read_routes
from shared.settings import MasterSettings

from ..environments.directories import Environments

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

    def own_indirections(self, bound_names: set[str]) -> list[Binding[Any]]:
        """Return bindings of the indirections that modules declare; a route names the terminus when there are several."""
        bindings: dict[str, Binding[Any]] = {}
        for (name, terminus), plugin in self.plugins.items():
            route = self.routes.get(name)
            if name in bound_names or (route is not None and route.terminus not in (None, terminus)):
                continue
            declared = indirection_of(plugin)
            if declared is not None:
                context = PluginContext(self.settings.model_dump(), indirection=declared)
                bindings.setdefault(name, Binding(declared, terminus_of(plugin, context)))
        return list(bindings.values())
