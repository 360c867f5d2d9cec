"""Relationships: chains of `->` and `~>`, and the check that what metaparameters refer to is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shared.errors import EvaluationError, Location

from ..errors.issues import LanguageError
from ..errors.locations import FINAL
from ..evaluation.definitions import class_title
from ..types.base import PuppetType
from ..types.references import ClassType, ResourceType
from ..values.core import Value
from ..values.labels import label, with_article
from .collectors import ResourceCollector
from .resources import RELATIONSHIPS, CatalogBuilder, DeclaredResource, capitalized_type

if TYPE_CHECKING:
    from ..evaluation.scope import Scope

__all__ = ["RelationshipEdge", "materialize", "references", "relate", "split_reference", "validate"]

End = ResourceCollector | tuple[str, str]

_REFERENCE = re.compile(r"([A-Za-z]\w*(?:::\w+)*|::[A-Za-z]\w*(?:::\w+)*)\[(.+)\]\Z", re.DOTALL | re.ASCII)


@dataclass(frozen=True, slots=True)
class RelationshipEdge:
    """`source` comes before `target`; `attribute` is `before` or `notify`."""

    source: End
    target: End
    attribute: str


def split_reference(value: Value) -> tuple[str, str]:
    """Type and title, as the catalog has them, of a reference or of text like `File[/a]`."""
    if isinstance(value, ClassType) and value.class_name is not None:
        return "Class", class_title(value.class_name)
    if isinstance(value, ResourceType) and value.type_name is not None and value.title is not None:
        return capitalized_type(value.type_name), value.title
    if isinstance(value, str):
        match = _REFERENCE.match(value)
        if match is not None:
            type_ = capitalized_type(match[1].removeprefix("::"))
            return type_, class_title(match[2]) if type_ == "Class" else match[2]
    if isinstance(value, ResourceType) and value.title is None:
        text = f"{value.type_name}[]"
    elif isinstance(value, ClassType):
        text = "Class[]"
    else:
        from ..values.text import to_s

        text = to_s(value)
    raise EvaluationError(f'No title provided and "{text}" is not a valid resource reference')


def references(value: Value) -> Iterator[Value]:
    """What a relationship metaparameter refers to: nested arrays flattened, undef dropped."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif value is not None:
        yield value


def relate(scope: Scope, op: str, left: Value, right: Value) -> Value:
    """A link of a chain; gives what the next link's left side is. Source: language reference 4.8."""
    one, two = _operands(scope, left), _operands(scope, right)
    sources, targets = (two, one) if op in ("<-", "<~") else (one, two)
    attribute = "before" if "-" in op else "notify"
    for source in sources:
        for target in targets:
            scope.compilation.relationships.append(RelationshipEdge(_end(source), _end(target), attribute))
    if not two:
        return one
    if len(two) == 1 and isinstance(two[0], ResourceCollector):
        two[0].alternative = list(one)
    return two


def _end(operand: Value) -> End:
    return operand if isinstance(operand, ResourceCollector) else split_reference_lazily(operand)


def split_reference_lazily(value: Value) -> tuple[str, str]:
    try:
        return split_reference(value)
    except EvaluationError as error:
        error.where = FINAL
        raise


def _operands(scope: Scope, value: Value) -> list[Value]:
    found: list[Value] = []
    seen: set[object] = set()
    for item in _flat(value):
        operand = item
        if isinstance(item, str):
            operand = scope.compilation.type_from_text(item)
        elif isinstance(item, ResourceCollector):
            if id(item) not in seen:
                seen.add(id(item))
                found.append(item)
            continue
        if isinstance(operand, ResourceType | ClassType):
            if operand not in seen:
                seen.add(operand)
                found.append(operand)
            continue
        if isinstance(operand, PuppetType):
            raise LanguageError(
                f"Illegal relationship operand, can not form a relationship with something of type {operand}. A Catalog type is required."
            )
        raise LanguageError(
            f"Illegal relationship operand, can not form a relationship with {with_article(label(operand))}. A Catalog type is required."
        )
    return found


def _flat(value: Value) -> Iterator[Value]:
    if isinstance(value, list):
        for item in value:
            yield from _flat(item)
    else:
        yield value


def materialize(catalog: CatalogBuilder, relationships: list[RelationshipEdge]) -> None:
    """Write every relationship into its source's `before` or `notify`."""
    for relationship in relationships:
        for source in _left(relationship.source):
            for target in _right(relationship.target):
                _write(catalog, source, target, relationship.attribute)


def _right(end: End) -> list[tuple[str, str]]:
    return list(end.collected) if isinstance(end, ResourceCollector) else [end]


def _left(end: End) -> list[tuple[str, str]]:
    """Of a collector that found nothing: what stands left of it in the chain."""
    if not isinstance(end, ResourceCollector):
        return [end]
    if end.collected:
        return list(end.collected)
    found: list[tuple[str, str]] = []
    for each in end.alternative:
        found.extend(_left(each if isinstance(each, ResourceCollector) else split_reference(each)))
    return found


def _write(catalog: CatalogBuilder, source: tuple[str, str], target: tuple[str, str], attribute: str) -> None:
    source_text, target_text = f"{source[0]}[{source[1]}]", f"{target[0]}[{target[1]}]"
    resource = catalog.find(*source)
    if resource is None:
        raise EvaluationError(f"Could not find resource '{source_text}' for relationship on '{target_text}'")
    if catalog.find(*target) is None:
        raise EvaluationError(f"Could not find resource '{target_text}' for relationship from '{source_text}'")
    value = resource.values.get(attribute)
    if isinstance(value, list):
        resource.values[attribute] = [*value, target_text]
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
            _validate(catalog, resource)


def _validate(catalog: CatalogBuilder, resource: DeclaredResource) -> None:
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
                shown = "[redacted]" if name in resource.sensitive else f"{type_}[{title}]"
                raise EvaluationError(f"Could not find resource '{shown}' in parameter '{name}'", where=Location(origin.file, origin.line))
