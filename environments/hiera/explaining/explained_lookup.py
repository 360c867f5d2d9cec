"""A lookup that records its steps: each class does the same as its base class, and reports it to an Explainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from language.host import DataContext, LookupArguments
from language.values.core import MISSING, MaybeValue, Value

from ..data_layers import DataLayers
from ..hierarchy.data_provider import DataProvider
from ..hierarchy.levels import HierarchyLevel
from ..hierarchy.locations import DataLocation
from ..invocation import FindNested, Invocation
from ..keys import LookupKey, Segment, dig_one, parse_key
from ..layer_search import LayerSearch
from ..lookup import Lookup
from ..lookup_options import OPTIONS, is_options_key, merge_options
from ..merging import HASH, Merge, Variant
from .explanation import Explainer, ExplanationStep

_VARIABLE_EVENTS = {"overrides": "found_in_overrides", "scope": "found", "defaults": "found_in_defaults"}


class ExplainedInvocation(Invocation):
    """Records interpolation, variables and digging."""

    __slots__ = ("explainer",)

    def __init__(self, context: DataContext, find_nested: FindNested, arguments: LookupArguments, above: Invocation | None = None) -> None:
        super().__init__(context, find_nested, arguments, above)
        self.explainer: Explainer = above.explainer if isinstance(above, ExplainedInvocation) else arguments.explainer

    def explain(self, text: Callable[[], Any]) -> None:
        self.explainer.add_text(str(text()))

    def dig(self, value: Value, segments: Sequence[Segment], key: str) -> MaybeValue:
        explainer = self.explainer
        with explainer.within("sub_key", ".".join(map(str, segments))):
            for segment in segments:
                with explainer.within("segment", segment):
                    element = dig_one(value, segment, key)
                    if element is MISSING:
                        explainer.record("not_found", segment)
                        return MISSING
                    explainer.record("found", segment, element)
                value = element
        return value

    def interpolate_text(self, text: str, methods: bool | None) -> Value:
        with self.explainer.within("interpolate", text):
            return super().interpolate_text(text, methods)

    def variable_for_path(self, root: str, path: Sequence[Segment]) -> Value:
        with self.explainer.within("scope", "Global Scope"):
            return self.variable(root)

    def variable(self, name: str) -> Value:
        source, value = self.resolve_variable(name)
        if source in _VARIABLE_EVENTS:
            self.explainer.record(_VARIABLE_EVENTS[source], name, value)
        return value


class ExplainedSearch(LayerSearch):
    """Records layers, levels and locations."""

    __slots__ = ("explainer",)
    invocation: ExplainedInvocation

    def __init__(self, layers: DataLayers, invocation: Invocation) -> None:
        super().__init__(layers, invocation)
        self.explainer = self.invocation.explainer

    def merge_over(self, merge: Merge, variants: Sequence[Variant], find: Callable[[Variant], MaybeValue]) -> MaybeValue:
        if len(variants) < 2 or merge.first:
            return super().merge_over(merge, variants, find)
        options = {key: value for key, value in merge.options.items() if key != "strategy"}
        with self.explainer.within("merge", merge.strategy, options):
            value = super().merge_over(merge, variants, find)
            if value is not MISSING:
                self.explainer.record("result", None, value)
            return value

    def in_global(self, key: LookupKey, merge: Merge) -> MaybeValue:
        if self.global_terminus == "none":
            self.explainer.record("not_found", key.text)
        return super().in_global(key, merge)

    def in_module(self, key: LookupKey, merge: Merge) -> MaybeValue:
        name = self.invocation.module
        if name is not None and self.layers.module_provider(name, self.invocation.context) is None:
            exists = self.layers.sources.module_root(name) is not None
            self.explainer.add(ExplanationStep("module", name, event="module_provider_not_found" if exists else "module_not_found"))
        return super().in_module(key, merge)

    def in_default_hierarchy(self, provider: DataProvider, key: LookupKey, merge: Merge) -> MaybeValue:
        with self.explainer.within("scope", f'Searching for "{key.text}"'):
            return super().in_default_hierarchy(provider, key, merge)

    def in_provider(self, provider: DataProvider, key: LookupKey, merge: Merge) -> MaybeValue:
        return self.in_levels(provider, key, merge)

    def in_levels(self, provider: DataProvider, key: LookupKey, merge: Merge, *, default: bool = False) -> MaybeValue:
        with self.explainer.within("data_provider", provider.title, provider.config.path, provider.module):
            if provider.is_outdated(self.invocation):
                self.explainer.add_text("Hiera configuration recreated due to change of scope variables used in interpolation expressions")
            if not provider.levels(self.invocation, default=default):
                self.explainer.record("not_found", key.text)
            return super().in_levels(provider, key, merge, default=default)

    def in_level(self, level: HierarchyLevel, key: LookupKey, merge: Merge) -> MaybeValue:
        with self.explainer.within("data_provider", level.title):
            return super().in_level(level, key, merge)

    def value_at(self, level: HierarchyLevel, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        if location is None:
            return self._record(super().value_at(level, location, key), level, key)
        with self.explainer.within(location.kind, location.text, location.original):
            value = super().value_at(level, location, key)
            if not location.exists:
                self.explainer.record("location_not_found")
                return value
            return self._record(value, level, key)

    def _record(self, value: MaybeValue, level: HierarchyLevel, key: LookupKey) -> MaybeValue:
        name = key.text if level.digs else key.root
        if value is MISSING:
            self.explainer.record("not_found", name)
        else:
            self.explainer.record("found", name, value)
        return value


class ExplainedLookup(Lookup):
    """Records the key, its options and its conversion."""

    invocation_class = ExplainedInvocation
    search_class = ExplainedSearch
    search: ExplainedSearch

    @property
    def explainer(self) -> Explainer:
        return self.search.explainer

    def find(self, text: str, merge: Any) -> MaybeValue:
        if is_options_key(text):
            self.explainer.add(ExplanationStep("invalid_key", OPTIONS))
        return super().find(text, merge)

    def find_key(self, key: LookupKey, merge: Any) -> MaybeValue:
        if not self.explainer.only_options:
            return super().find_key(key, merge)
        self.search.in_layers(parse_key(OPTIONS), HASH)
        return None

    def merge_option(self, options: Mapping[str, Any]) -> Any:
        self.explainer.add(ExplanationStep("merge_source", OPTIONS))
        return super().merge_option(options)

    def find_value(self, key: LookupKey, merge: Any) -> MaybeValue:
        with self.explainer.within("data", key.text):
            return super().find_value(key, merge)

    def convert(self, key: LookupKey, value: Value, conversion: Value) -> Value:
        converted = super().convert(key, value, conversion)
        arguments = ", ".join(str(argument) for argument in (conversion if isinstance(conversion, list) else [conversion]))
        self.explainer.add_text(f"Applying convert_to lookup_option with arguments [{arguments}]")
        return converted

    def find_default(self, module: str, provider: DataProvider, key: LookupKey) -> MaybeValue:
        with self.explainer.within("scope", f'Searching default_hierarchy of module "{module}"'):
            return super().find_default(module, provider, key)

    def read_options(self, search: LayerSearch, module: str | None) -> Mapping[str, Any] | None:
        with self.explainer.within("meta", OPTIONS):
            return super().read_options(search, module)

    def add_module_options(
        self, options: Mapping[str, Any] | None, module_options: Mapping[str, Any], module: str
    ) -> Mapping[str, Any] | None:
        if options is None:
            return merge_options(options, module_options)

        def options_of(owner: str) -> Value:
            with self.explainer.within("scope", owner):
                value = dict(module_options if owner == f"Module {module}" else options)
                self.explainer.record("found", OPTIONS, value)
                return value

        merged = self.search.merge_over(HASH, ("Global and Environment", f"Module {module}"), options_of)
        return merged if isinstance(merged, dict) else None
