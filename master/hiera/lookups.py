"""A key through all layers: options, merging, interpolation, conversion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import EvaluationError

from ..compiler.locations import FINAL
from ..compiler.regexps import Regexp
from ..compiler.values import Value, key_of
from ..compiler.world import DataContext, NotFoundInData
from .interpolation import dug, interpolated, segments, whole_alias
from .layers import Layer
from .merging import FIRST, HASH, Merge, merge_of, merged

__all__ = ["Lookup"]

MAX_DEPTH = 100
OPTIONS = "lookup_options"


class Lookup:
    """Looks keys up for one compilation, in these layers: the site's own, the environment's, that of the key's module."""

    def __init__(self, site: Layer | None, environment: Layer | None, module: Layer | None, context: DataContext) -> None:
        self.module = module
        self.layers = [layer for layer in (site, environment, module) if layer is not None]
        self.context = context

    def find(self, key: str, merge: Merge | None = None) -> Value:
        """
        The value of a key; dots dig into it.

        Raises:
            NotFoundInData: there is none. EvaluationError: what is wrong with the data, which is no error of the manifest.
        Source: language reference 18.1, 18.5.
        """
        try:
            return self._find(key, merge, ())
        except EvaluationError as error:
            error.where = error.where or FINAL
            raise

    def _find(self, key: str, merge: Merge | None, active: tuple[str, ...]) -> Value:
        if key in active:
            raise EvaluationError(f"Lookup of key '{active[0]}' failed: Recursive lookup detected in [{', '.join(active)}]")
        if len(active) > MAX_DEPTH:
            raise EvaluationError(f"The lookup of '{key}' is nested more than {MAX_DEPTH} deep")
        first, *digs = segments(key)
        root = str(first)
        if root == OPTIONS:
            raise NotFoundInData(key)
        options = self.options_for(root, active)
        if merge is None:
            merge = merge_of(options["merge"]) if options.get("merge") is not None else FIRST
        value = dug(self._merged(root, merge, (*active, key)), digs, key)
        if options.get("convert_to") is not None:
            value = self.context.convert(key, value, options["convert_to"])
        return value

    def _merged(self, root: str, merge: Merge, active: tuple[str, ...]) -> Value:
        for fallback in (False, True):
            found: list[Value] = []
            for layer in self.layers:
                for raw in layer.values(root, self.context.variable, self.context.warn, fallback=fallback):
                    found.append(self._value(raw, active))
                    if merge.strategy == "first":
                        return found[0]
            if found:
                return merged(merge, found)
        raise NotFoundInData(root)

    # --- options ---

    def options_for(self, key: str, active: tuple[str, ...] = ()) -> Mapping[str, Any]:
        """What `lookup_options` say of a key: by its name, else by the first pattern that matches it."""
        options = self._options(active)
        exact = options.get(key)
        if exact is None:
            exact = next((value for pattern, value in options.items() if pattern.startswith("^") and Regexp(pattern).search(key)), None)
        return exact if isinstance(exact, dict) else {}

    def _options(self, active: tuple[str, ...]) -> Mapping[str, Any]:
        if self.context.options is None:
            self.context.options = {}
        name = self.module.folder if self.module is not None else ""
        known = self.context.options.get(name)
        if known is None:
            known = self.context.options[name] = self._read_options(active)
        return known

    def _read_options(self, active: tuple[str, ...]) -> Mapping[str, Any]:
        result: dict[str, Any] = {}
        for layer in reversed(self.layers):
            values = [
                value
                for fallback in (False, True)
                for value in layer.values(OPTIONS, self.context.variable, self.context.warn, fallback=fallback)
            ]
            if not values:
                continue
            if not all(isinstance(value, dict) for value in values):
                raise EvaluationError(f"value of {OPTIONS} must be a hash")
            given = merged(HASH, [self._value(value, (*active, OPTIONS)) for value in values])
            for key in given if layer.module is not None else ():
                if key.startswith("^") and not key.startswith(f"^{layer.module}"):
                    raise EvaluationError(f"all {OPTIONS} patterns must match a key starting with module name '{layer.module}'")
                if not key.startswith("^") and not key.startswith(f"{layer.module}::"):
                    raise EvaluationError(f"all {OPTIONS} keys must start with module name '{layer.module}'")
            result.update(given)
        return result

    # --- interpolation ---

    def _value(self, value: Any, active: tuple[str, ...]) -> Value:
        if isinstance(value, str):
            return self._text(value, active) if "%{" in value else value
        if isinstance(value, list):
            return [self._value(item, active) for item in value]
        if isinstance(value, dict):
            return {key_of(self._value(key, active)): self._value(item, active) for key, item in value.items()}
        return value

    def _text(self, text: str, active: tuple[str, ...]) -> Value:
        def find(key: str) -> Value:
            try:
                return self._find(key, None, active)
            except NotFoundInData:
                return None

        alias = whole_alias(text)
        if alias is not None:
            found = find(alias)
            return "" if found is None else found
        return interpolated(text, self.context.variable, find)
