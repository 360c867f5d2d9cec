"""An expression as it is written in its file."""

from __future__ import annotations

from ..compiler.syntax import nodes as n
from ..compiler.syntax.checker.findings import CHILDREN
from ..compiler.syntax.source import Source

__all__ = ["text_of"]


def text_of(node: n.Node, source: Source) -> str:
    """An expression as it is written. The place of a binary one is its operator, so that the leftmost part is looked for."""
    start, end = node.at, node.end
    pending = [node]
    while pending:
        each = pending.pop()
        start, end = min(start, each.at), max(end, each.end)
        for field in CHILDREN[type(each)]:
            value = getattr(each, field)
            pending += value if isinstance(value, tuple) else [value] if value is not None else []
    return source.text[start:end]
