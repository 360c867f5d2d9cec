"""How values of several levels become one. Source: language reference 18.6."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from shared.errors import EvaluationError

from ..compiler.types.base import ANY, PuppetType
from ..compiler.types.descriptions.describe import describe_wrong_type
from ..compiler.types.notation.parse import parse_type
from ..compiler.values.core import Value, key_of
from ..compiler.values.ordering import sort_as_ruby
from .failures import BadUse

__all__ = ["DEFAULT", "HASH", "MISSING", "Merge", "merge_of", "typed"]


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""There is no value, not even undef."""

STRATEGIES = ("first", "unique", "hash", "deep")
_INNER = ("default", "reverse_deep", "unconstrained_deep")  # known, but not named to anybody
_DEEP_OPTIONS = (
    "Struct[{strategy=>Optional[Pattern[deep]],knockout_prefix=>Optional[String],merge_debug=>Optional[Boolean],"
    "merge_hash_arrays=>Optional[Boolean],sort_merged_arrays=>Optional[Boolean]}]"
)


@dataclass(frozen=True)
class Merge:
    """A strategy and what is said of it."""

    strategy: str = "default"
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def first(self) -> bool:
        return self.strategy in ("first", "default")

    @property
    def deep(self) -> bool:
        return self.strategy in ("deep", "reverse_deep", "unconstrained_deep")

    def over(self, variants: Iterable[Any], find: Callable[[Any], Value]) -> Value:
        """The values that `find` gives for `variants`, the one that counts most first, as one; MISSING when there is none."""
        result: Any = MISSING
        for variant in variants:
            value = find(variant)
            if value is not MISSING:
                if self.first:
                    return value
                result = self.converted(value) if result is MISSING else self.merged(result, value)
        return result

    def merged(self, higher: Value, lower: Value) -> Value:
        """
        Two values as one.

        Raises:
            EvaluationError: the strategy cannot merge values of their types.
        """
        if self.first:
            return higher
        wanted = _value_type(self.strategy)
        if wanted is not ANY:
            typed("The first element of the merge", wanted, higher)
            typed("The second element of the merge", wanted, lower)
        if self.strategy == "unique":
            return _united([*_flat(higher), *_flat(lower)])
        if self.strategy == "hash":
            return {**lower, **higher}
        prefix = self.options.get("knockout_prefix")
        if prefix == "":
            raise BadUse("knockout_prefix cannot be an empty string in deep_merge!")
        deep = Deep(prefix, bool(self.options.get("sort_merged_arrays")), bool(self.options.get("merge_hash_arrays")))
        return deep.merged(lower, higher) if self.strategy == "reverse_deep" else deep.merged(higher, lower)

    def converted(self, value: Value) -> Value:
        """A value as it is merged with others."""
        return _flat(value) if self.strategy == "unique" else value

    def single(self, value: Value) -> Value:
        """The value of the only place where there could be one."""
        return _united(value) if self.strategy == "unique" and isinstance(value, list) else value


DEFAULT = Merge()
HASH = Merge("hash")


def merge_of(given: Any) -> Merge:
    """
    The strategy as it is written: a name, or `{strategy: deep, …}`.

    Raises:
        EvaluationError: there is none of that name, or it has no such option.
    """
    if given is None or given is False:
        return DEFAULT
    if isinstance(given, Merge):
        return given
    if isinstance(given, str):
        return _named(given)
    if not isinstance(given, dict):
        raise BadUse(f"Unknown merge strategy: '{given}'", hint=f"There are {', '.join(STRATEGIES)}.")
    name = given.get("strategy")
    if name is None:
        raise BadUse("The hash given as 'merge' must contain the name of a strategy in string form for the key 'strategy'")
    found = _named(name)
    if len(given) == 1:
        return found
    if name not in ("reverse_deep", "unconstrained_deep"):
        typed("The merge options", _options_type(name), given)
    return Merge(name, dict(given))


@lru_cache(maxsize=16)
def _named(name: str) -> Merge:
    if name not in STRATEGIES and name not in _INNER:
        raise BadUse(f"Unknown merge strategy: '{name}'", hint=f"There are {', '.join(STRATEGIES)}.")
    return Merge(name)


@lru_cache(maxsize=16)
def _options_type(strategy: str) -> PuppetType:
    return parse_type(_DEEP_OPTIONS if strategy == "deep" else f"Struct[{{strategy=>Optional[Pattern[/{strategy}/]]}}]")


@lru_cache(maxsize=16)
def _value_type(strategy: str) -> PuppetType:
    return {"unique": parse_type("Variant[Scalar,Array[Data]]"), "hash": parse_type("Hash[String,Data]")}.get(strategy, ANY)


def typed(subject: str, wanted: PuppetType, value: Value) -> Value:
    """`value`, when it is of the type; EvaluationError when it is not."""
    if wanted.instance(value):
        return value
    raise EvaluationError(describe_wrong_type(subject, wanted, value))


def _flat(value: Value) -> list[Value]:
    if not isinstance(value, list):
        return [value]
    return [inner for item in value for inner in _flat(item)]


def _united(values: Sequence[Value]) -> list[Value]:
    found: dict[Any, Value] = {}
    for item in values:
        found.setdefault(key_of(item), item)
    return list(found.values())


@dataclass(frozen=True, slots=True)
class Deep:
    """The deep strategy: hashes are merged, arrays united, of anything else the higher counts. Nothing given is changed."""

    prefix: str | None = None
    sort: bool = False
    merge_hash_arrays: bool = False

    def merged(self, higher: Value, lower: Value) -> Value:
        if higher is None:
            return lower
        if lower is None or lower is False:
            return higher
        if isinstance(higher, dict):
            return self._hash(higher, lower)
        if isinstance(higher, list):
            return self._array(higher, lower)
        return self._replaced(higher)

    def _hash(self, higher: dict[Any, Value], lower: Value) -> Value:
        if not isinstance(lower, dict):
            return self._with_itself(higher) if higher else lower  # an empty hash has nothing to say against it
        result = dict(lower)
        for key, value in higher.items():
            known = result.get(key)
            result[key] = self.merged(value, known) if known is not None and known is not False else self.merged(value, value)
        return result

    def _with_itself(self, higher: dict[Any, Value]) -> Value:
        """
        Return a hash that takes the place of a value that is none.

        As in the reference, it has taken the place once the first entry is looked at, so that the others are merged with themselves,
        which leaves each element of an array once.
        """
        first, *others = higher
        return {first: higher[first]} | {key: self.merged(higher[key], higher[key]) for key in others}

    def _array(self, higher: list[Value], lower: Value) -> Value:
        prefix = self.prefix
        if prefix is not None and prefix in higher:
            lower = [] if isinstance(lower, list) else {} if isinstance(lower, dict) else "" if isinstance(lower, str) else None
            higher = [item for item in higher if item != prefix]
        if not isinstance(lower, list):
            return self._replaced(higher)
        if prefix is not None:
            gone = {item.removeprefix(prefix) for item in higher if self._knocks(item)} | {item for item in higher if self._knocks(item)}
            lower = [item for item in lower if not (isinstance(item, str) and item in gone)]
            higher = [item for item in higher if not self._knocks(item)]
        if self.merge_hash_arrays and all(isinstance(item, dict) for item in [*higher, *lower]):
            result = [self.merged(higher[i] if i < len(higher) else {}, item) for i, item in enumerate(lower)] + higher[len(lower) :]
        else:
            result = _united([*lower, *higher])
        return _sorted(result) if self.sort else result

    def _knocks(self, item: Value) -> bool:
        assert self.prefix is not None
        return isinstance(item, str) and item.startswith(self.prefix)

    def _replaced(self, higher: Value) -> Value:
        """What stands for a lower value that cannot be merged with."""
        if self.prefix is None:
            return higher
        if isinstance(higher, str):
            return "" if self._knocks(higher) else higher
        if isinstance(higher, list) and any(self._knocks(item) for item in higher):
            return [item for item in higher if not self._knocks(item)]
        return higher


def _sorted(values: list[Value]) -> list[Value]:
    try:
        return sort_as_ruby(values)
    except EvaluationError as error:
        hint = "sort_merged_arrays can sort texts, or numbers, or arrays of these: all values of the merged array have to be of one kind."
        raise BadUse(error.message, hint=hint) from error
