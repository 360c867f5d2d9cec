"""`Puppet::LookupContext`: what functions that are backends get to work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shared.errors import EvaluationError

from ..compiler.host import NotFoundInData
from ..compiler.types.objects import LOOKUP_CONTEXT
from ..compiler.values.core import Instance, Iterator, Value, entries, key_of
from .interpolation import interpolated

if TYPE_CHECKING:
    from ..compiler.callables.signatures import Closure
    from .invocations import Invocation

__all__ = ["Cache", "LookupContext"]


class Cache:
    """What a backend keeps, for one level and location, for as long as the compilation lasts."""

    __slots__ = ("kept", "values")

    def __init__(self) -> None:
        self.kept: dict[Any, Value] = {}
        self.values: dict[Any, Value] = {}  # what the function gave, by key


class LookupContext:
    """The working half of a `Puppet::LookupContext`; module authors in Python use its methods as functions of the language do."""

    __slots__ = ("_cache", "_detached", "_invocation", "environment_name", "module_name")

    def __init__(self, invocation: Invocation, module: str | None, cache: Cache, *, detached: bool = False) -> None:
        self._detached = detached  # no lookup runs
        self._invocation = invocation
        self._cache = cache
        self.environment_name: str = invocation.lookups.sources.environment
        self.module_name = module

    def instance(self) -> Instance:
        """The value that the language sees."""
        return Instance(LOOKUP_CONTEXT, {"environment_name": self.environment_name, "module_name": self.module_name}, behind=self)

    def call(self, name: str, args: Sequence[Value], block: Closure | None) -> Value:
        """A method by its name; KeyError when there is none."""
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
            return self.explain(block)
        if name == "cached_entries":
            return self.cached_entries(block)
        if name == "cached_file_data":
            return self.cached_file_data(str(args[0]), block)
        raise KeyError(name)

    def not_found(self) -> Value:
        """Say that there is no value for the key: ends the function."""
        if self._detached:
            raise EvaluationError("not_found can only be called while a lookup runs")
        raise NotFoundInData

    def interpolate(self, value: Value) -> Value:
        """`value` with the expressions in it replaced."""
        return interpolated(self._invocation, value)

    def explain(self, text: Any) -> None:
        """Add what calling `text` gives to the explanation, if somebody asked for one."""
        if text is not None and self._invocation.explainer is not None:
            self._invocation.explainer.say(str(text()))

    def cache(self, key: Value, value: Value) -> Value:
        """Keep a value; gives it."""
        self._cache.kept[key_of(key)] = value
        return value

    def cache_all(self, values: Value) -> None:
        """Keep all values of a hash."""
        if not isinstance(values, dict):
            raise EvaluationError("'cache_all' expects a Hash value")
        self._cache.kept.update(values)

    def cache_has_key(self, key: Value) -> bool:
        return key_of(key) in self._cache.kept

    def cached_value(self, key: Value) -> Value:
        """The value kept for a key, or undef."""
        return self._cache.kept.get(key_of(key))

    def cached_entries(self, block: Any = None) -> Value:
        """All that is kept, as pairs; with a block it is called with each."""
        pairs = [[key, value] for key, value in entries(self._cache.kept)]
        if block is None:
            return Iterator(lambda: iter(pairs))
        for key, value in pairs:
            if block.signature.high == 1:
                block([key, value])
            else:
                block(key, value)
        return None

    def cached_file_data(self, path: str, block: Any = None) -> Value:
        """The content of a file, or what the block makes of it; done once until the file changes."""
        sources = self._invocation.lookups.sources
        if block is None:
            return sources.data.made(path, "text", lambda text: text)
        return sources.data.made(path, "block", block)

    def decrypted(self, key: str, options: Mapping[str, Any]) -> Value:
        """A value of the YAML file that `options` name, with what is encrypted in it decrypted; ends the function when there is none."""
        from .levels import decrypted_value

        return decrypted_value(self._invocation, key, options, "lookup_key function 'eyaml_lookup_key'")

    def data(self, function: str, path: str) -> dict[Any, Value]:
        """The content of a data file, as the function yaml_data, json_data or hocon_data reads it."""
        return self._invocation.lookups.sources.data.read(function, path, self._invocation.context.warn).data
