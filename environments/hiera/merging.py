"""Merge strategies: how the values of several levels become one. Source: language reference 18.6."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from language.types.descriptions.describe import describe_wrong_type
from language.types.kinds.base import ANY
from language.types.notation.parse import parse_type
from language.values.core import MISSING, MaybeValue, PuppetType, Value
from shared.errors import EvaluationError

from .deep_merge import DeepMerge, unique_values
from .errors import LookupUsageError

Variant = TypeVar("Variant")
STRATEGIES = ("first", "unique", "hash", "deep")
_INNER_STRATEGIES = ("default", "reverse_deep", "unconstrained_deep")  # accepted, but not listed in messages
_DEEP_OPTIONS = (
    "Struct[{strategy=>Optional[Pattern[deep]],knockout_prefix=>Optional[String],merge_debug=>Optional[Boolean],"
    "merge_hash_arrays=>Optional[Boolean],sort_merged_arrays=>Optional[Boolean]}]"
)


@dataclass(frozen=True)
class Merge:
    """A merge strategy with its options."""

    strategy: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def first(self) -> bool:
        """True if only the first value counts."""
        return self.strategy in ("first", "default")

    @property
    def deep(self) -> bool:
        return self.strategy in ("deep", "reverse_deep", "unconstrained_deep")

    def merge_over(self, variants: Sequence[Variant], find: Callable[[Variant], MaybeValue]) -> MaybeValue:
        """
        Return the values that `find` gives for `variants`, merged; MISSING when it gives none.

        Args:
            variants: layers, levels or locations, the one with the highest priority first.
        """
        if len(variants) == 1:
            value = find(variants[0])
            return value if value is MISSING else self.single(value)
        result: MaybeValue = MISSING
        for variant in variants:
            value = find(variant)
            if value is not MISSING:
                if self.first:
                    return value
                result = self.prepare(value) if result is MISSING else self.merge(result, value)
        return result

    def merge(self, higher: Value, lower: Value) -> Value:
        """
        Return two values merged.

        Raises:
            EvaluationError: the strategy cannot merge values of their types.
        """
        if self.first:
            return higher
        value_type = _value_type(self.strategy)
        if value_type is not ANY:
            require_type("The first element of the merge", value_type, higher)
            require_type("The second element of the merge", value_type, lower)
        if self.strategy == "unique":
            return unique_values([*flatten(higher), *flatten(lower)])
        if self.strategy == "hash":
            assert isinstance(lower, dict)
            assert isinstance(higher, dict)
            return {**lower, **higher}
        prefix = self.options.get("knockout_prefix")
        if prefix == "":
            raise LookupUsageError("knockout_prefix cannot be an empty string in deep_merge!")
        deep = DeepMerge(prefix, bool(self.options.get("sort_merged_arrays")), bool(self.options.get("merge_hash_arrays")))
        return deep.merge(lower, higher) if self.strategy == "reverse_deep" else deep.merge(higher, lower)

    def prepare(self, value: Value) -> Value:
        """Return the first value in the form in which others are merged into it."""
        return flatten(value) if self.strategy == "unique" else value

    def single(self, value: Value) -> Value:
        """Return the value of the only variant as this strategy gives it."""
        return unique_values(value) if self.strategy == "unique" and isinstance(value, list) else value


DEFAULT = Merge()
HASH = Merge("hash")


def merge_of(spec: Any) -> Merge:
    """
    Return the strategy of a name, or of a hash such as `{strategy: deep, …}`; the default for None and false.

    Raises:
        EvaluationError: the strategy is unknown, or it has no such option.
    """
    if spec is None or spec is False:
        return DEFAULT
    if isinstance(spec, Merge):
        return spec
    if isinstance(spec, str):
        return _merge_by_name(spec)
    if not isinstance(spec, dict):
        raise LookupUsageError(f"Unknown merge strategy: '{spec}'", hint=f"There are {', '.join(STRATEGIES)}.")
    name = spec.get("strategy")
    if name is None:
        raise LookupUsageError("The hash given as 'merge' must contain the name of a strategy in string form for the key 'strategy'")
    merge = _merge_by_name(name)
    if len(spec) == 1:
        return merge
    if name not in ("reverse_deep", "unconstrained_deep"):
        require_type("The merge options", _options_type(name), spec)
    return Merge(name, dict(spec))


@lru_cache(maxsize=16)
def _merge_by_name(name: str) -> Merge:
    if name not in STRATEGIES and name not in _INNER_STRATEGIES:
        raise LookupUsageError(f"Unknown merge strategy: '{name}'", hint=f"There are {', '.join(STRATEGIES)}.")
    return Merge(name)


@lru_cache(maxsize=16)
def _options_type(strategy: str) -> PuppetType:
    return parse_type(_DEEP_OPTIONS if strategy == "deep" else f"Struct[{{strategy=>Optional[Pattern[/{strategy}/]]}}]")


@lru_cache(maxsize=16)
def _value_type(strategy: str) -> PuppetType:
    return {"unique": parse_type("Variant[Scalar,Array[Data]]"), "hash": parse_type("Hash[String,Data]")}.get(strategy, ANY)


def require_type(subject: str, expected: PuppetType, value: Value) -> Value:
    """Return `value`; raise EvaluationError, with `subject` in its message, when it is not of the expected type."""
    if expected.instance(value):
        return value
    raise EvaluationError(describe_wrong_type(subject, expected, value))


def flatten(value: Any) -> list[Any]:
    """Return the elements of an array and of all arrays in it; any other value as the only element."""
    if not isinstance(value, list):
        return [value]
    return [inner for item in value for inner in flatten(item)]
