"""What may stand in the definition of a type alias: names, brackets and literals, as nothing is evaluated there."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..syntax import nodes as n
from ..syntax.source import Source
from .frames import children, walk

__all__ = ["illegal_part", "with_element_types"]

_LITERALS: Final = (n.Integer, n.Float, n.String, n.Boolean, n.Undef, n.Default, n.Regex, n.Name, n.TypeName, n.Heredoc)
_COLLECTIONS: Final = (n.Array, n.Hash, n.Entry, n.Access)
_OPEN_ENDED: Final = (n.Parenthesized, n.Selector, n.If, n.Unless, n.Case)


_ELEMENT_TYPES: Final = {"Array": 1, "Hash": 2}
"""How many types stand before the sizes."""
_SIZES: Final = 2


def with_element_types(node: n.Access) -> n.Access:
    """
    Return `Array[2, 3]` as a definition has it: `Array[Default, 2, 3]`, which nothing but `default` fits; the same for Hash.

    Source: puppet 7.23, asked; the cases alias-of-sizes-… of generated.yaml.
    """
    count = _ELEMENT_TYPES.get(node.left.value, 0) if isinstance(node.left, n.TypeName) else 0
    if not count or len(node.keys) != _SIZES or not all(map(_is_size, node.keys)) or all(map(_is_zero, node.keys)):
        return node
    default = n.TypeName(node.left.at, node.left.end, "Default")
    return replace(node, keys=(*[default] * count, *node.keys))


def _is_size(node: n.Node) -> bool:
    number = node.operand if isinstance(node, n.Unary) and node.op == "-" else node
    return isinstance(number, n.Integer | n.Default)


def _is_zero(node: n.Node) -> bool:
    return isinstance(node, n.Integer) and node.value == 0


def illegal_part(source: Source, node: n.Node) -> str | None:
    """
    The text of the first expression below `node` that would have to be evaluated, as the reference shows it; None when there is none.

    Source: puppet 7.23, asked; the cases alias-with-… of types.yaml.
    """
    if isinstance(node, _LITERALS):
        return None
    if isinstance(node, _COLLECTIONS):
        return next((part for child in children(node) if (part := illegal_part(source, child)) is not None), None)
    if isinstance(node, n.Unary) and node.op == "-" and isinstance(node.operand, n.Integer | n.Float):
        return None
    start = min(each.at for each in walk(node, into_lambdas=True))
    text = source.text[start : node.end]
    # The closing sign is not part of these for the reference.
    return text[:-1].rstrip() if isinstance(node, _OPEN_ENDED) and text[-1:] in (")", "}") else text
