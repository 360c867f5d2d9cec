"""Relationships: chains of `->` and `~>`, and the check that the targets of metaparameters exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from shared.errors import EvaluationError, Location

from ..types.kinds.references import ClassType, ResourceEntryType
from ..values.core import Value
from ..values.text import inspect, to_s
from .builder import CatalogBuilder
from .collectors import ResourceCollector
from .definitions import class_title
from .resources import RELATIONSHIPS, DeclaredResource, capitalized_type

RelationshipEnd = ResourceCollector | tuple[str, str]

_REFERENCE = re.compile(r"([A-Za-z]\w*(?:::\w+)*|::[A-Za-z]\w*(?:::\w+)*)\[(.+)\]\Z", re.DOTALL | re.ASCII)


@dataclass(frozen=True, slots=True)
class RelationshipEdge:
    """`source` comes before `target`; `attribute` is `before` or `notify`."""

    source: RelationshipEnd
    target: RelationshipEnd
    attribute: str


def split_reference(value: Value) -> tuple[str, str]:
    """Return type and title, as the catalog has them, of a reference or of text like `File[/a]`; raise EvaluationError for others."""
    if isinstance(value, ClassType) and value.class_name is not None:
        return "Class", class_title(value.class_name)
    if isinstance(value, ResourceEntryType) and value.type_name is not None and value.title is not None:
        return capitalized_type(value.type_name), value.title
    if isinstance(value, str):
        match = _REFERENCE.match(value)
        if match is not None:
            type_ = capitalized_type(match[1].removeprefix("::"))
            return type_, class_title(match[2]) if type_ == "Class" else match[2]
    if isinstance(value, ResourceEntryType) and value.title is None:
        text = f"{value.type_name}[]"
    elif isinstance(value, ClassType):
        text = "Class[]"
    else:
        text = inspect(value) if isinstance(value, dict) else to_s(value)
    raise EvaluationError(f"No title provided and {inspect(text)} is not a valid resource reference")


def references(value: Value) -> Iterator[Value]:
    """Yield the references in a relationship metaparameter: nested arrays are flattened, undef is dropped."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif value is not None:
        yield value


def materialize(catalog: CatalogBuilder, relationships: list[RelationshipEdge]) -> None:
    """
    Write every relationship into its source's `before` or `notify`.

    Resources that got the same array, from one expression or default, share it: what one gets, all get, as in the reference.
    """
    arrays: dict[int, list[Value]] = {}
    for resource in catalog if relationships else ():
        for attribute in ("before", "notify"):
            value = resource.values.get(attribute)
            if isinstance(value, list):
                resource.values[attribute] = arrays.setdefault(id(value), [*value])
    for relationship in relationships:
        for source in _sources_of(relationship.source):
            for target in _targets_of(relationship.target):
                _write_relationship(catalog, source, target, relationship.attribute)


def _targets_of(end: RelationshipEnd) -> list[tuple[str, str]]:
    return list(end.collected) if isinstance(end, ResourceCollector) else [end]


def _sources_of(end: RelationshipEnd) -> list[tuple[str, str]]:
    """Return the resources at the left end of a relationship; for a collector that collected none, those left of it in the chain."""
    if not isinstance(end, ResourceCollector):
        return [end]
    if end.collected:
        return list(end.collected)
    references: list[tuple[str, str]] = []
    for operand in end.alternative:
        references.extend(_sources_of(operand if isinstance(operand, ResourceCollector) else split_reference(operand)))
    return references


def _write_relationship(catalog: CatalogBuilder, source: tuple[str, str], target: tuple[str, str], attribute: str) -> None:
    source_text, target_text = f"{source[0]}[{source[1]}]", f"{target[0]}[{target[1]}]"
    resource = catalog.find(*source)
    if resource is None:
        raise EvaluationError(f"Could not find resource '{source_text}' for relationship on '{target_text}'")
    if catalog.find(*target) is None:
        raise EvaluationError(f"Could not find resource '{target_text}' for relationship from '{source_text}'")
    value = resource.values.get(attribute)
    if isinstance(value, list):
        value.append(target_text)
    else:
        resource.values[attribute] = [target_text] if value is None else [value, target_text]


def validate(catalog: CatalogBuilder) -> None:
    """
    Check that everything that relationship metaparameters of real resources refer to is in the catalog.

    Raises:
        EvaluationError: with the place of the metaparameter.
    """
    for resource in catalog:
        if not resource.virtual:
            _validate_resource(catalog, resource)


def _validate_resource(catalog: CatalogBuilder, resource: DeclaredResource) -> None:
    for name in resource.values:
        if name not in RELATIONSHIPS:
            continue
        for value in references(resource.values[name]):
            origin = resource.origin(name)
            try:
                type_, title = split_reference(value)
            except EvaluationError as error:
                error.where = Location(origin.file, origin.line)
                if name in resource.sensitive:
                    error.message = f"The Sensitive value of parameter '{name}' of {resource.ref} is not a valid resource reference"
                raise
            if catalog.find(type_, title) is None:
                shown = value if isinstance(value, str) else f"{type_}[{title}]"
                reference_text = "[redacted]" if name in resource.sensitive else shown
                raise EvaluationError(
                    f"Could not find resource '{reference_text}' in parameter '{name}'", where=Location(origin.file, origin.line)
                )
