"""The ways in which a value does not fit a type, with their places and messages. Source: language reference 7.5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...values.core import PuppetType
from ..kinds.base import INF, AnyType, OptionalType, Range, VariantType, Wrapper
from ..kinds.containers import ArrayType, HashType, StructType, TupleType
from ..kinds.normalization import normalized
from ..kinds.scalars import StringType
from ..named.aliases import AliasType


@dataclass(frozen=True, slots=True)
class PathStep:
    """One step of a path. Kinds: subject, parameter, entry, key, index, block, return; and variant and signature, which are not shown."""

    kind: str
    name: str | int = ""

    def __str__(self) -> str:
        texts = {"parameter": "parameter '{}'", "entry": "entry '{}'", "key": "key of entry '{}'", "index": "index {}", "block": "block"}
        return texts.get(self.kind, "{}").format(self.name)


Path = tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One way in which a value does not fit a type; `path` leads to the part of the value that does not fit."""

    path: Path

    def at(self) -> Path:
        """Return the path without the steps that choose a variant or a signature."""
        return tuple(s for s in self.path if s.kind not in ("variant", "signature"))

    def without(self, index: int) -> Mismatch:
        """Return the mismatch with the step `index` of its path removed."""
        return self if index >= len(self.path) else replace(self, path=self.path[:index] + self.path[index + 1 :])

    def same_as(self, other: Mismatch) -> bool:
        if isinstance(self, TextMismatch) and self.name:
            return False  # the reference lists a mismatch about a key once for each signature
        return self.__class__ is other.__class__ and replace(self, path=self.at()) == replace(other, path=other.at())

    def joined(self, other: Mismatch) -> Mismatch:
        """Return one mismatch for two at the same place."""
        return self

    def text(self) -> str:
        """Return the message: the path and the complaint."""
        path, variant = self.path, ""
        if path and path[0].kind == "signature":
            variant, path = f" {int(path[0].name) + 1}.", path[1:]
        place = " " + " ".join(map(_shown_step, path)) if path else ""
        return f"{variant}{place} {self.complaint()}"

    def complaint(self) -> str:
        raise NotImplementedError


def _shown_step(step: PathStep) -> str:
    return f"variant {step.name}" if step.kind == "variant" else str(step)


@dataclass(frozen=True, slots=True)
class TextMismatch(Mismatch):
    """A mismatch with a fixed text around a name."""

    pattern: str
    name: str = ""

    def complaint(self) -> str:
        return self.pattern.format(self.name)


MISSING_KEY = "expects a value for key '{}'"
MISSING_PARAMETER = "expects a value for parameter '{}'"
UNKNOWN_KEY = "unrecognized key '{}'"
UNKNOWN_PARAMETER = "has no parameter named '{}'"
UNEXPECTED_BLOCK = "does not expect a block"
MISSING_BLOCK = "expects a block"
UNRESOLVED = "references an unresolved type '{}'"


@dataclass(frozen=True, slots=True)
class SizeMismatch(Mismatch):
    """A collection of the wrong size; with `arguments`, a call with the wrong number of arguments."""

    expected: Range
    actual: Range
    arguments: bool = False

    def joined(self, other: Mismatch) -> Mismatch:
        assert isinstance(other, SizeMismatch)
        low, high = min(self.expected[0], other.expected[0]), max(self.expected[1], other.expected[1])
        return replace(self, expected=(low, high))

    def complaint(self) -> str:
        if not self.arguments:
            return f"expects size to be {_range_text(self.expected, '0')}, got {_range_text(self.actual, '0')}"
        low, high = self.expected
        one = (low == 1 and high in (1, INF)) or (low == 0 and high == 1)
        return f"expects {_range_text(self.expected, 'no')} argument{'' if one else 's'}, got {_range_text(self.actual, 'none')}"


def _range_text(range_: Range, zero: str) -> str:
    low, high = range_
    if low == high:
        return zero if low == 0 else str(low)
    if low == 0:
        return "unlimited" if high == INF else f"at most {high}"
    return f"at least {low}" if high == INF else f"between {low} and {high}"


@dataclass(frozen=True, slots=True)
class TypeMismatch(Mismatch):
    """A value of the wrong type."""

    expected: PuppetType
    actual: PuppetType

    def joined(self, other: Mismatch) -> Mismatch:
        assert isinstance(other, TypeMismatch)
        types = [t for e in (self.expected, other.expected) for t in (e.types if isinstance(e, VariantType) else (e,))]
        return replace(self, expected=normalized(VariantType.of(types)))

    def complaint(self) -> str:
        expected = self.expected
        optional = isinstance(expected, OptionalType)
        if isinstance(expected, OptionalType) and expected.type is not None:
            expected = expected.type
        alternatives = list(expected.types) if isinstance(expected, VariantType) else [expected]
        if _in_detail(alternatives, self.actual):
            actual = _detailed(alternatives, self.actual)
            names = [t.expanded() for t in alternatives]
        else:
            names = [short_name(t) for t in alternatives]
            if isinstance(expected, VariantType):
                names = list(dict.fromkeys(names))
            actual = short_name(self.actual)
        if optional:
            names.insert(0, "Undef")
        if len(names) == 1:
            return f"expects {with_article(names[0])} value, got {actual}"
        listed = f"{names[0]} or {names[1]}" if len(names) == 2 else ", ".join(names[:-1]) + f", or {names[-1]}"
        return f"expects a value of type {listed}, got {actual}"


@dataclass(frozen=True, slots=True)
class LiteralMismatch(TypeMismatch):
    """A string that is none of the expected ones or does not match the expected patterns."""

    def complaint(self) -> str:
        expected, prefix = self.expected, ""
        if isinstance(expected, OptionalType) and expected.type is not None:
            expected, prefix = expected.type, "an undef value or "
        literal = self.actual.value if isinstance(self.actual, StringType) else None
        actual = f"'{literal}'" if literal is not None else short_name(self.actual)
        return f"expects {prefix}a match for {expected.expanded()}, got {actual}"


def with_article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiouy" else f"a {noun}"


def short_name(type_: PuppetType) -> str:
    if isinstance(type_, Wrapper) and type_.type is not None and not isinstance(type_.type, AnyType):
        return f"{type_.name}[{type_.type.name}]"
    return type_.name


def _same_kind(alternatives: PuppetType, actual: PuppetType) -> bool:
    if alternatives.__class__ is actual.__class__ or isinstance(alternatives, AliasType) or isinstance(actual, AliasType):
        return True
    return (isinstance(alternatives, StructType) and isinstance(actual, HashType)) or (
        isinstance(alternatives, TupleType) and isinstance(actual, ArrayType)
    )


def _widest(type_: PuppetType) -> PuppetType:
    """Return the bare type of the same class."""
    found = type_.resolved() if isinstance(type_, AliasType) else type_
    try:
        return found.__class__()
    except TypeError:  # types that cannot be without a name
        return found


def _in_detail(alternatives: Sequence[PuppetType], actual: PuppetType) -> bool:
    return any(_same_kind(t, actual) or _widest(t).assignable(actual) for t in alternatives)


def _detailed(alternatives: Sequence[PuppetType], actual: PuppetType) -> str:
    resolved = [t.resolved() if isinstance(t, AliasType) else t for t in alternatives]
    if any(_same_kind(t, actual) for t in resolved):
        return actual.expanded()
    general = actual.generalized()
    return actual.expanded() if any(t.assignable(general) for t in resolved) else actual.name
