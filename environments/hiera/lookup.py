"""One key looked up: its options, the layers, the module's defaults, conversion. Source: language reference 18.1, 18.5."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from language.host import DataContext, LookupArguments
from language.values.core import MISSING, MaybeValue, Value

from .data_layers import DataLayers
from .explanation import ExplanationStep
from .hierarchy.data_provider import DataProvider
from .invocation import Invocation
from .keys import LookupKey, parse_key
from .layer_search import LayerSearch
from .lookup_options import OPTIONS, LookupOptions, is_options_key, merge_options, validate_options
from .merging import HASH, merge_of


class Lookup:
    """One lookup of one key. It reads from top to bottom."""

    def __init__(self, layers: DataLayers, invocation: Invocation) -> None:
        self.layers = layers
        self.invocation = invocation
        self.explainer = invocation.explainer
        self.search = LayerSearch(layers, invocation)

    @classmethod
    def begin(cls, layers: DataLayers, context: DataContext, arguments: LookupArguments, above: Invocation | None) -> Lookup:
        """Return a new lookup; `above` is the invocation of the one that needs it, None for the first."""

        def find_nested(invocation: Invocation, key: str) -> MaybeValue:
            return cls(layers, invocation).find(key, None)

        return cls(layers, Invocation(context, find_nested, arguments, above))

    def find(self, text: str, merge: Any) -> MaybeValue:
        """
        Return the value of a key; MISSING when there is none.

        Args:
            merge: a strategy as `merge_of` reads it; None: as lookup_options say.
        """
        if is_options_key(text):
            self.explainer.add(ExplanationStep("invalid_key", OPTIONS))
            return MISSING
        if not text:
            return MISSING
        key = parse_key(text)
        self.invocation.top_key, self.invocation.module = text, key.module
        # Functions called by the data find their own lookup here, for loop detection and explanations.
        above, self.layers.running = self.layers.running, self.invocation
        try:
            return self._find_key(key, merge)
        finally:
            self.layers.running = above

    def _find_key(self, key: LookupKey, merge: Any) -> MaybeValue:
        """Return the value of a parsed key, merged and converted as its options say."""
        if self.explainer.only_options:
            self.search.in_layers(parse_key(OPTIONS), HASH)
            return None
        options = self._options_for(key)
        if merge is None and options.get("merge") is not None:
            self.explainer.add(ExplanationStep("merge_source", OPTIONS))
            merge = options["merge"]
        with self.explainer.within("data", key.text):
            value = self._find_value(key, merge)
        conversion = options.get("convert_to")
        if value is MISSING or conversion is None:
            return value
        converted = self.invocation.context.convert(key.text, value, conversion)
        arguments = ", ".join(map(str, conversion if isinstance(conversion, list) else [conversion]))
        self.explainer.add_text(f"Applying convert_to lookup_option with arguments [{arguments}]")
        return converted

    def _find_value(self, key: LookupKey, merge: Any) -> MaybeValue:
        """Return the value at the path of a key, as the data has it."""
        value = self.search.in_layers(key, merge_of(merge))
        if value is not MISSING and key.segments:
            value = self.invocation.dig(value, key.segments, key.text)
        # The default hierarchy is asked only when no layer has the key; its values are never merged with theirs.
        if value is MISSING and not self.invocation.global_only:
            value = self._in_default_hierarchy(key)
            if value is not MISSING and key.segments:
                value = self.invocation.dig(value, key.segments, key.text)
        return value

    # --- the default hierarchy of the key's module ---

    def _in_default_hierarchy(self, key: LookupKey) -> MaybeValue:
        name = self.invocation.module
        provider = self.layers.module_provider(name, self.invocation.context) if name is not None else None
        if name is None or provider is None or provider.config.default_entries is None:
            return MISSING
        with self.explainer.within("scope", f'Searching default_hierarchy of module "{name}"'):
            return self._find_default(name, provider, key)

    def _find_default(self, module: str, provider: DataProvider, key: LookupKey) -> MaybeValue:
        """Return the value that a module's default hierarchy has for a key, merged as its own lookup_options say."""
        if module not in self.layers.default_options:
            data = self.search.in_default_hierarchy(provider, parse_key(OPTIONS), HASH)
            validated = None if data is MISSING else validate_options(data, module)
            self.layers.default_options[module] = LookupOptions.compile(validated)
        options = self.layers.default_options[module].for_key(key)
        return self.search.in_default_hierarchy(provider, key, merge_of(options.get("merge")))

    # --- options ---

    def _options_for(self, key: LookupKey) -> Mapping[str, Any]:
        """Return the lookup_options of a key; empty when it has none."""
        # Options are read once for each module and compile: reading them is itself a lookup in all layers.
        if key.module not in self.layers.options:
            # A lookup of its own: its errors name the key lookup_options, and it must not count as a loop.
            meta = self.invocation.inner()
            meta.top_key, meta.module = OPTIONS, self.invocation.module
            above, self.layers.running = self.layers.running, meta
            try:
                with self.explainer.within("meta", OPTIONS):
                    options = self._read_options(LayerSearch(self.layers, meta), key.module)
                self.layers.options[key.module] = LookupOptions.compile(options)
            finally:
                self.layers.running = above
        return self.layers.options[key.module].for_key(key)

    def _read_options(self, search: LayerSearch, module: str | None) -> Mapping[str, Any] | None:
        """Return the lookup_options that hold for the keys of a module, or for keys of none: those of all layers, merged."""
        key = parse_key(OPTIONS)
        site = self._read_once("global", lambda: search.in_global(key, HASH))
        if search.invocation.global_only:
            return site
        options = merge_options(site, self._read_once("environment", lambda: search.in_environment(key, HASH)))
        if module is None:
            return options
        self.layers.options.setdefault(None, LookupOptions.compile(options))
        module_options = search.in_module(key, HASH)
        if module_options is MISSING:
            return options
        own = validate_options(module_options, module)
        if options is not None:
            self._explain_options({"Global and Environment": options, f"Module {module}": own})
        return merge_options(options, own)

    def _explain_options(self, options_by_owner: Mapping[str, Mapping[str, Any]]) -> None:
        def options_of(owner: str) -> Value:
            with self.explainer.within("scope", owner):
                options = dict(options_by_owner[owner])
                self.explainer.record("found", OPTIONS, options)
                return options

        if self.explainer.is_asked:
            self.search.merge_over(HASH, [*options_by_owner], options_of)

    def _read_once(self, layer: str, read: Callable[[], MaybeValue]) -> Mapping[str, Any] | None:
        if layer not in self.layers.raw_options:
            options = read()
            self.layers.raw_options[layer] = None if options is MISSING else validate_options(options, None)
        return self.layers.raw_options[layer]
