"""A key through all layers: options, merging, conversion. Source: language reference 18.1, 18.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.errors import EvaluationError
from shared.regexps import Regexp

from ..compiler.host import DataContext, NotFoundInData
from ..compiler.values.core import Strictness, Value
from .config import Config, Entry, default_config
from .contexts import Cache, LookupContext
from .explaining import Step
from .failures import BadUse, DataError
from .interpolation import Key, dug, key_from
from .invocations import Invocation
from .merging import HASH, MISSING, Merge, merge_of
from .providers import GlobalProvider, Provider
from .sources import Sources

__all__ = ["Lookups"]

OPTIONS = "lookup_options"

Options = tuple[Mapping[str, Any], list[tuple[Regexp, Any]]]
"""Lookup options by key, and by pattern."""


class Lookups:
    """The lookups of one compilation: its layers, and what was read of lookup_options."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._current: Invocation | None = None
        self._global: GlobalProvider | None = None
        self._environment: Provider | None = None
        self._environment_read = False
        self._modules: dict[str, Provider | None] = {}
        self._options: dict[str | None, Options | None] = {}
        self._raw: dict[str, Any] = {}
        self._default_options: dict[str, Options | None] = {}

    def look_up(self, key: str, context: DataContext, merge: Any = None) -> Value:
        """
        The value of a key, for a function or a parameter of a class.

        Raises:
            NotFoundInData: there is none. EvaluationError: what is wrong with the data, or with `merge`.
        """
        invocation = Invocation(self, context, self._current)
        if context.hiera_call:
            invocation.hiera_call = True
            invocation.global_only = invocation.global_only or not self.has_environment_data(invocation)
            invocation.extra_paths = context.extra_paths
        value = self.find(invocation, key, merge)
        if value is MISSING:
            raise NotFoundInData(key)
        return value

    def detached_context(self, context: DataContext, module: str | None) -> LookupContext:
        """A context that no lookup gave to a function."""
        return LookupContext(Invocation(self, context), module, Cache(), detached=True)

    def find(self, invocation: Invocation, key: str, merge: Any) -> Value:
        """The value of a key; MISSING when there is none."""
        if key == OPTIONS or key.startswith(f"{OPTIONS}."):
            with invocation.within("invalid_key", OPTIONS):
                return MISSING
        if not key:
            return MISSING
        parsed = key_from(key)
        invocation.top_key, invocation.module = key, parsed.module
        above, self._current = self._current, invocation
        try:
            return self._found(invocation, parsed, merge)
        finally:
            self._current = above

    def _found(self, invocation: Invocation, key: Key, merge: Any) -> Value:
        explainer = invocation.explainer
        if explainer is not None and explainer.only_options:
            self._only_options(invocation)
            return None
        options = self.options_for(invocation, key)
        if merge is None and options is not None and options.get("merge") is not None:
            merge = options["merge"]
            if explainer is not None:
                explainer.add(Step("merge_source", OPTIONS))
        with invocation.within("data", key.text):
            value = self._data(invocation, key, merge)
            if value is MISSING and not invocation.global_only:
                value = self._default_in_module(invocation, key)
                if value is not MISSING and key.segments:
                    value = dug(invocation, value, key.segments, key.text)
        if value is MISSING or options is None or options.get("convert_to") is None:
            return value
        return self._converted(invocation, key, value, options["convert_to"])

    @staticmethod
    def _converted(invocation: Invocation, key: Key, value: Value, wanted: Any) -> Value:
        converted = invocation.context.convert(key.text, value, wanted)
        if invocation.explainer is not None:
            shown = ", ".join(str(each) for each in (wanted if isinstance(wanted, list) else [wanted]))
            invocation.explainer.say(f"Applying convert_to lookup_option with arguments [{shown}]")
        return converted

    def _data(self, invocation: Invocation, key: Key, merge: Any) -> Value:
        if invocation.global_only:
            value = self._in_global(invocation, key, merge_of(merge))
        else:
            strategy = merge_of(merge)
            layers = (self._in_global, self._in_environment, self._in_module)
            value = invocation.over(strategy, layers, lambda layer: layer(invocation, key, strategy))
        if value is not MISSING and key.segments:
            return dug(invocation, value, key.segments, key.text)
        return value

    # --- layers ---

    def _in_global(self, invocation: Invocation, key: Key, merge: Merge) -> Value:
        terminus = "hiera" if invocation.hiera_call else self.sources.terminus
        if terminus == "none":
            invocation.tell("not_found", key.text)
            return MISSING
        if terminus != "hiera":
            raise EvaluationError(f"There is no terminus {terminus} for data_binding", hint="There are hiera and none.")
        try:
            with invocation.checked(key.text):
                return self._global_provider(invocation).find(invocation, key, merge)
        except DataError as error:
            if error.final:
                raise
            raise EvaluationError(f"Lookup of key '{invocation.top_key}' failed: {error.message}", hint=error.hint) from error
        except EvaluationError as error:
            if isinstance(error, BadUse) or error.where is None or error.where.file is not None:
                raise
            raise EvaluationError(f"Lookup of key '{invocation.top_key}' failed: {error.message}", hint=error.hint) from error

    def _in_environment(self, invocation: Invocation, key: Key, merge: Merge) -> Value:
        provider = self.environment_provider(invocation)
        if provider is None:
            return MISSING
        with invocation.checked(key.text):
            return provider.find(invocation, key, merge)

    def _in_module(self, invocation: Invocation, key: Key, merge: Merge) -> Value:
        name = invocation.module
        if name is None:
            return MISSING
        provider = self.module_provider(name, invocation)
        if provider is None:
            if invocation.explainer is not None:
                known = self.sources.module_root(name) is not None
                event = "module_provider_not_found" if known else "module_not_found"
                invocation.explainer.add(Step("module", name, event=event))
            return MISSING
        with invocation.checked(key.text):
            return provider.find(invocation, key, merge)

    def _default_in_module(self, invocation: Invocation, key: Key) -> Value:
        name = invocation.module
        provider = self.module_provider(name, invocation) if name is not None else None
        if provider is None or provider.config.default_entries is None or name is None:
            return MISSING
        with invocation.within("scope", f'Searching default_hierarchy of module "{name}"'):
            if name not in self._default_options:
                with invocation.within("scope", f'Searching for "{OPTIONS}"'):
                    found = self._default(provider, invocation, key_from(OPTIONS), HASH)
                self._default_options[name] = None if found is MISSING else _compiled(_validated(found, name))
            options = _chosen(self._default_options[name], key)
            merge = merge_of((options or {}).get("merge"))
            with invocation.within("scope", f'Searching for "{key.text}"'):
                return self._default(provider, invocation, key, merge)

    @staticmethod
    def _default(provider: Provider, invocation: Invocation, key: Key, merge: Merge) -> Value:
        with invocation.checked(key.text):
            return provider.find(invocation, key, merge, default=True)

    # --- providers ---

    def _global_provider(self, invocation: Invocation) -> GlobalProvider:
        if self._global is None:
            config = self.sources.global_config(invocation.context.warn)
            self._deprecated(config, invocation)
            if config.version == 4:
                raise config.failure("hiera.yaml version 4 cannot be used in the global layer")
            self._global = GlobalProvider("Global", config)
        return self._global

    def has_environment_data(self, invocation: Invocation) -> bool:
        """Whether the environment has data of its own, of version 5."""
        provider = self.environment_provider(invocation)
        return provider is not None and provider.config.version >= 5

    def environment_provider(self, invocation: Invocation) -> Provider | None:
        if not self._environment_read:
            root = self.sources.root
            self._environment = self._provider(
                invocation,
                "Environment",
                root,
                None,
                self.sources.data_provider,
                kind="environment_data_provider",
                told=("environment.conf#data_provider", "Defining environment_data_provider='{}' in environment.conf is deprecated"),
                where=f"{root}/environment.conf",
            )
            self._environment_read = True
        return self._environment

    def module_provider(self, name: str, invocation: Invocation) -> Provider | None:
        if name not in self._modules:
            root = self.sources.module_root(name)
            self._modules[name] = (
                None
                if root is None
                else self._provider(
                    invocation,
                    "Module",
                    root,
                    name,
                    self.sources.module_data_provider(name),
                    kind="module_data_provider",
                    told=(f"metadata.json#data_provider-{name}", 'Defining "data_provider": "{}" in metadata.json is deprecated'),
                    where=f"{root}/metadata.json",
                )
            )
        return self._modules[name]

    def _provider(
        self,
        invocation: Invocation,
        place: str,
        root: str,
        module: str | None,
        legacy: str,
        *,
        kind: str,
        told: tuple[str, str],
        where: str,
    ) -> Provider | None:
        """The data of an environment or module; `legacy` is what an old setting says of where it is."""
        path = f"{root}/hiera.yaml"
        config = self.sources.config(path, place.lower(), invocation.context.warn)
        provider = None
        if config is not None:
            self._deprecated(config, invocation)
            provider = Provider(place, config, module) if self._allowed(config, place, path, invocation) else None
        warns = self.sources.strict is not Strictness.OFF
        if not legacy:
            return provider
        sentence = told[1].format(legacy)
        if config is not None and config.version >= 5:
            if warns:
                ignored = ". It is ignored since a 'hiera.yaml' with version >= 5 is present" if module is not None else ""
                invocation.context.warn_once("deprecations", told[0], sentence + ignored, where)
            return provider
        if warns:
            instead = " A 'hiera.yaml' file should be used instead" if provider is None else ""
            invocation.context.warn_once("deprecations", told[0], f"{sentence}.{instead}", where)
        if legacy == "none":
            return None
        if legacy == "hiera":
            return provider or Provider(place, default_config(root), module)
        if legacy == "function":
            function = f"{module or 'environment'}::data"
            return Provider(place, Config(None, 5, (Entry(f"Legacy function '{function}'", "v4_data_hash", function),)), module)
        raise EvaluationError(f"Environment '{self.sources.environment}', cannot find {kind} '{legacy}'", hint="There are hiera and none.")

    def _deprecated(self, config: Config, invocation: Invocation) -> None:
        if config.version in (3, 4) and config.path is not None and self.sources.strict is not Strictness.OFF:
            text = f"{config.path}: Use of 'hiera.yaml' version {config.version} is deprecated. It should be converted to version 5"
            invocation.context.warn_once("deprecations", f"hiera.yaml {config.path}", text, config.path)

    def _allowed(self, config: Config, place: str, path: str, invocation: Invocation) -> bool:
        if config.version > 3:
            return True
        module = place == "Module"
        if self.sources.strict is Strictness.ERROR:
            raise config.failure(f"hiera.yaml version 3 cannot be used in {'a module' if module else 'an environment'}")
        where = "module root" if module else "the environment root"
        invocation.context.warn_once("hiera_v3_ignored", path, f"hiera.yaml version 3 found at {where} was ignored", path)
        return False

    # --- options ---

    def options_for(self, invocation: Invocation, key: Key) -> Mapping[str, Any] | None:
        """What lookup_options say of a key: by its name, else by the first pattern that matches it."""
        module = key.module
        if module not in self._options:
            self._options[module] = self._read_options(module, invocation)
        return _chosen(self._options[module], key)

    def _only_options(self, invocation: Invocation) -> None:
        self._data(invocation, key_from(OPTIONS), "hash")

    def _read_options(self, module: str | None, invocation: Invocation) -> Options | None:
        meta = invocation.inner()
        meta.top_key, meta.module = OPTIONS, invocation.module
        above, self._current = self._current, meta
        try:
            with meta.within("meta", OPTIONS):
                if meta.global_only:
                    return _compiled(self._once("global", lambda: self._in_global(meta, key_from(OPTIONS), HASH)))
                return self._merged_options(meta, module)
        finally:
            self._current = above

    def _merged_options(self, meta: Invocation, module: str | None) -> Options | None:
        key = key_from(OPTIONS)
        site = self._once("global", lambda: self._in_global(meta, key, HASH))
        own = self._once("environment", lambda: self._in_environment(meta, key, HASH))
        given = own if site is None else site if own is None else HASH.merged(site, own)
        if module is not None:
            self._options.setdefault(None, _compiled(given))
            found = self._in_module(meta, key, HASH)
            modules = None if found is MISSING else _validated(found, module)
            if given is None:
                given = modules
            elif modules is not None:
                given = self._both(meta, given, modules, module)
        return _compiled(given)

    @staticmethod
    def _both(meta: Invocation, given: Any, modules: Any, module: str) -> Any:
        def told(name: str) -> Value:
            value = given if name == "Global and Environment" else modules
            with meta.within("scope", name):
                meta.tell("found", OPTIONS, value)
            return value

        return meta.over(HASH, ("Global and Environment", f"Module {module}"), told)

    def _once(self, layer: str, read: Callable[[], Value]) -> Any:
        if layer not in self._raw:
            found = read()
            self._raw[layer] = None if found is MISSING else _validated(found, None)
        return self._raw[layer]


def _validated(options: Any, module: str | None) -> Mapping[str, Any]:
    """Options that say something only of what they may."""
    if not isinstance(options, dict):
        raise DataError(f"value of {OPTIONS} must be a hash")
    prefix = f"{module}::"
    for key in options if module is not None else ():
        if str(key).startswith("^"):
            if str(key)[1 : len(prefix) + 1] != prefix:
                raise DataError(f"all {OPTIONS} patterns must match a key starting with module name '{module}'")
        elif not str(key).startswith(prefix):
            raise DataError(f"all {OPTIONS} keys must start with module name '{module}'")
    return options


def _compiled(options: Any) -> Options | None:
    if options is None or options is MISSING:
        return None
    patterns = []
    for key, value in options.items():
        if str(key).startswith("^"):
            pattern = Regexp(str(key))
            try:
                _ = pattern.pattern
            except EvaluationError as error:
                raise BadUse(error.message, hint=error.hint) from error
            patterns.append((pattern, value))
    return {key: value for key, value in options.items() if not str(key).startswith("^")}, patterns


def _chosen(options: Options | None, key: Key) -> Mapping[str, Any] | None:
    if options is None:
        return None
    found = options[0].get(key.root)
    if found is None:
        found = next((value for pattern, value in options[1] if pattern.search(key.root)), None)
    return found if isinstance(found, dict) else None
