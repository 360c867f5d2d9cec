"""Functions that work on the catalog: include and its kin, virtual resources, tags, defined."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shared.errors import EvaluationError, Location

from ..catalog.definitions import class_title
from ..catalog.relationships import split_reference
from ..catalog.resources import DeclaredResource, capitalized_type, flat_tags
from ..errors.locations import current_line
from ..types.attribute_references import as_attribute, as_legacy_argument
from ..types.kinds.references import ClassType, ResourceEntryType, TypeType
from ..values.core import PuppetType, Value, entries, name_of
from ..values.text import inspect, to_s
from .api import function
from .catalog_context import CatalogContext


def _flatten(values: Iterable[Value]) -> Iterator[Value]:
    for value in values:
        if isinstance(value, list | tuple):
            yield from _flatten(value)
        else:
            yield value


def class_names(values: Iterable[Value]) -> list[str]:
    """
    Return absolute lower-case names of classes given as names or references, nested arrays flattened.

    Source: language reference 5.2.
    """
    names: list[str] = []
    for value in _flatten(values):
        if value is None:
            raise EvaluationError("Cannot use undef as a class name")
        if isinstance(value, str):
            if not value:
                raise EvaluationError("Cannot use empty string as a class name")
            name = value
        elif isinstance(value, ClassType):
            if value.class_name is None:
                raise EvaluationError("Cannot use an unspecific Class[] Type")
            name = value.class_name
        elif isinstance(value, ResourceEntryType):
            if value.type_name is None or value.type_name.lower() != "class":
                raise EvaluationError(f"Cannot use a Resource[{value.type_name}] where a Resource['class', name] is expected")
            if not value.title:
                raise EvaluationError("Cannot use an unspecific Resource['class'] where a Resource['class', name] is expected")
            name = value.title
        else:
            raise EvaluationError(f"Cannot use {to_s(value)!r} as a class name", hint="Give the name of a class, or Class['name'].")
        names.append(f"::{name.removeprefix('::')}".lower())
    return names


def _references(names: list[str]) -> list[Value]:
    return [ClassType(name.removeprefix("::")) for name in names]


@function("include", "Any names+")
def include(context: CatalogContext, *names: Value) -> list[Value]:
    """Declare classes that are not declared yet; return references to all of them."""
    absolute_names = class_names(names)
    context.include(absolute_names)
    return _references(absolute_names)


@function("contain", "Any names+")
def contain(context: CatalogContext, *names: Value) -> list[Value]:
    """Do the same as `include`, and contain the classes in the calling class or define."""
    absolute_names = class_names(names)
    container = context.resource
    for resource in context.include(absolute_names):
        if container is not None and not any(other is container for other in resource.containers):
            context.compilation.catalog.contain(container, resource)
    return _references(absolute_names)


@function("require", "Any names+")
def require(context: CatalogContext, *names: Value) -> list[Value]:
    """Do the same as `include`, and make the calling class or define require the classes."""
    absolute_names = class_names(names)
    context.include(absolute_names)
    resource = context.resource
    if resource is not None:
        required = resource.values.get("require")
        existing = list(_flatten([required])) if required is not None else []
        resource.set("require", as_attribute([*existing, *_references(absolute_names)]))
    return _references(absolute_names)


@function("realize", "Any references*")
def realize(context: CatalogContext, *references: Value) -> None:
    """Make virtual resources real, now or when they are declared."""
    if not references:
        raise EvaluationError("realize(): Wrong number of arguments given (0 for minimum 1)")
    types_and_titles = [split_reference(value) for value in _flatten(references) if value is not None]
    if types_and_titles:
        context.realize(types_and_titles)


@function("create_resources", "Any arguments*")
def create_resources(context: CatalogContext, *arguments: Value) -> None:
    """Declare resources from a hash of titles to attributes; `@` and `@@` before the type make them virtual or exported."""
    count = len(arguments)
    if count < 2:
        raise EvaluationError(f"create_resources(): Wrong number of arguments given ({count} for minimum 2)")
    if count > 3:
        raise EvaluationError(f"create_resources(): wrong number of arguments ({count}; must be 2 or 3)")
    # This function is of the 3.x API.
    type_, instances, *others = map(as_legacy_argument, arguments)
    defaults = others[0] if others else {}
    if not isinstance(instances, dict):
        raise EvaluationError("create_resources(): second argument must be a hash")
    if not isinstance(defaults, dict):
        raise EvaluationError("create_resources(): third argument, if provided, must be a hash")
    name = to_s(type_) if not isinstance(type_, ResourceEntryType) else str(type_.type_name)
    virtuality = 2 if name.startswith("@@") else 1 if name.startswith("@") else 0
    type_name = name.removeprefix("@").removeprefix("@").lower()
    location = current_line()
    file, line = (location.file, location.line) if location is not None else (None, None)
    if virtuality and type_name == "class":
        raise EvaluationError("Evaluation Error: Classes are not virtualizable", where=Location(file, line))
    for title, attributes in entries(instances):
        if attributes is not None and not isinstance(attributes, dict):
            raise EvaluationError(f"create_resources(): the attributes of {to_s(title)} must be a hash")
        if attributes is None:
            raise EvaluationError("no implicit conversion of nil into Hash", hint=f"Give {to_s(title)} an empty hash: {{}}.")
        values: dict[str, Value] = {}
        for key, value in entries({**defaults, **attributes}):
            attribute = name_of(key)
            if attribute is None:
                raise EvaluationError(f"create_resources(): the attribute name {to_s(key)} of {to_s(title)} is not a String")
            values[attribute] = value
        titles = [to_s(part) for part in title] if isinstance(title, list) else [to_s(title)]
        number = title if isinstance(title, int | float) else None
        context.create_resources(type_name, titles, values, form=virtuality, file=file, line=line, number=number)


@function("tag", "Any tags*")
def tag(context: CatalogContext, *tags: Value) -> None:
    """Tag the calling class, define or node and everything in it."""
    if not tags:
        raise EvaluationError("tag(): Wrong number of arguments given (0 for minimum 1)")
    resource = context.resource
    if resource is not None:
        resource.add_tags(flat_tags([as_legacy_argument(tag_) for tag_ in tags]))


@function("tagged", "Any tags*")
def tagged(context: CatalogContext, *tags: Value) -> bool:
    """Return whether every tag is one of the catalog or of the calling class, define or node."""
    wanted_tags = [tag_.lower() for tag_ in flat_tags([as_legacy_argument(tag_) for tag_ in tags])]
    catalog_tags: set[str] = set(context.compilation.catalog.tags)
    for name in context.compilation.catalog.classes:
        catalog_tags.add(name)
        catalog_tags.update(name.split("::"))
    resource = context.resource
    return all(tag_ in catalog_tags or (resource is not None and resource.is_tagged(tag_)) for tag_ in wanted_tags)


@function("fail", "Any values*")
def fail(context: CatalogContext, *values: Value) -> None:
    """Stop the compilation with a message."""
    raise EvaluationError(" ".join(_ruby_to_s(as_legacy_argument(value)) for value in values))


def _ruby_to_s(value: Value) -> str:
    return inspect(value) if isinstance(value, list | dict) else to_s(value)


@function("defined", "Variant[String, Type[CatalogEntry], Type[Type[CatalogEntry]]] vals+")
def defined(context: CatalogContext, *values: Value) -> bool:
    """Return whether any of these exists: a type or class by name, `'$variable'`, or a resource declared so far."""
    return any(_is_defined(context, value) for value in values)


def _is_defined(context: CatalogContext, value: Value) -> bool:
    compilation = context.compilation
    if isinstance(value, str):
        if value.startswith("$") and len(value) > 1:
            return context.exists(value[1:])
        if not value:
            return False
        if value == "main":
            return True
        lower = value.lower()
        if ":" not in lower and compilation.host.types.find(lower) is not None:
            return True
        name = lower.removeprefix("::")
        return compilation.definitions.find_define(name) is not None or compilation.definitions.has_class(name)
    if isinstance(value, TypeType):
        return _is_known(context, value.type)
    if isinstance(value, ClassType):
        if value.class_name is None:
            raise EvaluationError("The given class type is a reference to all classes")
        return _find(context, value) is not None
    if isinstance(value, ResourceEntryType):
        if value.type_name is None:
            raise EvaluationError("The given resource type is a reference to all kind of types")
        return _is_known(context, value) if value.title is None else _find(context, value) is not None
    raise EvaluationError(f"Invalid argument of type '{value}' to 'defined'")


def _is_known(context: CatalogContext, value: PuppetType | None) -> bool:
    compilation = context.compilation
    if isinstance(value, ResourceEntryType):
        if value.type_name is None:
            raise EvaluationError("The given resource type is a reference to all kind of types")
        if value.title is not None:
            return _find(context, value) is not None
        lower = value.type_name.lower()
        return compilation.host.types.find(lower) is not None or compilation.definitions.find_define(lower) is not None
    if isinstance(value, ClassType):
        if value.class_name is None:
            raise EvaluationError("The given class type is a reference to all classes")
        return compilation.definitions.has_class(value.class_name)
    return False


def _find(context: CatalogContext, value: ResourceEntryType | ClassType) -> DeclaredResource | None:
    if isinstance(value, ClassType):
        return context.compilation.catalog.find("Class", class_title(value.class_name or ""))
    return context.compilation.catalog.find(capitalized_type(value.type_name or ""), value.title or "")
