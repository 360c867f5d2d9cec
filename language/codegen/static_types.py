"""The syntax that is allowed in the definition of a type alias: names, brackets and literals, because nothing is evaluated there."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..syntax import nodes as n
from ..syntax.source import Source
from .frames import children, walk

_LITERALS: Final = (
    n.IntegerLiteral,
    n.FloatLiteral,
    n.StringLiteral,
    n.BooleanLiteral,
    n.UndefLiteral,
    n.DefaultLiteral,
    n.RegexpLiteral,
    n.QualifiedName,
    n.QualifiedReference,
    n.HeredocExpression,
)
_COLLECTIONS: Final = (n.ArrayLiteral, n.HashLiteral, n.HashEntry, n.AccessExpression)
_OPEN_ENDED: Final = (n.ParenthesizedExpression, n.SelectorExpression, n.IfExpression, n.UnlessExpression, n.CaseExpression)


_ELEMENT_TYPES: Final = {"Array": 1, "Hash": 2}
"""The number of types before the sizes."""
_SIZES: Final = 2


def with_element_types(node: n.AccessExpression) -> n.AccessExpression:
    """
    Return `Array[2, 3]` in the form of a definition: `Array[Default, 2, 3]`, which nothing but `default` fits; the same for Hash.

    Source: puppet 7.23, asked; the cases alias-of-sizes-… of generated.yaml.
    """
    count = _ELEMENT_TYPES.get(node.left.value, 0) if isinstance(node.left, n.QualifiedReference) else 0
    if not count or len(node.keys) != _SIZES or not all(map(_is_size, node.keys)) or all(map(_is_zero, node.keys)):
        return node
    default = n.QualifiedReference(node.left.at, node.left.end, "Default")
    return replace(node, keys=(*[default] * count, *node.keys))


def _is_size(node: n.SyntaxNode) -> bool:
    number = node.operand if isinstance(node, n.UnaryOperation) and node.op == "-" else node
    return isinstance(number, n.IntegerLiteral | n.DefaultLiteral)


def _is_zero(node: n.SyntaxNode) -> bool:
    return isinstance(node, n.IntegerLiteral) and node.value == 0


def illegal_part(source: Source, node: n.SyntaxNode) -> str | None:
    """
    Return the first expression below `node` that would have to be evaluated, as the reference shows it; None when there is none.

    Source: puppet 7.23, asked; the cases alias-with-… of types.yaml.
    """
    if isinstance(node, _LITERALS):
        return None
    if isinstance(node, _COLLECTIONS):
        return next((part for child in children(node) if (part := illegal_part(source, child)) is not None), None)
    if isinstance(node, n.UnaryOperation) and node.op == "-" and isinstance(node.operand, n.IntegerLiteral | n.FloatLiteral):
        return None
    start = min(inner.at for inner in walk(node, into_lambdas=True))
    text = source.text[start : node.end]
    # The closing sign is not part of these for the reference.
    return text[:-1].rstrip() if isinstance(node, _OPEN_ENDED) and text[-1:] in (")", "}") else text
