"""`Puppet::LookupContext`: the object through which backend functions use the lookup that calls them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from language.host import LookupMethods, NotFoundInData
from language.types.kinds.objects import LOOKUP_CONTEXT
from language.values.core import Instance, Iterator, LambdaValue, Value, entries, key_of
from shared.errors import EvaluationError

from ..data.sources import DataSources
from ..invocation import Invocation
from .encrypted_values import decrypt_value


class BackendCache:
    """
    The cache of one level and location; it lasts as long as the compilation.

    Attributes:
        values: values that the backend function itself cached.
        results: the function's results, by key.
    """

    __slots__ = ("results", "values")

    def __init__(self) -> None:
        self.values: dict[Any, Value] = {}
        self.results: dict[str, Value] = {}


class LookupContext(LookupMethods):
    """The implementation of a `Puppet::LookupContext`; module authors in Python use its methods as functions of the language do."""

    __slots__ = ("_cache", "_detached", "_invocation", "_sources", "environment_name", "module_name", "ruby_cache")

    def __init__(
        self,
        invocation: Invocation,
        sources: DataSources,
        module: str | None,
        cache: BackendCache,
        *,
        detached: bool = False,
        in_ruby: bool = False,
    ) -> None:
        self._detached = detached  # no lookup runs
        self._invocation = invocation
        self._sources = sources
        self._cache = cache
        self.ruby_cache = cache if in_ruby else None
        self.environment_name: str = sources.environment
        self.module_name = module

    def instance(self) -> Instance:
        """Return the value that the language sees."""
        return Instance(LOOKUP_CONTEXT, {"environment_name": self.environment_name, "module_name": self.module_name}, behind=self)

    def call(self, name: str, args: Sequence[Value], block: LambdaValue | None) -> Value:
        methods: dict[str, tuple[int, Callable[..., Value]]] = {
            "not_found": (0, self.not_found),
            "interpolate": (1, self.interpolate),
            "cache": (2, self.cache),
            "cache_all": (1, self.cache_all),
            "cache_has_key": (1, self.cache_has_key),
            "cached_value": (1, self.cached_value),
        }
        if name in methods:
            expected, method = methods[name]
            if len(args) != expected:
                raise EvaluationError(f"'{name}' expects {expected} argument{'' if expected == 1 else 's'}, got {len(args)}")
            return method(*args)
        if name == "environment_name":
            return self.environment_name
        if name == "explain":
            self.explain(block)
            return None
        if name == "cached_entries":
            return self.cached_entries(block)
        if name == "cached_file_data":
            return self.cached_file_data(str(args[0]), block)
        raise KeyError(name)

    def not_found(self) -> Value:
        if self._detached:
            raise EvaluationError("not_found can only be called while a lookup runs")
        raise NotFoundInData

    def interpolate(self, value: Value) -> Value:
        return self._invocation.interpolate(value)

    def explain(self, text: Callable[[], object] | None) -> None:
        if text is not None:
            self._invocation.explain(text)

    def cache(self, key: Value, value: Value) -> Value:
        self._cache.values[key_of(key)] = value
        return value

    def cache_all(self, values: Value) -> None:
        """Cache all values of a hash under their keys."""
        if not isinstance(values, dict):
            raise EvaluationError("'cache_all' expects a Hash value")
        self._cache.values.update(values)

    def cache_has_key(self, key: Value) -> bool:
        return key_of(key) in self._cache.values

    def cached_value(self, key: Value) -> Value:
        return self._cache.values.get(key_of(key))

    def cached_entries(self, block: Any = None) -> Value:
        """Return the cached keys and values as pairs; with a block, call it with each pair and return undef."""
        pairs = [[key, value] for key, value in entries(self._cache.values)]
        if block is None:
            return Iterator(lambda: iter(pairs))
        for key, value in pairs:
            if block.signature.high == 1:
                block([key, value])
            else:
                block(key, value)
        return None

    def cached_file_data(self, path: str, block: Callable[[str], Value] | None = None) -> Value:
        if block is None:
            return self._sources.data.cached(path, "text", lambda text: text)
        return self._sources.data.cached(path, "block", block)

    def file_text(self, path: str) -> tuple[str, str]:
        return self._sources.data.text(path)

    def decrypt_value(self, key: str, options: Mapping[str, Value]) -> Value:
        return decrypt_value(self._invocation, self._sources, key, options, "lookup_key function 'eyaml_lookup_key'")

    def read_data(self, function: str, path: str) -> dict[Any, Value]:
        return self._sources.data.read(function, path, self._invocation.context.warn).data
