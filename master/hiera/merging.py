"""How values of several levels become one. Source: language reference 18.6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import EvaluationError

from ..compiler.types import lattice
from ..compiler.types.describe import describe_mismatch
from ..compiler.types.infer import infer_set
from ..compiler.values import Value, key_of

__all__ = ["FIRST", "Merge", "merge_of", "merged"]

_STRATEGIES = ("first", "unique", "hash", "deep")


@dataclass(frozen=True, slots=True)
class Merge:
    """A strategy and what is said of it."""

    strategy: str = "first"
    knockout_prefix: str | None = None
    sort_arrays: bool = False
    merge_hash_arrays: bool = False


FIRST = Merge()
HASH = Merge("hash")


def merge_of(given: Any) -> Merge:
    """
    The strategy as it is written: a name, or `{strategy: deep, …}`.

    Raises:
        EvaluationError: there is none of that name.
    """
    if given is None:
        return FIRST
    options: Mapping[str, Any] = given if isinstance(given, dict) else {}
    name = options.get("strategy") if isinstance(given, dict) else given
    if name in ("reverse_deep", "unconstrained_deep"):
        name = "deep"
    if name not in _STRATEGIES:
        raise EvaluationError(f"Unknown merge strategy: '{name}'", hint=f"There are {', '.join(_STRATEGIES)}.")
    prefix = options.get("knockout_prefix")
    return Merge(
        str(name),
        str(prefix) if prefix else None,
        bool(options.get("sort_merged_arrays")),
        bool(options.get("merge_hash_arrays")),
    )


def merged(merge: Merge, values: Sequence[Value]) -> Value:
    """One value for `values`, of which the first counts most; there is at least one."""
    if merge.strategy == "first":
        return values[0]
    if merge.strategy == "unique":
        return _unique(values)
    if merge.strategy == "hash":
        return _hash(values)
    result = values[-1]
    if len(values) == 1 and merge.knockout_prefix is None:
        return result
    for higher in reversed(values[:-1]):
        result = _deep(higher, result, merge)
    return result


def _unique(values: Sequence[Value]) -> list[Value]:
    found: dict[Any, Value] = {}
    for value in values:
        if isinstance(value, dict):
            raise _unfit(1, lattice.VariantType.of([lattice.ScalarType(), lattice.ARRAY]), value)
        for item in _flat(value):
            found.setdefault(key_of(item), item)
    return list(found.values())


def _flat(value: Value) -> list[Value]:
    if not isinstance(value, list):
        return [value]
    return [inner for item in value for inner in _flat(item)]


def _unfit(index: int, wanted: lattice.Type, value: Value) -> EvaluationError:
    subject = f"The {'first' if index == 0 else 'second'} element of the merge"
    text = describe_mismatch(subject, wanted, infer_set(value))
    return EvaluationError(text.replace(f"{subject} expects", f"{subject} has wrong type, expects", 1))


def _hash(values: Sequence[Value]) -> Value:
    if len(values) == 1:
        return values[0]
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise _unfit(index, lattice.HASH, value)
    result: dict[Any, Value] = {}
    for value in reversed(values):
        result.update(value)
    return result


def _deep(higher: Value, lower: Value, merge: Merge) -> Value:
    if higher is None:
        return lower
    if isinstance(higher, dict) and isinstance(lower, dict):
        result = dict(lower)
        for key, value in higher.items():
            result[key] = _deep(value, lower[key], merge) if key in lower else value
        return result
    if isinstance(higher, list) and isinstance(lower, list):
        return _deep_array(higher, lower, merge)
    prefix = merge.knockout_prefix
    if prefix is not None and isinstance(higher, str) and higher.startswith(prefix):
        return ""
    return higher


def _deep_array(higher: list[Value], lower: list[Value], merge: Merge) -> list[Value]:
    prefix = merge.knockout_prefix
    if prefix is not None:
        if prefix in higher:
            lower = []
        gone = {item[len(prefix) :] for item in higher if isinstance(item, str) and item.startswith(prefix)}
        lower = [item for item in lower if not (isinstance(item, str) and item in gone)]
        higher = [item for item in higher if not (isinstance(item, str) and item.startswith(prefix))]
    if merge.merge_hash_arrays and higher and lower and all(isinstance(item, dict) for item in [*higher, *lower]):
        size = max(len(higher), len(lower))
        return [
            _deep(higher[i], lower[i], merge) if i < len(higher) and i < len(lower) else (higher[i] if i < len(higher) else lower[i])
            for i in range(size)
        ]
    found = {key_of(item): item for item in lower}
    for item in higher:
        found.setdefault(key_of(item), item)
    result = list(found.values())
    if merge.sort_arrays and all(isinstance(item, str) for item in result):
        result.sort()
    return result
