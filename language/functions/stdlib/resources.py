"""Resources of the catalog: ensure_resource and its kin, defined_with_params, getparam, str2resource, stdlib::ensure, assert_private."""

from __future__ import annotations

from shared.errors import EvaluationError

from ...catalog.relationships import split_reference
from ...catalog.resources import DeclaredResource, capitalized_type
from ...types.attribute_references import as_attribute
from ...types.kinds.references import ClassType, ResourceEntryType
from ...values.core import Value, entries, is_same, key_of
from ...values.labels import ruby_class
from ...values.text import inspect, to_s
from ..api import Context, function, legacy_function
from ..catalog_context import CatalogContext
from ..strings import ruby_text


def _find_resource(context: CatalogContext, reference: Value) -> DeclaredResource | None:
    return context.compilation.catalog.find(*split_reference(reference))


# --- looking ------------------------------------------------------------------------------------------------------


def _candidates(context: CatalogContext, reference: Value) -> list[DeclaredResource]:
    catalog = context.compilation.catalog
    if isinstance(reference, ResourceEntryType) and reference.type_name is not None and reference.title is None:
        type_name = capitalized_type(reference.type_name)
        return [resource for resource in catalog if resource.type == type_name]
    if isinstance(reference, str | ResourceEntryType | ClassType):
        resource = catalog.find(*split_reference(reference))
        return [resource] if resource is not None else []
    raise EvaluationError(f"Reference is not understood: '{ruby_class(reference)}'")


def is_declared(context: CatalogContext, reference: Value, parameters: dict[Value, Value]) -> bool:
    """Return whether a resource with all these parameters is declared, other than the one that is being evaluated."""
    calling_resource = context.resource
    return any(
        all(_has_value(candidate.get(to_s(name)), value) for name, value in entries(parameters))
        for candidate in _candidates(context, reference)
        if calling_resource is None or candidate.ref != calling_resource.ref
    )


def _has_value(actual: Value, expected: Value) -> bool:
    return actual is None if expected is None else is_same(actual, expected)


@legacy_function("defined_with_params", -1)
def defined_with_params(context: CatalogContext, *arguments: Value) -> bool:
    """Return whether a resource with all these parameters is declared."""
    reference, parameters = (*arguments, None, None)[:2]
    if reference in (None, False) and len(arguments) < 1:
        raise EvaluationError("Must specify a reference")
    if parameters in (None, False, ""):
        parameters = {}
    if not isinstance(parameters, dict):
        raise EvaluationError(f"defined_with_params(): the parameters must be a Hash, got {ruby_class(parameters)}")
    return is_declared(context, reference, parameters)


@legacy_function("getparam", -1)
def getparam(context: CatalogContext, *arguments: Value) -> Value:
    """Return the value of a parameter of a resource that is already declared; '' when there is none."""
    if not arguments or arguments[0] in (None, False):
        raise EvaluationError("Must specify a reference")
    if len(arguments) < 2 or not isinstance(arguments[1], str):
        raise EvaluationError("Must specify name of a parameter")
    if not arguments[1]:
        return ""
    resource = _find_resource(context, arguments[0])
    value = resource.get(arguments[1]) if resource is not None else None
    return "" if value is None else value


@function("stdlib::str2resource", "String res_string", returns="Any")
def str2resource(context: CatalogContext, res_string: str) -> Value:
    """Return the reference to the declared resource that a text such as 'File[/a]' names."""
    type_, title = split_reference(res_string)
    resource = context.compilation.catalog.find(type_, title)
    if resource is None:
        raise EvaluationError(
            f"stdlib::str2resource(): could not find {type_}[{title}], this is parse order dependent and values should not be quoted"
        )
    return as_attribute(resource.reference())


# --- declaring ----------------------------------------------------------------------------------------------------


def declare_missing(context: CatalogContext, type_: str, title: Value, parameters: dict[Value, Value]) -> None:
    for item in title if isinstance(title, list) else [title]:
        if isinstance(item, list):
            declare_missing(context, type_, item, parameters)
            continue
        name = ruby_text(item)
        reference = f"{type_}[{name}]"
        if is_declared(context, reference, parameters):
            context.log("debug", f"Resource {reference} with params {inspect(parameters)} not created because it already exists")
            continue
        context.log("debug", f"Create new resource {reference} with params {inspect(parameters)}")
        context.call_function("create_resources", [type_, {key_of(item): parameters}])


def _type_name(type_: Value) -> str:
    if isinstance(type_, str):
        return type_
    if isinstance(type_, ResourceEntryType) and type_.type_name is not None:
        return type_.type_name
    raise EvaluationError(f"The type of a resource must be a String, got {ruby_class(type_)}")


def _checked_arguments(name: str, arguments: tuple[Value, ...]) -> tuple[str, Value, dict[Value, Value]]:
    type_, title, parameters = (*arguments, None, None, None)[:3]
    if type_ in (None, False):
        raise EvaluationError("Must specify a type")
    if title in (None, False):
        raise EvaluationError("Must specify a title")
    if parameters in (None, False, ""):
        parameters = {}
    if not isinstance(parameters, dict):
        raise EvaluationError(f"{name}(): Requires third argument to be a Hash")
    return _type_name(type_), title, parameters


@legacy_function("ensure_resource", -1, statement=True)
def ensure_resource(context: CatalogContext, *arguments: Value) -> None:
    """Declare resources of a type by title, unless they are already declared with these parameters."""
    declare_missing(context, *_checked_arguments("ensure_resource", arguments))


@legacy_function("ensure_resources", -1, statement=True)
def ensure_resources(context: CatalogContext, *arguments: Value) -> None:
    """Declare resources from a hash of titles to parameters, with defaults, unless they are already declared so."""
    type_, resources, defaults = _checked_arguments("ensure_resources", arguments)
    if not isinstance(resources, dict):
        raise EvaluationError("ensure_resources(): Requires second argument to be a Hash")
    for title, parameters in entries(resources):
        declare_missing(context, type_, title, {**defaults, **parameters} if isinstance(parameters, dict) else defaults)


@function("stdlib::ensure_packages", "Variant[String[1], Array[String[1]]] packages", "Hash default_attributes?", returns="Undef")
def ensure_packages(context: CatalogContext, packages: Value, default_attributes: dict[Value, Value] | None = None) -> None:
    """Declare packages, unless they are already declared so; `present` and `installed` count as equal."""
    for package in packages if isinstance(packages, list) else [packages]:
        attributes = {"ensure": "installed", **(default_attributes or {})}
        if attributes["ensure"] in ("present", "installed"):
            is_present = is_declared(context, f"Package[{package}]", {"ensure": "present"})
            attributes["ensure"] = "present" if is_present else "installed"
        declare_missing(context, "package", package, attributes)


@ensure_packages.also("Hash[String[1], Any] packages", "Hash default_attributes?", returns="Undef")
def ensure_packages_of(context: CatalogContext, packages: dict[str, Value], default_attributes: dict[Value, Value] | None = None) -> None:
    for package, parameters in packages.items():
        attributes = {**(default_attributes or {}), **(parameters if isinstance(parameters, dict) else {})}
        ensure_packages.call(context, [package, attributes])


_KINDS = "Enum['directory', 'link', 'mounted', 'service', 'file', 'package'] resource"


@function("stdlib::ensure", "Variant[Boolean, Enum['present', 'absent']] ensure", f"{_KINDS}?", returns="String")
def ensure(context: Context, ensure_: bool | str, resource: str | None = None) -> str:
    """Return the value of `ensure` for a kind of resource: running for a service, installed for a package, file for a file …"""
    present = ensure_ is True or ensure_ == "present"
    if resource == "package":
        return "installed" if present else "absent"
    if resource == "service":
        return "running" if present else "stopped"
    if not present:
        return "absent"
    return resource or "present"


# --- privacy ------------------------------------------------------------------------------------------------------


def _assert_private(context: CatalogContext, message: Value) -> None:

    def own(name: str) -> Value:
        try:
            return context.variable(name)
        except KeyError:
            return None

    # Top scope and its functions belong to no module, so there is nothing to compare.
    is_top = context.source is None or not context.source.name
    if not is_top and own("module_name") == own("caller_module_name"):
        return
    if isinstance(message, str) and message:
        raise EvaluationError(message)
    resource = context.resource
    kind = "Class" if is_top or (resource is not None and resource.is_class) else "Definition"
    name = context.source.name if context.source is not None else ""
    raise EvaluationError(f"{kind} {name} is private")


@legacy_function("assert_private", -1, statement=True)
def assert_private(context: CatalogContext, *arguments: Value) -> None:
    """Raise an error when the class or define is used from another module."""
    if len(arguments) > 1:
        raise EvaluationError(f"assert_private(): Wrong number of arguments given ({len(arguments)}}}) for 0 or 1)")
    _assert_private(context, arguments[0] if arguments else None)


@legacy_function("private", -1, statement=True)
def private(context: CatalogContext, *arguments: Value) -> None:
    """Do the same as assert_private; its older name."""
    context.log(
        "warning",
        "private() DEPRECATED: This function will cease to function on Puppet 4; please use assert_private() before upgrading to "
        "puppet 4 for backwards-compatibility, or migrate to the new parser's typing system.",
    )
    _assert_private(context, arguments[0] if arguments else None)
