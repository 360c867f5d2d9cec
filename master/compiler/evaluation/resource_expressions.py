"""Resource expressions, defaults, overrides and collectors, as generated code calls them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from shared.errors import EvaluationError, Location
from shared.suggestions import did_you_mean

from ..catalog.collectors import ResourceCollector, ResourceTest
from ..catalog.definitions import Definition, class_title
from ..catalog.overrides import DUPLICATE
from ..catalog.resources import DeclaredResource, Override, ResourceAttribute, capitalized_type, check_tags, flat_tags
from ..errors.issues import LanguageError, OperandError
from ..errors.locations import UNIT
from ..types.attribute_references import as_attribute
from ..types.infer import infer
from ..types.references import ClassType, ResourceType
from ..values.core import DEFAULT, Value, entries
from ..values.labels import label
from ..values.text import inspect, to_s
from .class_declarations import declare_parent
from .scope import Scope

if TYPE_CHECKING:
    from ..host import NativeType
    from .compilation import Compilation

__all__ = [
    "attributes",
    "collect",
    "create_resources",
    "declarable",
    "declare",
    "illegal_query",
    "override",
    "set_defaults",
    "splat",
]


def splat(value: Value) -> dict[str, Value]:
    if not isinstance(value, dict):
        raise LanguageError(f"Expected value of type Hash, got {infer(value).generalized()}", operand="value")
    for key, _ in entries(value):
        if not isinstance(key, str):
            raise EvaluationError(f"The attribute name {inspect(key) if isinstance(key, list | dict) else to_s(key)} is not a String")
    return value


def attributes(*pairs: tuple[str | None, Value]) -> dict[str, Value]:
    """The attributes of one body; a pair without a name is a splat."""
    found: dict[str, Value] = {}
    for name, value in pairs:
        given = value.items() if name is None else ((name, value),)
        for each, item in given:
            if each in found:
                raise LanguageError(f"The attribute '{each}' has already been set")
            found[each] = item
    return found


def override_attributes(*pairs: tuple[str | None, Value]) -> dict[str, Value]:
    """The attributes of an override, collector or defaults; one that comes twice is an error of the resource that would get it."""
    found: dict[str, Value] = {}
    for name, value in pairs:
        for each, item in value.items() if name is None else ((name, value),):
            found[each] = DUPLICATE if each in found else item
    return found


def declarable(value: Value, acceptable: bool) -> str:
    """The name of the type to declare, of the value of the expression that says it."""
    if acceptable:
        if isinstance(value, ClassType) and value.class_name is None:
            return "class"
        if isinstance(value, ResourceType) and value.type_name is not None and value.title is None:
            return value.type_name
    titled = acceptable and isinstance(value, ClassType | ResourceType)
    actual = str(value) if titled else str(infer(value).generalized())
    raise LanguageError(f"Illegal Resource Type expression, expected result to be a type name, or untitled Resource, got {actual}")


def _titles(value: Value, index: int, seen: set[str]) -> list[str]:
    operand = f"title {index}"
    if value is None:
        raise LanguageError("Missing title. The title expression resulted in undef", operand=operand)
    found: list[str] = []
    for position, title in enumerate(_flat(value)):
        if title is None:
            raise LanguageError(f"Missing title at index {position}. The title expression resulted in an undef title", operand=operand)
        if title is DEFAULT:
            name = "default"
            if name in seen:
                raise LanguageError(f"The title '{name}' has already been used in this resource expression")
            seen.add(name)
            found.append("")
            continue
        if not isinstance(title, str):
            actual = infer(title).generalized()
            raise LanguageError(f"Illegal title type at index {position}. Expected String, got {actual}", operand=operand)
        if not title:
            raise LanguageError(f"Empty string title at {position}. Title strings must have a length greater than zero.", operand=operand)
        if title in seen:
            raise LanguageError(f"The title '{title}' has already been used in this resource expression")
        seen.add(title)
        found.append(title)
    return found


def _flat(value: Value) -> Iterable[Value]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


Lines = tuple[tuple[str, int], ...]


def declare(scope: Scope, type_name: str, form: int, line: int, *bodies: tuple[Value, dict[str, Value], Lines]) -> list[Value]:
    """
    A resource expression: every body's resources, in order; gives references to them.

    `form` is 0, 1 (virtual) or 2 (exported). Source: language reference 4.1 to 4.4.
    """
    compilation = scope.compilation
    if form == 2 and not compilation.storeconfigs:
        compilation.log.warn_here("You cannot collect exported resources without storeconfigs being set; the export is ignored")
    seen: set[str] = set()
    titles = [_titles(title, index, seen) for index, (title, _, _) in enumerate(bodies)]
    defaults: dict[str, Value] = {}
    default_lines: Lines = ()
    attributes = [_as_attributes(values) for _, values, _ in bodies]
    for body_titles, values, (_, _, lines) in zip(titles, attributes, bodies, strict=True):
        if "" in body_titles:
            defaults, default_lines = values, lines
    file = _file()
    made: list[Value] = []
    for body_titles, values, (_, _, lines) in zip(titles, attributes, bodies, strict=True):
        if defaults and values is not defaults:
            values, lines = {**defaults, **values}, (*default_lines, *lines)
        made += create_resources(
            scope, type_name, [title for title in body_titles if title], values, form=form, file=file, line=line, lines=lines
        )
    return made


def _as_attributes(values: dict[str, Value]) -> dict[str, Value]:
    """
    Return values as attributes hold them, by name.

    Raises:
        Refused: no attribute can hold a value; the place is that of the attribute.
    """
    attributes: dict[str, Value] = {}
    for name, value in values.items():
        try:
            attributes[name] = as_attribute(value)
        except EvaluationError as error:
            raise OperandError(error.message, operand=f"attribute {name}", label="a '=>' expression") from None
    return attributes


def _file() -> str | None:
    frame: Any = sys._getframe(2)
    unit = frame.f_globals.get(UNIT)
    while unit is None and frame.f_back is not None:
        frame = frame.f_back
        unit = frame.f_globals.get(UNIT)
    return None if unit is None else unit.source.file


def create_resources(
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
    Declare one resource per title; gives references to them.

    Args:
        values: as attributes hold them (`as_attribute`).
        number: the title, if it was one.

    Raises:
        EvaluationError: an unknown type, or a resource that is there already.
    """
    type_, kind, native, definition = _resolved(scope.compilation, type_name)
    defaults = scope.default_attributes(type_)
    made: list[Value] = []
    for title in titles:
        if type_ == "Class":
            definition = scope.compilation.definitions.find_class(title)
            if definition is None:
                raise EvaluationError(f"Could not find declared class {title}", hint=_similar_class(scope.compilation, title))
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
            scope.compilation.evaluate(resource)
        made.append(resource.reference())
    return made


def _resolved(compilation: Compilation, type_name: str) -> tuple[str, str, NativeType | None, Definition | None]:
    """The type as catalogs write it, its kind on the wire, and what implements it."""
    lower = type_name.lower()
    if lower == "class":
        return "Class", "class", None, None
    native = compilation.host.types.find(lower)
    if native is not None:
        return capitalized_type(lower), "compilable_type", native, None
    lower = lower.removeprefix("::")
    definition = compilation.definitions.find_define(lower)
    if definition is None:
        raise EvaluationError(f"Unknown resource type: '{type_name}'", hint=_similar_type(compilation, lower))
    return capitalized_type(lower), "defined_type", None, definition


def _similar_class(compilation: Compilation, name: str) -> str:
    return did_you_mean(name, compilation.loader.classes, form="'{}'", otherwise="No module of this environment defines it.")


def _tag(resource: DeclaredResource, value: Value) -> None:
    try:
        resource.add_tags(flat_tags(value))
    except EvaluationError as error:
        error.where = error.where or Location(resource.file, resource.line)
        raise


def _similar_type(compilation: Compilation, name: str) -> str:
    otherwise = "It is neither a built-in type nor a define in a module of this environment."
    return did_you_mean(name, compilation.loader.defines, form="'{}'", otherwise=otherwise)


def _given(scope: Scope, values: dict[str, Value], line: int, lines: Lines, appended: Sequence[str] = ()) -> dict[str, ResourceAttribute]:
    file = _file()
    places = dict(lines)
    return {
        name: ResourceAttribute(value, scope.source, file, places.get(name, line), name in appended)
        for name, value in _as_attributes(values).items()
    }


def set_defaults(scope: Scope, type_: Value, line: int, values: dict[str, Value], lines: Lines) -> Value:
    """`Type { attribute => value }`; gives the type."""
    if not (isinstance(type_, ResourceType) and type_.type_name is not None and type_.title is None):
        actual = infer(type_).generalized()
        message = f"Illegal Resource Type expression, expected result to be a type name, or untitled Resource, got {actual}"
        raise LanguageError(message, operand="type")
    name = capitalized_type(type_.type_name)
    table = scope.defaults.setdefault(name, {})
    for attribute_name, attribute in _given(scope, values, line, lines).items():
        if attribute_name in table or attribute.value is DUPLICATE:
            raise EvaluationError(
                f"Default already defined for {name} {{ {attribute_name} }}; cannot redefine",
                where=Location(attribute.file, attribute.line),
            )
        table[attribute_name] = attribute
    scope.compilation.scopes.has_defaults = True
    return type_


def override(scope: Scope, references: Value, line: int, values: dict[str, Value], lines: Lines, appended: Sequence[str]) -> Value:
    """`Type['title'] { attribute => value }`; gives the reference(s)."""
    given = _given(scope, values, line, lines, appended)
    for reference in _flat(references):
        if not isinstance(reference, ResourceType) or reference.type_name is None or reference.title is None:
            raise LanguageError(f"Resource Override can only operate on resources, got: {label(reference)}")
        key = (capitalized_type(reference.type_name), reference.title)
        if "tag" in given:
            check_tags(flat_tags(given["tag"].value), Location(_file(), line))
        scope.compilation.add_override(Override(key, given, scope.source, _file(), line))
    return references


def collect(
    scope: Scope,
    type_name: str,
    exported: bool,
    test: ResourceTest | None,
    values: dict[str, Value] | None,
    line: int,
    lines: Lines,
    appended: Sequence[str],
) -> ResourceCollector:
    """A collector; it is evaluated again and again until the catalog is done."""
    compilation = scope.compilation
    lower = type_name.lower().removeprefix("::")
    if exported and not compilation.storeconfigs:
        compilation.log.warn_here("You cannot collect exported resources without storeconfigs being set; the collection will be ignored")
    if lower == "class":
        raise EvaluationError("Classes cannot be collected")
    if compilation.host.types.find(lower) is None and compilation.definitions.find_define(lower) is None:
        raise EvaluationError(f"Resource type {type_name.lower()} doesn't exist")
    given = _given(scope, values, line, lines, appended) if values else None
    made = ResourceCollector(scope, capitalized_type(lower), test, exported=exported, attributes=given, file=_file(), line=line)
    compilation.pending.collectors.append(made)
    return made


def illegal_query(what: str) -> ResourceTest:
    raise EvaluationError(f"{what} cannot be used in a query", hint="Queries compare attributes with values, by == and !=.")
