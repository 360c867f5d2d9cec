"""One key searched through the layers, the levels of a layer and the locations of a level. Source: language reference 18.1, 18.2."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from language.types.kinds.containers import HASH
from language.values.core import MISSING, MaybeValue, Value
from shared.errors import EvaluationError

from .data_layers import DataLayers
from .errors import DataError, LookupUsageError
from .explanation import ExplanationStep
from .hierarchy.data_provider import DataProvider
from .hierarchy.levels import HierarchyLevel
from .hierarchy.locations import DataLocation
from .invocation import Invocation
from .keys import LookupKey
from .merging import Merge, Variant, require_type


class LayerSearch:
    """The search for keys on behalf of one invocation. All methods return MISSING when there is no value."""

    __slots__ = ("explainer", "invocation", "layers")

    def __init__(self, layers: DataLayers, invocation: Invocation) -> None:
        self.layers = layers
        self.invocation = invocation
        self.explainer = invocation.explainer

    def in_layers(self, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value of a key in all layers that the invocation may see."""
        # Set by a hiera.yaml 3 in the global layer: as in the reference, other layers count only if the environment has data of version 5.
        if self.invocation.global_only:
            return self.in_global(key, merge)
        return self.merge_over(merge, (self.in_global, self.in_environment, self.in_module), lambda layer: layer(key, merge))

    def merge_over(self, merge: Merge, variants: Sequence[Variant], find: Callable[[Variant], MaybeValue]) -> MaybeValue:
        """Return what `find` gives for the variants, merged."""
        if not self.explainer.is_asked or merge.first or len(variants) < 2:
            return merge.merge_over(variants, find)
        options = {key: value for key, value in merge.options.items() if key != "strategy"}
        with self.explainer.within("merge", merge.strategy, options):
            value = merge.merge_over(variants, find)
            if value is not MISSING:
                self.explainer.record("result", None, value)
            return value

    # --- layers ---

    def in_global(self, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value that the site's own layer has for a key."""
        terminus = "hiera" if self.invocation.hiera_call else self.layers.sources.terminus  # the old functions do not heed the setting
        if terminus == "none":
            self.explainer.record("not_found", key.text)
            return MISSING
        if terminus != "hiera":
            raise EvaluationError(f"There is no terminus {terminus} for data_binding", hint="There are hiera and none.")
        try:
            with self.invocation.guard(key.text):
                provider = self.layers.global_provider(self.invocation.context)
                if provider.config.version == 3:
                    return self._in_version_3(provider, key, merge)
                return self.in_provider(provider, key, merge)
        except EvaluationError as error:
            if isinstance(error, DataError):
                if error.final:
                    raise
            elif isinstance(error, LookupUsageError) or error.where is None or error.where.file is not None:
                raise
            raise EvaluationError(f"Lookup of key '{self.invocation.top_key}' failed: {error.message}", hint=error.hint) from error

    def in_environment(self, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value that the environment's layer has for a key."""
        return self._in_optional(self.layers.environment_provider(self.invocation.context), key, merge)

    def in_module(self, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value that the key's module has for it."""
        module = self.invocation.module
        if module is None:
            return MISSING
        provider = self.layers.module_provider(module, self.invocation.context)
        if provider is None and self.explainer.is_asked:
            exists = self.layers.sources.module_root(module) is not None
            self.explainer.add(ExplanationStep("module", module, event="module_provider_not_found" if exists else "module_not_found"))
        return self._in_optional(provider, key, merge)

    def _in_optional(self, provider: DataProvider | None, key: LookupKey, merge: Merge) -> MaybeValue:
        if provider is None:
            return MISSING
        with self.invocation.guard(key.text):
            return self.in_provider(provider, key, merge)

    def in_default_hierarchy(self, provider: DataProvider, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value that a module's default_hierarchy has for a key."""
        with self.explainer.within("scope", f'Searching for "{key.text}"'), self.invocation.guard(key.text):
            return self.in_levels(provider, key, merge, default=True)

    def _in_version_3(self, provider: DataProvider, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value in a global layer of version 3, which has its own view of variables and its own merge for the old functions."""
        invocation = self.invocation
        if not invocation.version_3:
            # A copy: lookups inside the data have to behave as version 3, those of the caller not.
            invocation = self.invocation.inner()
            invocation.top_key, invocation.module = self.invocation.top_key, self.invocation.module
            invocation.version_3 = True
            invocation.global_only = invocation.global_only or not self.layers.has_environment_data(invocation.context)
        if provider.config.merge.strategy != "default" and invocation.hiera_call and merge.strategy == "hash":
            merge = provider.config.merge
        value = LayerSearch(self.layers, invocation).in_provider(provider, key, merge)
        if value is not MISSING and invocation.hiera_call:
            _check_old_call(key, merge, value)
        return value

    # --- levels and locations ---

    def in_provider(self, provider: DataProvider, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the value that the hierarchy of one configuration has for a key."""
        if not self.explainer.is_asked and not self.invocation.extra_paths and provider.has_only_files(self.invocation):
            return provider.find_in_files(self.invocation, key, merge)
        return self.in_levels(provider, key, merge)

    def in_levels(self, provider: DataProvider, key: LookupKey, merge: Merge, *, default: bool = False) -> MaybeValue:
        """Return the merged values of the levels of a hierarchy, or of the default hierarchy."""
        with self.explainer.within("data_provider", provider.title, provider.config.path, provider.module):
            if self.explainer.is_asked and provider.is_outdated(self.invocation):
                self.explainer.add_text("Hiera configuration recreated due to change of scope variables used in interpolation expressions")
            levels = provider.levels(self.invocation, default=default)
            if not levels:
                self.explainer.record("not_found", key.text)
            return self.merge_over(merge, levels, lambda level: self.in_level(level, key, merge))

    def in_level(self, level: HierarchyLevel, key: LookupKey, merge: Merge) -> MaybeValue:
        """Return the merged values of the locations of a level."""
        with self.explainer.within("data_provider", level.title):
            return self.merge_over(merge, level.locations_for(self.invocation), lambda location: self._at_location(level, location, key))

    def _at_location(self, level: HierarchyLevel, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        if location is None:
            return self._value_at(level, location, key)
        with self.explainer.within(location.kind, location.text, location.original):
            if not location.exists:
                self.explainer.record("location_not_found")
                return MISSING
            return self._value_at(level, location, key)

    def _value_at(self, level: HierarchyLevel, location: DataLocation | None, key: LookupKey) -> MaybeValue:
        value = level.find_at(self.invocation, location, key)
        name = key.text if level.digs else key.root
        if value is MISSING:
            self.explainer.record("not_found", name)
            return MISSING
        self.explainer.record("found", name, value)
        return key.wrap_path(value) if level.digs else value


def _check_old_call(key: LookupKey, merge: Merge, value: Value) -> None:
    """Raise EvaluationError for a value or key that the old hiera functions do not accept with the merge."""
    if merge.strategy == "hash" or merge.deep:
        require_type("value", HASH, value)
    if key.segments and merge.strategy in ("hash", "unique"):
        kind = "hash" if merge.strategy == "hash" else "array"
        raise DataError(f"Resolution type :{kind} is illegal when accessing values using dotted keys. Offending key was '{key.text}'")
