"""
Why a value does not fit a type, in the reference's words.

A comparison gives a list of Mismatches, each with a path (`parameter 'x'`, `index 2`, `entry 'a'`) to what is wrong;
variants are tried all, and what they have in common is said once. Source: language reference 7.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ..values import Value
from .base import ANY, INF, UNDEF, AliasType, AnyType, OptionalType, Range, Type, TypeReference, VariantType, Wrapper
from .containers import ArrayType, HashType, StructType, TupleType
from .references import CallableType, ClassType, ResourceType, TypeType, capitalized
from .scalars import EnumType, PatternType, StringType

if TYPE_CHECKING:
    from ..signatures import Signature

__all__ = ["check_parameters", "describe_mismatch", "describe_signatures", "mismatches", "with_article"]


@dataclass(frozen=True, slots=True)
class Step:
    """One part of a path. Kinds: subject, parameter, entry, key, index, block, return; variant and signature are not shown."""

    kind: str
    name: str | int = ""

    def __str__(self) -> str:
        texts = {"parameter": "parameter '{}'", "entry": "entry '{}'", "key": "key of entry '{}'", "index": "index {}", "block": "block"}
        return texts.get(self.kind, "{}").format(self.name)


Path = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    path: Path

    def at(self) -> Path:
        """The path without the choices made on the way."""
        return tuple(s for s in self.path if s.kind not in ("variant", "signature"))

    def without(self, index: int) -> Mismatch:
        return self if index >= len(self.path) else replace(self, path=self.path[:index] + self.path[index + 1 :])

    def same_as(self, other: Mismatch) -> bool:
        if isinstance(self, About) and self.name:
            return False  # the reference lists those about a key once for each signature
        return self.__class__ is other.__class__ and replace(self, path=self.at()) == replace(other, path=other.at())

    def joined(self, other: Mismatch) -> Mismatch:
        """One mismatch for two that are at the same place."""
        return self

    def text(self) -> str:
        path, variant = self.path, ""
        if path and path[0].kind == "signature":
            variant, path = f" {int(path[0].name) + 1}.", path[1:]
        place = " " + " ".join(map(_shown_step, path)) if path else ""
        return f"{variant}{place} {self.complaint()}"

    def complaint(self) -> str:
        raise NotImplementedError


def _shown_step(step: Step) -> str:
    return f"variant {step.name}" if step.kind == "variant" else str(step)


@dataclass(frozen=True, slots=True)
class About(Mismatch):
    """A complaint with a fixed text around a name."""

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
class Size(Mismatch):
    """A collection of the wrong size; with `arguments`, a call with the wrong number of them."""

    expected: Range
    actual: Range
    arguments: bool = False

    def joined(self, other: Mismatch) -> Mismatch:
        assert isinstance(other, Size)
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
class Kind(Mismatch):
    """A value of the wrong type."""

    expected: Type
    actual: Type

    def joined(self, other: Mismatch) -> Mismatch:
        assert isinstance(other, Kind)
        types = [t for e in (self.expected, other.expected) for t in (e.types if isinstance(e, VariantType) else (e,))]
        return replace(self, expected=VariantType.of(types).normalized())

    def complaint(self) -> str:
        expected = self.expected
        optional = isinstance(expected, OptionalType)
        if isinstance(expected, OptionalType) and expected.type is not None:
            expected = expected.type
        wanted = list(expected.types) if isinstance(expected, VariantType) else [expected]
        if _in_detail(wanted, self.actual):
            actual = _detailed(wanted, self.actual)
            names = [t.expanded() for t in wanted]
        else:
            names = [short_name(t) for t in wanted]
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
class Match(Kind):
    """A string that is not one of, or does not match, those expected."""

    def complaint(self) -> str:
        expected, prefix = self.expected, ""
        if isinstance(expected, OptionalType) and expected.type is not None:
            expected, prefix = expected.type, "an undef value or "
        literal = self.actual.value if isinstance(self.actual, StringType) else None
        actual = f"'{literal}'" if literal is not None else short_name(self.actual)
        return f"expects {prefix}a match for {expected.expanded()}, got {actual}"


def with_article(noun: str) -> str:
    return f"an {noun}" if noun[:1].lower() in "aeiouy" else f"a {noun}"


def short_name(type_: Type) -> str:
    if isinstance(type_, Wrapper) and type_.type is not None and not isinstance(type_.type, AnyType):
        return f"{type_.name}[{type_.type.name}]"
    return type_.name


def _same_kind(wanted: Type, actual: Type) -> bool:
    if wanted.__class__ is actual.__class__ or isinstance(wanted, AliasType) or isinstance(actual, AliasType):
        return True
    return (isinstance(wanted, StructType) and isinstance(actual, HashType)) or (
        isinstance(wanted, TupleType) and isinstance(actual, ArrayType)
    )


def _widest(type_: Type) -> Type:
    """The bare type of the same class."""
    found = type_.resolved() if isinstance(type_, AliasType) else type_
    try:
        return found.__class__()
    except TypeError:  # types that cannot be without a name
        return found


def _in_detail(wanted: Sequence[Type], actual: Type) -> bool:
    return any(_same_kind(t, actual) or _widest(t).assignable(actual) for t in wanted)


def _detailed(wanted: Sequence[Type], actual: Type) -> str:
    resolved = [t.resolved() if isinstance(t, AliasType) else t for t in wanted]
    if any(_same_kind(t, actual) for t in resolved):
        return actual.expanded()
    general = actual.generalized()
    return actual.expanded() if any(t.assignable(general) for t in resolved) else _simple_name(actual)


def _simple_name(type_: Type) -> str:
    return type_.name


# --- finding what is wrong ----------------------------------------------------------------------------------------


def mismatches(expected: Type, actual: Type, path: Path = ()) -> list[Mismatch]:
    """What keeps `actual` from being `expected`; empty when it is."""
    unresolved = _unresolved(expected, set())
    if unresolved is not None:
        return [About(path, UNRESOLVED, unresolved)]
    return _compare(expected.normalized(), expected, actual, path)


def _unresolved(type_: Type, seen: set[int]) -> str | None:
    if isinstance(type_, TypeReference):
        return type_.text
    if isinstance(type_, AliasType):
        if id(type_) in seen or type_.builtin:
            return None
        seen.add(id(type_))
    return next((found for part in type_.parts() if (found := _unresolved(part, seen)) is not None), None)


def _kind(path: Path, expected: Type, actual: Type) -> list[Mismatch]:
    return [Kind(path, expected.normalized(), actual.normalized())]


def _compare(expected: Type, original: Type, actual: Type, path: Path) -> list[Mismatch]:
    if isinstance(expected, VariantType):
        return _variants(expected, original, actual, path)
    if isinstance(expected, StructType):
        return _struct(expected, original, actual, path)
    if isinstance(expected, HashType):
        return _hash(expected, original, actual, path)
    if isinstance(expected, TupleType):
        return _tuple(expected, original, actual, path, arguments=False)
    if isinstance(expected, ArrayType):
        return _array(expected, original, actual, path)
    if isinstance(expected, CallableType):
        return _callable(expected, original, actual, path)
    if isinstance(expected, OptionalType):
        if actual == UNDEF or expected.type is None:
            return []
        return _compare(expected.type, original if isinstance(original, AliasType) else expected, actual, path)
    if isinstance(expected, PatternType | EnumType):
        return [Match(path, original.normalized(), actual.normalized())]
    if isinstance(expected, AliasType):
        return _compare(expected.definition.normalized(), expected, actual, path)
    return [] if expected.assignable(actual) else _kind(path, original, actual)


def _variants(expected: VariantType, original: Type, actual: Type, path: Path) -> list[Mismatch]:
    types = [UNDEF, *expected.types] if isinstance(original, OptionalType) else list(expected.types)
    found = []
    for index, type_ in enumerate(types):
        problems = mismatches(type_, actual, (*path, Step("variant", index)))
        if not problems:
            return []
        found.append(problems)
    merged = _merged(len(path), False, found)
    if isinstance(original, AliasType) and len(merged) == 1:
        return _kind(path, original, actual)
    return merged


def _merged(position: int, arguments: bool, found: Sequence[list[Mismatch]]) -> list[Mismatch]:
    """One complaint for all variants, when each has one of the same kind at the same place; else all of them."""
    flat = [m for problems in found for m in problems]
    tests: tuple[Callable[[Mismatch], bool], ...] = (
        lambda m: isinstance(m, Size) and m.arguments == arguments,
        lambda m: isinstance(m, About) and m.pattern == MISSING_BLOCK,
        lambda m: isinstance(m, About) and m.pattern == UNEXPECTED_BLOCK,
        lambda m: isinstance(m, Kind),
    )
    for test in tests:
        chosen = [m for m in flat if test(m)]
        if chosen and len(chosen) == len(found) and all(m.at() == chosen[0].at() for m in chosen):
            first = chosen[0]
            for other in chosen[1:]:
                first = first.joined(other)
            flat = [first]
            break
    unique: list[Mismatch] = []
    for mismatch in flat:
        if not any(mismatch.same_as(other) for other in unique):
            unique.append(mismatch)
    return [unique[0].without(position)] if len(unique) == 1 else unique


def _array(expected: ArrayType, original: Type, actual: Type, path: Path) -> list[Mismatch]:
    if isinstance(actual, TupleType):
        sizes = actual.size if actual.size is not None else (len(actual.types), len(actual.types))
        if not _fits(expected.size, sizes):
            return [Size(path, expected.sizes, sizes)]
        return [
            m
            for index, type_ in enumerate(actual.types)
            if not expected.element.assignable(type_)
            for m in mismatches(expected.element, type_, (*path, Step("index", index)))
        ]
    if isinstance(actual, ArrayType):
        if not _fits(expected.size, actual.sizes):
            return [Size(path, expected.sizes, actual.sizes)]
        return _kind(path, original, ArrayType(actual.element))
    return _kind(path, original, actual)


def _fits(size: Range | None, actual: Range) -> bool:
    return size is None or (size[0] <= actual[0] and actual[1] <= size[1])


def _hash(expected: HashType, original: Type, actual: Type, path: Path) -> list[Mismatch]:
    if isinstance(actual, StructType):
        sizes = (actual.required, len(actual.elements))
        if not _fits(expected.size, sizes):
            return [Size(path, expected.sizes, sizes)]
        found: list[Mismatch] = []
        for element in actual.elements:
            if not expected.key_type.assignable(element.key_type):
                found += mismatches(expected.key_type, element.key_type, (*path, Step("key", element.name)))
            if not expected.value_type.assignable(element.value_type):
                found += mismatches(expected.value_type, element.value_type, (*path, Step("entry", element.name)))
        return found
    if isinstance(actual, HashType):
        if not _fits(expected.size, actual.sizes):
            return [Size(path, expected.sizes, actual.sizes)]
        return _kind(path, original, HashType(actual.key_type, actual.value_type))
    return _kind(path, original, actual)


def _struct(expected: StructType, original: Type, actual: Type, path: Path) -> list[Mismatch]:
    if isinstance(actual, StructType):
        found: list[Mismatch] = []
        rest = dict(actual.by_name)
        for mine in expected.elements:
            theirs = rest.pop(mine.name, None)
            if theirs is None:
                found += [] if mine.optional else [About(path, MISSING_KEY, mine.name)]
                continue
            if theirs.optional and not mine.optional:
                found += mismatches(mine.key_type, theirs.key_type, (*path, Step("key", mine.name)))
            if not mine.value_type.assignable(theirs.value_type):
                found += mismatches(mine.value_type, theirs.value_type, (*path, Step("entry", mine.name)))
        return found + [About(path, UNKNOWN_KEY, name) for name in rest]
    if isinstance(actual, HashType):
        sizes = (expected.required, len(expected.elements))
        if not _fits(sizes, actual.sizes):
            return [Size(path, sizes, actual.sizes)]
        return _kind(path, original, HashType(actual.key_type, actual.value_type))
    return _kind(path, original, actual)


def _tuple(expected: TupleType, original: Type, actual: Type, path: Path, *, arguments: bool) -> list[Mismatch]:
    if expected == actual or (not expected.types and isinstance(actual, ArrayType) and not arguments):
        return []
    if isinstance(actual, TupleType):
        if not _fits(expected.sizes, actual.sizes):
            return [Size(path, expected.sizes, actual.sizes, arguments)]
        if not expected.types:
            return []
        found: list[Mismatch] = []
        for index, type_ in enumerate(actual.types):
            position = min(index, len(expected.types) - 1)
            found += mismatches(expected.types[position], type_, (*path, Step("index", position)))
        return found
    if isinstance(actual, ArrayType):
        if not _fits(expected.sizes, actual.sizes):
            return [Size(path, expected.sizes, actual.sizes, arguments)]
        return [m for i, t in enumerate(expected.types) for m in mismatches(t, actual.element, (*path, Step("index", i)))]
    return _kind(path, original, actual)


def _callable(expected: CallableType, original: Type, actual: Type, path: Path) -> list[Mismatch]:
    if not isinstance(actual, CallableType):
        return _kind(path, original, actual)
    if expected.params is None and expected.returns is None:
        return []
    # The other way round: what is called limits what it may be called with.
    if expected.params is not None and actual.params is not None:
        problems = _tuple(expected.params, expected.params, actual.params, path, arguments=True)
        if problems:
            return problems
    wanted, given = expected.returns or ANY, actual.returns or ANY
    if not wanted.assignable(given):
        return _kind((*path, Step("return", "return")), wanted, given)
    block, given_block = expected.block or UNDEF, actual.block or UNDEF
    return [] if given_block.assignable(block) else _kind((*path, Step("block")), block, given_block)


# --- texts --------------------------------------------------------------------------------------------------------


def describe_mismatch(subject: str, expected: Type, actual: Type) -> str:
    """`subject expects a …, got …`, on as many lines as there are problems; '' when there are none."""
    found = mismatches(expected, actual, (Step("subject", subject),))
    if len(found) == 1:
        return found[0].text().strip()
    return "\n ".join(m.text() for m in found)


class _Resolver(Protocol):
    def __call__(self, value: Value) -> Type | None: ...


def check_parameters(
    subject: str,
    parameters: Sequence[tuple[str, Type, bool]],
    given: dict[str, Value],
    *,
    missing_ok: bool = False,
    deferred: _Resolver | None = None,
) -> str | None:
    """
    What is wrong with the parameters of a class, define or template; None when nothing is.

    Args:
        parameters: name, type, whether it has a default.
        deferred: gives the return type of a Deferred's function, None when that declares none (then it passes).
    """
    from ..values import Deferred

    known = {name for name, _, _ in parameters}
    found: list[Mismatch] = [About((), UNKNOWN_PARAMETER, name) for name in given if name not in known]
    for name, type_, default in parameters:
        if name not in given:
            if not (missing_ok or default):
                found.append(About((), MISSING_PARAMETER, name))
            continue
        value = given[name]
        if type_.instance(value):
            continue
        if isinstance(value, Deferred) and deferred is not None:
            returned = deferred(value)
            if returned is not None and not type_.generalized().assignable(returned.generalized()):
                found += mismatches(type_, returned, (Step("parameter", name),))
            continue
        found += mismatches(type_, _given_type(value), (Step("parameter", name),))
    if not found:
        return None
    if len(found) == 1:
        return f"{subject}:{found[0].text()}"
    return f"{subject}:\n " + "\n ".join(m.text() for m in found)


def _given_type(value: Value) -> Type:
    """The type of a parameter's value; a class reference counts as a resource's, as the reference hands it over."""
    from .infer import infer_set

    if isinstance(value, ClassType) and value.class_name is not None:
        return TypeType(ResourceType("Class", capitalized(value.class_name)))
    return infer_set(value)


def describe_signatures(name: str, signatures: Sequence[Signature], args: Type) -> str:
    """Why a call fits none of `signatures`; `name` is the function's, `lambda` for a block; `args` from `args_tuple`."""
    problems = [_argument_problems(s, args, (Step("signature", i),)) for i, s in enumerate(signatures)]
    if not all(problems):
        blocks = [_block_problems(s, args, (Step("signature", i),)) for i, s in enumerate(signatures)]
        problems = blocks if all(blocks) else [mine or block for mine, block in zip(problems, blocks, strict=True)]
    label = "block" if name == "lambda" else f"'{name}'"
    found = _merged(0, True, problems)
    if len(found) == 1:
        return f"{label}{found[0].text()}"
    if len(signatures) == 1:
        lines = [f"{label} expects ({signature_text(signatures[0])})"]
        lines += [f"  rejected:{m.without(0).text()}" for m in problems[0]]
        return "\n".join(lines)
    lines = [f"The function {label} was called with arguments it does not accept. It expects one of:"]
    for signature, mine in zip(signatures, problems, strict=True):
        lines.append(f"  ({signature_text(signature)})")
        lines += [f"    rejected:{m.without(0).text()}" for m in mine]
    return "\n".join(lines)


def _argument_types(args: Type) -> tuple[list[Type], Type | None]:
    types = list(args.types) if isinstance(args, TupleType) else []
    if types and types[-1].is_callable:
        return types[:-1], types[-1]
    return types, None


def _argument_problems(signature: Signature, args: Type, path: Path) -> list[Mismatch]:
    types, _ = _argument_types(args)
    count = len(types)
    if not signature.accepts_count(count):
        return [Size(path, (signature.low, INF if signature.high is None else signature.high), (count, count), arguments=True)]
    for index, type_ in enumerate(types):
        parameter = signature.parameters[min(index, len(signature.parameters) - 1)]
        if parameter.type is not None and not parameter.type.assignable(type_):
            found = mismatches(parameter.type, type_, (*path, Step("parameter", parameter.name)))
            if found:
                return found
    return []


def _block_problems(signature: Signature, args: Type, path: Path) -> list[Mismatch]:
    _, block = _argument_types(args)
    wanted = signature.block
    if block is not None:
        if wanted is None:
            return [About(path, UNEXPECTED_BLOCK)]
        return mismatches(wanted, block, (*path, Step("block")))
    if wanted is None or wanted.assignable(UNDEF):
        return []
    return [About(path, MISSING_BLOCK)]


def signature_text(signature: Signature) -> str:
    """The parameters, as in a declaration: `Type name`, `name?`, `name*`, `name+`, and the block."""
    parts = []
    required = signature.low
    if signature.high != 0:
        for index, parameter in enumerate(signature.parameters):
            type_ = parameter.type or ANY
            mark = ""
            if signature.high is None and index == len(signature.parameters) - 1:
                mark = "+" if required == len(signature.parameters) else "*"
            elif index + 1 > required:
                mark = "?"
                type_ = type_.type if isinstance(type_, OptionalType) and type_.type is not None else type_
            parts.append(f"{type_} {parameter.name}{mark}")
    block = signature.block
    if parts or signature.high != 0:
        if isinstance(block, OptionalType):
            parts.append(f"{block.type} {signature.block_name}?")
        elif block is not None:
            parts.append(f"{block} {signature.block_name}")
    return ", ".join(parts)
