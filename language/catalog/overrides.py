"""Overrides: new values for resources that are declared elsewhere, and the scopes that may set them."""

from __future__ import annotations

from typing import Final

from shared.errors import EvaluationError, Location

from ..types.notation.operands import flatten_arrays
from ..values.core import Sensitive, Strictness, Value
from .compilation_view import CompilationView
from .definitions import Definition
from .resources import DeclaredResource, Override, ResourceAttribute

DUPLICATE: Final[Value] = Sensitive(None)
"""Stands for the value of an attribute that an override names twice; only its identity counts, and no manifest can have this object."""


def apply_override(compilation: CompilationView, resource: DeclaredResource, override: Override) -> None:
    """
    Give a resource new values.

    Raises:
        EvaluationError: the class that says it does not inherit from the one that declared the resource.
    Source: language reference 4.6.
    """
    place = Location(override.file, override.line)
    source = override.source
    is_allowed = override.forced or (source is not None and source.is_child_of(resource.source))
    if not is_allowed and source is not resource.source:
        raise EvaluationError("Only subclasses can override parameters", where=place)
    if resource.evaluated:
        where_declared = f", defined at {resource.place}," if resource.file or resource.line else ""
        message = f"Attempt to override an already evaluated resource{where_declared} with new values"
        if compilation.reporter.strict is Strictness.ERROR:
            raise EvaluationError(message, where=place)
        if compilation.reporter.strict is Strictness.WARNING:
            compilation.log.add("warning", message, where=place)
    for name, attribute in override.attributes.items():
        _override_attribute(compilation, resource, name, attribute, place, forced=override.forced)


def _override_attribute(
    compilation: CompilationView, resource: DeclaredResource, name: str, attribute: ResourceAttribute, place: Location, *, forced: bool
) -> None:
    if attribute.value is DUPLICATE:
        where = Location(attribute.file, attribute.line)
        raise EvaluationError(f"Duplicate parameter '{name}' for on {resource.ref}", where=where)
    if name not in resource.values:
        resource.take(name, attribute, place)
        return
    origin = resource.origin(name)
    scope = resource.scope or compilation.top
    if scope.is_default(resource.type, name, attribute.value):
        return
    is_allowed = forced or (attribute.source is not None and attribute.source.is_child_of(origin.source))
    if not is_allowed and not (attribute.source is origin.source and scope.is_default(resource.type, name, origin.value)):
        declared_by = _source_text(origin.source)
        where_set = f" at {Location(origin.file, origin.line)}" if origin.file or origin.line else ""
        raise EvaluationError(
            f"Parameter '{name}' is already set on {resource.ref}{declared_by}{where_set}; cannot redefine",
            where=Location(attribute.file, attribute.line),
        )
    if attribute.add:
        attribute = ResourceAttribute(flatten_arrays([origin.value, attribute.value]), attribute.source, attribute.file, attribute.line)
    resource.take(name, attribute, place)


def _source_text(source: Definition | None) -> str:
    if source is None:
        return ""
    return f" by {source.word}[{source.name}]" if source.name else ""
