"""The text of an expression in its file."""

from __future__ import annotations

from ..compiler.syntax import nodes as n
from ..compiler.syntax.checker.report import CHILDREN
from ..compiler.syntax.source import Source


def text_of(node: n.SyntaxNode, source: Source) -> str:
    """Return the text of an expression. A binary expression begins at its operator, so this searches for the leftmost part."""
    start, end = node.at, node.end
    pending = [node]
    while pending:
        part = pending.pop()
        start, end = min(start, part.at), max(end, part.end)
        for field in CHILDREN[type(part)]:
            value = getattr(part, field)
            pending += value if isinstance(value, tuple) else [value] if value is not None else []
    return source.text[start:end]
