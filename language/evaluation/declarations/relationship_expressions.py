"""Chains of `->` and `~>`, as generated code calls them."""

from __future__ import annotations

from shared.errors import EvaluationError

from ...catalog.collectors import ResourceCollector
from ...catalog.relationships import RelationshipEdge, RelationshipEnd, split_reference
from ...errors.issues import LanguageError
from ...errors.locations import FINAL
from ...types.kinds.references import ClassType, ResourceEntryType
from ...types.notation.operands import flatten_arrays
from ...types.notation.parse import parse_type
from ...values.core import PuppetType, Value
from ...values.labels import label, with_article
from ..compilation import Scope


def relate(scope: Scope, op: str, left: Value, right: Value) -> Value:
    """Evaluate a link of a chain, and return the left side of the next link. Source: language reference 4.8."""
    one, two = _relationship_operands(scope, left), _relationship_operands(scope, right)
    sources, targets = (two, one) if op in ("<-", "<~") else (one, two)
    attribute = "before" if "-" in op else "notify"
    for source in sources:
        for target in targets:
            scope.compilation.pending.relationships.append(RelationshipEdge(_end(source), _end(target), attribute))
    if not two:
        return one
    if len(two) == 1 and isinstance(two[0], ResourceCollector):
        two[0].alternative = list(one)
    return two


def _end(operand: Value) -> RelationshipEnd:
    return operand if isinstance(operand, ResourceCollector) else _split_reference(operand)


def _split_reference(value: Value) -> tuple[str, str]:
    try:
        return split_reference(value)
    except EvaluationError as error:
        error.where = FINAL
        raise


def _relationship_operands(scope: Scope, value: Value) -> list[Value]:
    operands: list[Value] = []
    seen: set[object] = set()
    for item in flatten_arrays([value]):
        operand = item
        if isinstance(item, str):
            operand = parse_type(item, scope.compilation.definitions)
        elif isinstance(item, ResourceCollector):
            if id(item) not in seen:
                seen.add(id(item))
                operands.append(item)
            continue
        if isinstance(operand, ResourceEntryType | ClassType):
            if operand not in seen:
                seen.add(operand)
                operands.append(operand)
            continue
        if isinstance(operand, PuppetType):
            raise LanguageError(
                f"Illegal relationship operand, can not form a relationship with something of type {operand}. A Catalog type is required."
            )
        raise LanguageError(
            f"Illegal relationship operand, can not form a relationship with {with_article(label(operand))}. A Catalog type is required."
        )
    return operands
