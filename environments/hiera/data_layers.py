"""The layers of data: the site's own, the environment's and the modules'. Source: language reference 18.1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from language.host import DataContext
from language.values.core import Strictness
from shared.errors import EvaluationError

from .data.config import HierarchyConfig, HierarchyEntry
from .data.config_reader import default_config
from .data.sources import DataSources
from .hierarchy.data_provider import DataProvider
from .invocation import Invocation
from .lookup_options import LookupOptions


@dataclass(frozen=True, slots=True)
class Deprecation:
    """
    A deprecated setting that somebody still uses.

    Attributes:
        key: each compilation warns once for each key.
        message: the sentence about it, without a full stop.
        file: where the setting is.
    """

    key: str
    message: str
    file: str

    def warn(self, context: DataContext, addition: str = "") -> None:
        context.warn_once("deprecations", self.key, self.message + addition, self.file)


@dataclass(frozen=True, slots=True)
class LegacyProvider:
    """
    The setting from before hiera.yaml version 5 that selects the data of an environment or module.

    Attributes:
        setting: its name. value: none, hiera, function, or '' when it is not set.
    """

    setting: str
    value: str
    deprecation: Deprecation


class DataLayers:
    """
    The layers of one compilation, opened when they are first searched, and the data that its lookups share.

    Attributes:
        running: the invocation of the innermost lookup that runs; None between lookups.
        options: lookup_options by module; under None those for keys of no module.
        default_options: lookup_options of modules' default hierarchies.
        raw_options: lookup_options of the layers "global" and "environment" as their data has them; None when it has none.
    """

    def __init__(self, sources: DataSources) -> None:
        self.sources = sources
        self.running: Invocation | None = None
        self.options: dict[str | None, LookupOptions] = {}
        self.default_options: dict[str, LookupOptions] = {}
        self.raw_options: dict[str, Mapping[str, Any] | None] = {}
        self._global: DataProvider | None = None
        self._environment: DataProvider | None = None
        self._environment_read = False
        self._modules: dict[str, DataProvider | None] = {}

    # --- the three kinds of layers ---

    def global_provider(self, context: DataContext) -> DataProvider:
        """Return the site's own layer; DataError when its hiera.yaml is of version 4."""
        if self._global is None:
            config = self.sources.global_config(context.warn)
            self._warn_of_old_version(config, context)
            # Version 4 was only ever meant for environments and modules.
            if config.version == 4:
                raise config.failure("hiera.yaml version 4 cannot be used in the global layer")
            self._global = DataProvider("Global", config, self.sources)
        return self._global

    def environment_provider(self, context: DataContext) -> DataProvider | None:
        """Return the environment's layer; None when it has no data of its own."""
        # None is a valid result (no hiera.yaml), so that a flag has to remember the attempt.
        if not self._environment_read:
            root, value = self.sources.root, self.sources.data_provider
            message = f"Defining environment_data_provider='{value}' in environment.conf is deprecated"
            deprecation = Deprecation("environment.conf#data_provider", message, f"{root}/environment.conf")
            legacy = LegacyProvider("environment_data_provider", value, deprecation)
            self._environment = self._open("Environment", root, None, legacy, context)
            self._environment_read = True
        return self._environment

    def has_environment_data(self, context: DataContext) -> bool:
        """Return whether the environment has data of its own in version 5."""
        provider = self.environment_provider(context)
        return provider is not None and provider.config.version >= 5

    def module_provider(self, name: str, context: DataContext) -> DataProvider | None:
        """Return a module's layer; None when there is no such module, or it has no data."""
        if name not in self._modules:
            root = self.sources.module_root(name)
            self._modules[name] = None if root is None else self._open_module(name, root, context)
        return self._modules[name]

    def _open_module(self, name: str, root: str, context: DataContext) -> DataProvider | None:
        value = self.sources.module_data_provider(name)
        message = f'Defining "data_provider": "{value}" in metadata.json is deprecated'
        deprecation = Deprecation(f"metadata.json#data_provider-{name}", message, f"{root}/metadata.json")
        return self._open("Module", root, name, LegacyProvider("module_data_provider", value, deprecation), context)

    # --- opening ---

    def _open(self, layer: str, root: str, module: str | None, legacy: LegacyProvider, context: DataContext) -> DataProvider | None:
        """Return the layer of an environment or a module in the folder `root`; None when it has no data."""
        path = f"{root}/hiera.yaml"
        config = self.sources.config(path, layer.lower(), context.warn)
        provider = None
        if config is not None:
            self._warn_of_old_version(config, context)
            provider = DataProvider(layer, config, self.sources, module) if self._accepts_version(config, path, module, context) else None
        if not legacy.value:
            return provider
        warns = self.sources.strict is not Strictness.OFF
        # A hiera.yaml 5 beats the settings of older versions, which then only cause a warning.
        if config is not None and config.version >= 5:
            if warns:
                ignored = ". It is ignored since a 'hiera.yaml' with version >= 5 is present"
                legacy.deprecation.warn(context, ignored if module is not None else "")
            return provider
        if warns:
            legacy.deprecation.warn(context, "." + (" A 'hiera.yaml' file should be used instead" if provider is None else ""))
        if legacy.value == "none":
            return None
        if legacy.value == "hiera":
            return provider or DataProvider(layer, default_config(root), self.sources, module)
        if legacy.value == "function":
            function = f"{module or 'environment'}::data"
            entry = HierarchyEntry(f"Legacy function '{function}'", "v4_data_hash", function)
            return DataProvider(layer, HierarchyConfig(None, 5, (entry,)), self.sources, module)
        raise EvaluationError(
            f"Environment '{self.sources.environment}', cannot find {legacy.setting} '{legacy.value}'", hint="There are hiera and none."
        )

    def _warn_of_old_version(self, config: HierarchyConfig, context: DataContext) -> None:
        if config.version in (3, 4) and config.path is not None and self.sources.strict is not Strictness.OFF:
            text = f"{config.path}: Use of 'hiera.yaml' version {config.version} is deprecated. It should be converted to version 5"
            Deprecation(f"hiera.yaml {config.path}", text, config.path).warn(context)

    def _accepts_version(self, config: HierarchyConfig, path: str, module: str | None, context: DataContext) -> bool:
        """Return whether a configuration may be used in this layer; version 3 is ignored with a warning, or is a DataError."""
        # Version 3 is valid in the global layer only.
        if config.version > 3:
            return True
        if self.sources.strict is Strictness.ERROR:
            raise config.failure(f"hiera.yaml version 3 cannot be used in {'an environment' if module is None else 'a module'}")
        folder = "the environment root" if module is None else "module root"
        context.warn_once("hiera_v3_ignored", path, f"hiera.yaml version 3 found at {folder} was ignored", path)
        return False
