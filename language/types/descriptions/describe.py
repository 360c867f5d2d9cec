"""
Why a value does not fit a type, in the reference's words.

A comparison returns a list of Mismatches, each with a path (`parameter 'x'`, `index 2`, `entry 'a'`) to the part that is wrong. All
variants are compared, and a mismatch that they have in common is reported once. Source: language reference 7.5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ...values.core import Deferred, PuppetType, Value
from ..inference.infer import infer_set
from ..kinds.base import ANY, INF, UNDEF, OptionalType, Range, TypeReference, VariantType
from ..kinds.containers import ArrayType, HashType, StructType, TupleType
from ..kinds.normalization import normalized
from ..kinds.references import CallableType, ClassType, ResourceEntryType, TypeType, capitalized
from ..kinds.scalars import EnumType, PatternType
from ..named.aliases import AliasType
from .mismatch import (
    MISSING_BLOCK,
    MISSING_KEY,
    MISSING_PARAMETER,
    UNEXPECTED_BLOCK,
    UNKNOWN_KEY,
    UNKNOWN_PARAMETER,
    UNRESOLVED,
    LiteralMismatch,
    Mismatch,
    Path,
    PathStep,
    SizeMismatch,
    TextMismatch,
    TypeMismatch,
)


class ParameterView(Protocol):
    """The part of a parameter that messages show."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> PuppetType | None: ...


class SignatureView(Protocol):
    """The part of a signature that messages show: the attributes of `callables.signatures.Signature`."""

    @property
    def parameters(self) -> Sequence[ParameterView]: ...

    low: int
    high: int | None
    block: PuppetType | None
    block_name: str

    def accepts_count(self, count: int) -> bool: ...


# --- finding what is wrong ----------------------------------------------------------------------------------------


def mismatches(expected: PuppetType, actual: PuppetType, path: Path = ()) -> list[Mismatch]:
    """Return the reasons why `actual` does not fit `expected`; an empty list when it fits."""
    unresolved = _unresolved(expected, set())
    if unresolved is not None:
        return [TextMismatch(path, UNRESOLVED, unresolved)]
    return _compare(normalized(expected), expected, actual, path)


def _unresolved(type_: PuppetType, seen: set[int]) -> str | None:
    if isinstance(type_, TypeReference):
        return type_.text
    if isinstance(type_, AliasType):
        if id(type_) in seen or type_.builtin:
            return None
        seen.add(id(type_))
    return next((name for part in type_.parts() if (name := _unresolved(part, seen)) is not None), None)


def _type_mismatch(path: Path, expected: PuppetType, actual: PuppetType) -> list[Mismatch]:
    return [TypeMismatch(path, normalized(expected), normalized(actual))]


def _compare(expected: PuppetType, original: PuppetType, actual: PuppetType, path: Path) -> list[Mismatch]:
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
        return [LiteralMismatch(path, normalized(original), normalized(actual))]
    if isinstance(expected, AliasType):
        return _compare(normalized(expected.definition), expected, actual, path)
    return [] if expected.assignable(actual) else _type_mismatch(path, original, actual)


def _variants(expected: VariantType, original: PuppetType, actual: PuppetType, path: Path) -> list[Mismatch]:
    types = [UNDEF, *expected.types] if isinstance(original, OptionalType) else list(expected.types)
    by_variant = []
    for index, type_ in enumerate(types):
        problems = mismatches(type_, actual, (*path, PathStep("variant", index)))
        if not problems:
            return []
        by_variant.append(problems)
    merged = _merged(len(path), False, by_variant)
    if isinstance(original, AliasType) and len(merged) == 1:
        return _type_mismatch(path, original, actual)
    return merged


def _merged(position: int, arguments: bool, by_alternative: Sequence[list[Mismatch]]) -> list[Mismatch]:
    """Return one mismatch for all variants when each has one of the same class at the same place; else all mismatches."""
    flat = [m for problems in by_alternative for m in problems]
    tests: tuple[Callable[[Mismatch], bool], ...] = (
        lambda m: isinstance(m, SizeMismatch) and m.arguments == arguments,
        lambda m: isinstance(m, TextMismatch) and m.pattern == MISSING_BLOCK,
        lambda m: isinstance(m, TextMismatch) and m.pattern == UNEXPECTED_BLOCK,
        lambda m: isinstance(m, TypeMismatch),
    )
    for test in tests:
        chosen = [m for m in flat if test(m)]
        if chosen and len(chosen) == len(by_alternative) and all(m.at() == chosen[0].at() for m in chosen):
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


def _array(expected: ArrayType, original: PuppetType, actual: PuppetType, path: Path) -> list[Mismatch]:
    if isinstance(actual, TupleType):
        sizes = actual.size if actual.size is not None else (len(actual.types), len(actual.types))
        if not _fits(expected.size, sizes):
            return [SizeMismatch(path, expected.sizes, sizes)]
        return [
            m
            for index, type_ in enumerate(actual.types)
            if not expected.element.assignable(type_)
            for m in mismatches(expected.element, type_, (*path, PathStep("index", index)))
        ]
    if isinstance(actual, ArrayType):
        if not _fits(expected.size, actual.sizes):
            return [SizeMismatch(path, expected.sizes, actual.sizes)]
        return _type_mismatch(path, original, ArrayType(actual.element))
    return _type_mismatch(path, original, actual)


def _fits(size: Range | None, actual: Range) -> bool:
    return size is None or (size[0] <= actual[0] and actual[1] <= size[1])


def _hash(expected: HashType, original: PuppetType, actual: PuppetType, path: Path) -> list[Mismatch]:
    if isinstance(actual, StructType):
        sizes = (actual.required, len(actual.elements))
        if not _fits(expected.size, sizes):
            return [SizeMismatch(path, expected.sizes, sizes)]
        problems: list[Mismatch] = []
        for element in actual.elements:
            if not expected.key_type.assignable(element.key_type):
                problems += mismatches(expected.key_type, element.key_type, (*path, PathStep("key", element.name)))
            if not expected.value_type.assignable(element.value_type):
                problems += mismatches(expected.value_type, element.value_type, (*path, PathStep("entry", element.name)))
        return problems
    if isinstance(actual, HashType):
        if not _fits(expected.size, actual.sizes):
            return [SizeMismatch(path, expected.sizes, actual.sizes)]
        return _type_mismatch(path, original, HashType(actual.key_type, actual.value_type))
    return _type_mismatch(path, original, actual)


def _struct(expected: StructType, original: PuppetType, actual: PuppetType, path: Path) -> list[Mismatch]:
    if isinstance(actual, StructType):
        problems: list[Mismatch] = []
        rest = dict(actual.by_name)
        for mine in expected.elements:
            theirs = rest.pop(mine.name, None)
            if theirs is None:
                problems += [] if mine.optional else [TextMismatch(path, MISSING_KEY, mine.name)]
                continue
            if theirs.optional and not mine.optional:
                problems += mismatches(mine.key_type, theirs.key_type, (*path, PathStep("key", mine.name)))
            if not mine.value_type.assignable(theirs.value_type):
                problems += mismatches(mine.value_type, theirs.value_type, (*path, PathStep("entry", mine.name)))
        return problems + [TextMismatch(path, UNKNOWN_KEY, name) for name in rest]
    if isinstance(actual, HashType):
        sizes = (expected.required, len(expected.elements))
        if not _fits(sizes, actual.sizes):
            return [SizeMismatch(path, sizes, actual.sizes)]
        return _type_mismatch(path, original, HashType(actual.key_type, actual.value_type))
    return _type_mismatch(path, original, actual)


def _tuple(expected: TupleType, original: PuppetType, actual: PuppetType, path: Path, *, arguments: bool) -> list[Mismatch]:
    if expected == actual or (not expected.types and isinstance(actual, ArrayType) and not arguments):
        return []
    if isinstance(actual, TupleType):
        if not _fits(expected.sizes, actual.sizes):
            return [SizeMismatch(path, expected.sizes, actual.sizes, arguments)]
        if not expected.types:
            return []
        problems: list[Mismatch] = []
        for index, type_ in enumerate(actual.types):
            position = min(index, len(expected.types) - 1)
            problems += mismatches(expected.types[position], type_, (*path, PathStep("index", position)))
        return problems
    if isinstance(actual, ArrayType):
        if not _fits(expected.sizes, actual.sizes):
            return [SizeMismatch(path, expected.sizes, actual.sizes, arguments)]
        return [m for i, t in enumerate(expected.types) for m in mismatches(t, actual.element, (*path, PathStep("index", i)))]
    return _type_mismatch(path, original, actual)


def _callable(expected: CallableType, original: PuppetType, actual: PuppetType, path: Path) -> list[Mismatch]:
    if not isinstance(actual, CallableType):
        return _type_mismatch(path, original, actual)
    if expected.params is None and expected.returns is None:
        return []
    # Parameters are contravariant: the actual ones limit the calls.
    if expected.params is not None and actual.params is not None:
        problems = _tuple(expected.params, expected.params, actual.params, path, arguments=True)
        if problems:
            return problems
    expected_return, actual_return = expected.returns or ANY, actual.returns or ANY
    if not expected_return.assignable(actual_return):
        return _type_mismatch((*path, PathStep("return", "return")), expected_return, actual_return)
    expected_block, actual_block = expected.block or UNDEF, actual.block or UNDEF
    return [] if actual_block.assignable(expected_block) else _type_mismatch((*path, PathStep("block")), expected_block, actual_block)


# --- texts --------------------------------------------------------------------------------------------------------


def describe_mismatch(subject: str, expected: PuppetType, actual: PuppetType) -> str:
    """Return `subject expects a …, got …`, one line for each mismatch; an empty text when `actual` fits."""
    problems = mismatches(expected, actual, (PathStep("subject", subject),))
    if len(problems) == 1:
        return problems[0].text().strip()
    return "\n ".join(m.text() for m in problems)


def describe_wrong_type(subject: str, expected: PuppetType, value: Value) -> str:
    """Return the message for a value of a wrong type, each line as `SUBJECT has wrong type, …`."""
    lines = describe_mismatch(subject, expected, infer_set(value)).split("\n")
    return "\n".join(line.replace(subject, f"{subject} has wrong type,", 1) for line in lines)


def check_parameters(
    subject: str,
    parameters: Sequence[tuple[str, PuppetType, bool]],
    values: dict[str, Value],
    *,
    missing_ok: bool = False,
    deferred: Callable[[Deferred], PuppetType | None] | None = None,
) -> str | None:
    """
    Return the errors in the parameters of a class, define or template; None when there are none.

    Args:
        parameters: name and type of each, and whether it has a default.
        values: the values by name.
        missing_ok: whether parameters without a default may be missing.
        deferred: returns the return type of a Deferred's function, or None when the function declares none (then any type accepts it).
    """
    known = {name for name, _, _ in parameters}
    problems: list[Mismatch] = [TextMismatch((), UNKNOWN_PARAMETER, name) for name in values if name not in known]
    for name, type_, default in parameters:
        if name not in values:
            if not (missing_ok or default):
                problems.append(TextMismatch((), MISSING_PARAMETER, name))
            continue
        value = values[name]
        if isinstance(value, Deferred) and deferred is not None:
            returned = deferred(value)
            if returned is not None and not type_.generalized().assignable(returned.generalized()):
                problems += mismatches(type_, returned, (PathStep("parameter", name),))
        elif not type_.instance(value):
            problems += mismatches(type_, _parameter_value_type(value), (PathStep("parameter", name),))
    if not problems:
        return None
    if len(problems) == 1:
        return f"{subject}:{problems[0].text()}"
    return f"{subject}:\n " + "\n ".join(m.text() for m in problems)


def _parameter_value_type(value: Value) -> PuppetType:
    """Return the type of a parameter's value; a class reference counts as one of a resource, because the reference passes it so."""
    if isinstance(value, ClassType) and value.class_name is not None:
        return TypeType(ResourceEntryType("Class", capitalized(value.class_name)))
    return infer_set(value)


def describe_signatures(name: str, signatures: Sequence[SignatureView], args: PuppetType) -> str:
    """Return why a call fits none of `signatures`; `name` is the function's, or `lambda` for a block; `args` is from `arguments_type`."""
    problems = [_argument_problems(s, args, (PathStep("signature", i),)) for i, s in enumerate(signatures)]
    if not all(problems):
        blocks = [_block_problems(s, args, (PathStep("signature", i),)) for i, s in enumerate(signatures)]
        problems = blocks if all(blocks) else [mine or block for mine, block in zip(problems, blocks, strict=True)]
    label = "block" if name == "lambda" else f"'{name}'"
    merged = _merged(0, True, problems)
    if len(merged) == 1:
        return f"{label}{merged[0].text()}"
    if len(signatures) == 1:
        lines = [f"{label} expects ({signature_text(signatures[0])})"]
        lines += [f"  rejected:{m.without(0).text()}" for m in problems[0]]
        return "\n".join(lines)
    lines = [f"The function {label} was called with arguments it does not accept. It expects one of:"]
    for signature, mine in zip(signatures, problems, strict=True):
        lines.append(f"  ({signature_text(signature)})")
        lines += [f"    rejected:{m.without(0).text()}" for m in mine]
    return "\n".join(lines)


def _argument_types(args: PuppetType) -> tuple[list[PuppetType], PuppetType | None]:
    types = list(args.types) if isinstance(args, TupleType) else []
    if types and types[-1].is_callable:
        return types[:-1], types[-1]
    return types, None


def _argument_problems(signature: SignatureView, args: PuppetType, path: Path) -> list[Mismatch]:
    types, _ = _argument_types(args)
    count = len(types)
    if not signature.accepts_count(count):
        return [SizeMismatch(path, (signature.low, INF if signature.high is None else signature.high), (count, count), arguments=True)]
    for index, type_ in enumerate(types):
        parameter = signature.parameters[min(index, len(signature.parameters) - 1)]
        if parameter.type is not None and not parameter.type.assignable(type_):
            problems = mismatches(parameter.type, type_, (*path, PathStep("parameter", parameter.name)))
            if problems:
                return problems
    return []


def _block_problems(signature: SignatureView, args: PuppetType, path: Path) -> list[Mismatch]:
    _, block = _argument_types(args)
    expected = signature.block
    if block is not None:
        if expected is None:
            return [TextMismatch(path, UNEXPECTED_BLOCK)]
        return mismatches(expected, block, (*path, PathStep("block")))
    if expected is None or expected.assignable(UNDEF):
        return []
    return [TextMismatch(path, MISSING_BLOCK)]


def signature_text(signature: SignatureView) -> str:
    """Return the parameters as in a declaration: `Type name`, `name?`, `name*`, `name+`, and the block."""
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
        elif block is not None and not isinstance(block, AliasType):  # as the reference leaves it out
            parts.append(f"{block} {signature.block_name}")
    return ", ".join(parts)
