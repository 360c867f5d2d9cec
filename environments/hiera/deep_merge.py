"""The deep merge strategy, as the gem deep_merge does it. Source: language reference 18.6."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from language.values.core import Value, key_of
from language.values.ordering import ruby_order, sort_as_ruby
from shared.errors import EvaluationError

from .errors import LookupUsageError


def unique_values(values: Sequence[Value]) -> list[Value]:
    """Return the values without repetitions, in the order of their first occurrence."""
    values_by_key: dict[Any, Value] = {}
    for item in values:
        values_by_key.setdefault(key_of(item), item)
    return list(values_by_key.values())


@dataclass(frozen=True, slots=True)
class DeepMerge:
    """
    The deep strategy: hashes are merged, arrays united, and of anything else the higher value wins. No argument is changed.

    Attributes:
        prefix: the knockout prefix: elements of the higher array that begin so remove those of the lower one.
        sort: merged arrays are sorted.
        merge_hash_arrays: arrays that hold only hashes are merged by position.
    """

    prefix: str | None = None
    sort: bool = False
    merge_hash_arrays: bool = False

    def merge(self, higher: Value, lower: Value) -> Value:
        if higher is None:
            return lower
        # The gem deep_merge treats false like a missing value; so does this.
        if lower is None or lower is False:
            return higher
        if isinstance(higher, dict):
            return self._merge_hash(higher, lower)
        if isinstance(higher, list):
            return self._merge_array(higher, lower)
        return self._replace(higher)

    def _merge_hash(self, higher: dict[Any, Value], lower: Value) -> Value:
        if not isinstance(lower, dict):
            return self._merge_with_itself(higher) if higher else lower  # an empty hash replaces nothing
        # Keys keep the order of the lower value, as with the gem; templates that loop over them show it.
        result = dict(lower)
        for key, value in higher.items():
            lower_value = result.get(key)
            # Merging a value with itself applies the knockouts inside it.
            result[key] = self.merge(value, value if lower_value is None or lower_value is False else lower_value)
        return result

    def _merge_with_itself(self, higher: dict[Any, Value]) -> Value:
        """
        Return a hash that replaces a value that is not a hash.

        As in the reference, the replacement takes place when the first entry is visited. So all further entries are merged with
        themselves, which removes repetitions from arrays.
        """
        first, *others = higher
        return {first: higher[first]} | {key: self.merge(higher[key], higher[key]) for key in others}

    def _merge_array(self, higher: list[Value], lower: Value) -> Value:
        prefix = self.prefix
        # The bare prefix alone removes all lower elements.
        if prefix is not None and prefix in higher:
            lower = [] if isinstance(lower, list) else {} if isinstance(lower, dict) else "" if isinstance(lower, str) else None
            higher = [item for item in higher if item != prefix]
        if not isinstance(lower, list):
            return self._replace(higher)
        if prefix is not None:
            knockouts = {item for item in higher if isinstance(item, str) and item.startswith(prefix)}
            removed = knockouts | {item.removeprefix(prefix) for item in knockouts}
            lower = [item for item in lower if not (isinstance(item, str) and item in removed)]
            higher = [item for item in higher if not self._is_knockout(item)]
        if self.merge_hash_arrays and all(isinstance(item, dict) for item in [*higher, *lower]):
            result = [self.merge(higher[i] if i < len(higher) else {}, item) for i, item in enumerate(lower)] + higher[len(lower) :]
        else:
            # Lower elements come first, as with the gem.
            result = unique_values([*lower, *higher])
        return _sorted(result) if self.sort else result

    def _is_knockout(self, item: Value) -> bool:
        assert self.prefix is not None
        return isinstance(item, str) and item.startswith(self.prefix)

    def _replace(self, higher: Value) -> Value:
        """Return the replacement of a lower value that cannot be merged: `higher` without knockouts."""
        if self.prefix is None:
            return higher
        if isinstance(higher, str):
            return "" if self._is_knockout(higher) else higher
        if isinstance(higher, list) and any(self._is_knockout(item) for item in higher):
            return [item for item in higher if not self._is_knockout(item)]
        return higher


def _sorted(values: list[Value]) -> list[Value]:
    """Return the values sorted as Ruby sorts them; LookupUsageError when they cannot be compared."""
    try:
        return sort_as_ruby(values, ruby_order)
    except EvaluationError as error:
        hint = "sort_merged_arrays can sort texts, or numbers, or arrays of these: all values of the merged array have to be of one kind."
        raise LookupUsageError(error.message, hint=hint) from error
