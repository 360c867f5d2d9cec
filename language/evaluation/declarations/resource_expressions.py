"""Resource expressions, defaults, overrides and collectors, as generated code calls them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from shared.errors import EvaluationError, Location
from shared.suggestions import did_you_mean
from shared.types import builtin_types

from ...catalog.collectors import ResourceCollector, ResourceTest
from ...catalog.definitions import class_title
from ...catalog.overrides import DUPLICATE
from ...catalog.resources import DeclaredResource, Override, ResourceAttribute, capitalized_type, check_tags, flat_tags
from ...errors.issues import LanguageError, OperandError
from ...types.attribute_references import as_attribute
from ...types.inference.infer import infer
from ...types.kinds.references import ClassType, ResourceEntryType
from ...types.notation.operands import flatten_arrays
from ...values.core import DEFAULT, Value, entries, name_of
from ...values.labels import label
from ...values.text import inspect, to_s
from ..compilation import Compilation, ResolvedType, Scope
from .classes import declare_parent
from .definitions import evaluate

AttributePair: TypeAlias = tuple[str, Value] | tuple[None, dict[str, Value]]
"""An attribute, or a hash of attributes that stands after `* =>`."""


def splat(value: Value) -> dict[str, Value]:
    """Return the hash after `* =>`; raise LanguageError for another value, EvaluationError for a key that is not a string."""
    if not isinstance(value, dict):
        raise LanguageError(f"Expected value of type Hash, got {infer(value).generalized()}", operand="value")
    named: dict[str, Value] = {}
    for key, item in entries(value):
        name = name_of(key)
        if name is None:
            raise EvaluationError(f"The attribute name {inspect(key) if isinstance(key, list | dict) else to_s(key)} is not a String")
        named[name] = item
    return named


def attributes(*pairs: AttributePair) -> dict[str, Value]:
    """
    Return attributes by name; a pair without a name is a splat.

    An attribute that comes twice has the value DUPLICATE; its user reports the error.
    """
    values: dict[str, Value] = {}
    for pair in pairs:
        for attribute, item in pair[1].items() if pair[0] is None else (pair,):
            values[attribute] = DUPLICATE if attribute in values else item
    return values


def declarable(value: Value, acceptable: bool) -> str:
    """
    Return the name of the type that a resource expression declares.

    Args:
        value: the value of the expression in front of the brace.
        acceptable: whether that expression is the name of a type, and may be one with brackets.
    Raises:
        LanguageError: the value is not a resource type.
    """
    if acceptable:
        if isinstance(value, ClassType) and value.class_name is None:
            return "class"
        if isinstance(value, ResourceEntryType) and value.type_name is not None and value.title is None:
            return value.type_name
    titled = acceptable and isinstance(value, ClassType | ResourceEntryType)
    actual = str(value) if titled else str(infer(value).generalized())
    raise LanguageError(f"Illegal Resource Type expression, expected result to be a type name, or untitled Resource, got {actual}")


def _titles(value: Value, index: int, seen: set[str]) -> list[str]:
    """
    Return the titles of a body, with '' for `default`.

    Args:
        index: the body's, for the place of an error.
        seen: the titles of the bodies before it; those of this one are added.
    Raises:
        LanguageError: a title that is missing, empty, no string or used before.
    """
    if value.__class__ is str and value and value not in seen:  # as most are
        seen.add(value)
        return [value]
    operand = f"title {index}"
    if value is None:
        raise LanguageError("Missing title. The title expression resulted in undef", operand=operand)
    titles: list[str] = []
    for position, title in enumerate(flatten_arrays([value])):
        if title is None:
            raise LanguageError(f"Missing title at index {position}. The title expression resulted in an undef title", operand=operand)
        if title is DEFAULT:
            name = "default"
            if name in seen:
                raise LanguageError(f"The title '{name}' has already been used in this resource expression")
            seen.add(name)
            titles.append("")
            continue
        if not isinstance(title, str):
            actual = infer(title).generalized()
            raise LanguageError(f"Illegal title type at index {position}. Expected String, got {actual}", operand=operand)
        if not title:
            raise LanguageError(f"Empty string title at {position}. Title strings must have a length greater than zero.", operand=operand)
        if title in seen:
            raise LanguageError(f"The title '{title}' has already been used in this resource expression")
        seen.add(title)
        titles.append(title)
    return titles


Lines = tuple[tuple[str, int], ...]
"""Attributes' names and their lines; `*` is that of a splat."""


def declare(
    scope: Scope, type_name: str, form: int, file: str | None, line: int, *bodies: tuple[Value, dict[str, Value], Lines]
) -> list[Value]:
    """
    Declare the resources of a resource expression, body by body, and return references to them.

    Args:
        form: 0, 1 (virtual) or 2 (exported).
        file, line: where the expression is written.
        bodies: of each body the titles, the attributes, and the lines of the attributes.
    Source: language reference 4.1 to 4.4.
    """
    compilation = scope.compilation
    if form == 2 and not compilation.storeconfigs:
        compilation.log.warn_here("You cannot collect exported resources without storeconfigs being set; the export is ignored")
    seen: set[str] = set()
    titles: list[list[str]] = []
    for index, (title, values, _) in enumerate(bodies):
        titles.append(_titles(title, index, seen))
        for name, value in values.items():
            if value is DUPLICATE:
                raise LanguageError(f"The attribute '{name}' has already been set")
    defaults: dict[str, Value] = {}
    default_lines: Lines = ()
    attributes = [_as_attributes(values) for _, values, _ in bodies]
    for body_titles, values, (_, _, lines) in zip(titles, attributes, bodies, strict=True):
        if "" in body_titles:
            defaults, default_lines = values, lines
    references: list[Value] = []
    for body_titles, values, (_, _, lines) in zip(titles, attributes, bodies, strict=True):
        if defaults and values is not defaults:
            values, lines = {**defaults, **values}, (*default_lines, *lines)
        references += create_resources(
            scope, type_name, [title for title in body_titles if title], values, form=form, file=file, line=line, lines=lines
        )
    return references


def _as_attributes(values: dict[str, Value]) -> dict[str, Value]:
    """
    Return values as attributes hold them, by name.

    Raises:
        OperandError: no attribute can hold a value; the place is that of the attribute.
    """
    attributes: dict[str, Value] = {}
    for name, value in values.items():
        try:
            if value.__class__ is str or value is None:  # as most are
                attributes[name] = value
            else:
                attributes[name] = as_attribute([*value] if value.__class__ is list else value)
        except EvaluationError as error:
            raise OperandError(error.message, operand=f"attribute {name}", label="a '=>' expression") from None
    return attributes


def create_resources(  # noqa: PLR0913
    scope: Scope,
    type_name: str,
    titles: Sequence[str],
    values: dict[str, Value],
    *,
    form: int = 0,
    file: str | None = None,
    line: int | None = None,
    lines: Lines = (),
    number: float | None = None,
) -> list[Value]:
    """
    Declare one resource per title, and return references to them.

    Args:
        values: as attributes hold them (`as_attribute`).
        number: the title, if it was one.

    Raises:
        EvaluationError: an unknown type, or a resource that is there already.
    """
    resolved = scope.compilation.resolved_types
    if type_name not in resolved:
        resolved[type_name] = _resolve_type(scope.compilation, type_name)
    type_, kind, native, definition = resolved[type_name]
    defaults = scope.default_attributes(type_)
    references: list[Value] = []
    for title in titles:
        if type_ == "Class":
            definition = scope.compilation.definitions.find_class(title)
            if definition is None:
                raise EvaluationError(f"Could not find declared class {title}", hint=_class_hint(scope.compilation, title))
            title = class_title(definition.name)
        resource = DeclaredResource(
            type_,
            title,
            scope=scope,
            source=scope.source,
            file=file,
            line=line,
            native=native,
            definition=definition,
            kind=kind,
            number_title=number,
        )
        resource.values = dict(values)
        resource.lines = lines
        if values.get("tag") is not None:
            _tag(resource, values["tag"])
        resource.virtual = form > 0
        resource.exported = form == 2
        for name, attribute in (defaults or {}).items():
            if name not in resource.values:
                resource.take(name, attribute, resource.place)
        if type_ == "Class":
            declare_parent(scope.compilation, resource)
        scope.compilation.catalog.declare(resource)
        if type_ == "Class":
            evaluate(scope.compilation, resource)
        references.append(resource.reference())
    return references


def _resolve_type(compilation: Compilation, type_name: str) -> ResolvedType:
    """Return the resource type of that name; raise EvaluationError when there is none."""
    lower = type_name.lower()
    if lower == "class":
        return "Class", "class", None, None
    native = compilation.host.types.find(lower)
    if native is not None:
        return capitalized_type(lower), "compilable_type", native, None
    lower = lower.removeprefix("::")
    definition = compilation.definitions.find_define(lower)
    if definition is None:
        raise EvaluationError(f"Unknown resource type: '{type_name}'", hint=_type_hint(compilation, lower))
    return capitalized_type(lower), "defined_type", None, definition


def _class_hint(compilation: Compilation, name: str) -> str:
    return did_you_mean(name, compilation.loader.classes, form="'{}'", otherwise="No module of this environment defines it.")


def _tag(resource: DeclaredResource, value: Value) -> None:
    try:
        resource.add_tags(flat_tags(value))
    except EvaluationError as error:
        error.where = error.where or Location(resource.file, resource.line)
        raise


def _type_hint(compilation: Compilation, name: str) -> str:
    otherwise = "It is neither a built-in type nor a define in a module of this environment."
    return did_you_mean(name, (*builtin_types(), *compilation.loader.defines), form="'{}'", otherwise=otherwise)


def _resource_attributes(
    scope: Scope, values: dict[str, Value], file: str | None, line: int, lines: Lines, appended: Sequence[str] = ()
) -> dict[str, ResourceAttribute]:
    """Return the attributes with the places where they are written; those in `appended` were written with `+>`."""
    places = dict(lines)
    return {
        name: ResourceAttribute(value, scope.source, file, places.get(name, line), name in appended)
        for name, value in _as_attributes(values).items()
    }


def set_defaults(scope: Scope, type_: Value, file: str | None, line: int, values: dict[str, Value], lines: Lines) -> Value:
    """Set the resource defaults of `Type { attribute => value }` in the scope, and return the type."""
    if not (isinstance(type_, ResourceEntryType) and type_.type_name is not None and type_.title is None):
        actual = infer(type_).generalized()
        message = f"Illegal Resource Type expression, expected result to be a type name, or untitled Resource, got {actual}"
        raise LanguageError(message, operand="type")
    name = capitalized_type(type_.type_name)
    table = scope.defaults.setdefault(name, {})
    for attribute_name, attribute in _resource_attributes(scope, values, file, line, lines).items():
        if attribute_name in table or attribute.value is DUPLICATE:
            raise EvaluationError(
                f"Default already defined for {name} {{ {attribute_name} }}; cannot redefine",
                where=Location(attribute.file, attribute.line),
            )
        table[attribute_name] = attribute
    scope.compilation.scopes.has_defaults = True
    return type_


def override(
    scope: Scope, references: Value, file: str | None, line: int, values: dict[str, Value], lines: Lines, appended: Sequence[str]
) -> Value:
    """Override the attributes of `Type['title'] { attribute => value }`, and return the references."""
    attributes = _resource_attributes(scope, values, file, line, lines, appended)
    for reference in flatten_arrays([references]):
        if not isinstance(reference, ResourceEntryType) or reference.type_name is None or reference.title is None:
            raise LanguageError(f"Resource Override can only operate on resources, got: {label(reference)}")
        key = (capitalized_type(reference.type_name), reference.title)
        if "tag" in attributes:
            check_tags(flat_tags(attributes["tag"].value), Location(file, line))
        scope.compilation.add_override(Override(key, attributes, scope.source, file, line))
    return references


def collect(  # noqa: PLR0913
    scope: Scope,
    type_name: str,
    exported: bool,
    test: ResourceTest | None,
    values: dict[str, Value] | None,
    file: str | None,
    line: int,
    lines: Lines,
    appended: Sequence[str],
) -> ResourceCollector:
    """Add a collector to the compilation, which evaluates it again and again until the catalog is done; return it."""
    compilation = scope.compilation
    lower = type_name.lower().removeprefix("::")
    if exported and not compilation.storeconfigs:
        compilation.log.warn_here("You cannot collect exported resources without storeconfigs being set; the collection will be ignored")
    if lower == "class":
        raise EvaluationError("Classes cannot be collected")
    if compilation.host.types.find(lower) is None and compilation.definitions.find_define(lower) is None:
        raise EvaluationError(f"Resource type {type_name.lower()} doesn't exist")
    attributes = _resource_attributes(scope, values, file, line, lines, appended) if values else None
    collector = ResourceCollector(scope, capitalized_type(lower), test, exported=exported, attributes=attributes, file=file, line=line)
    compilation.pending.collectors.append(collector)
    return collector


def illegal_query(construct: str) -> ResourceTest:
    """Raise EvaluationError for a construct that is not a comparison."""
    raise EvaluationError(f"{construct} cannot be used in a query", hint="Queries compare attributes with values, by == and !=.")
