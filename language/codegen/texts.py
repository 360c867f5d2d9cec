"""Strings with expressions in them, and heredocs."""

from __future__ import annotations

import ast

from ..syntax import nodes as n
from .writer import Writer, constant_of


def interpolation(writer: Writer, node: n.ConcatenatedString) -> ast.expr:
    parts = [segment.expression if isinstance(segment, n.TextExpression) else segment for segment in node.segments]
    values = writer.operands(parts)
    pieces: list[ast.expr] = []
    for segment, value in zip(node.segments, values, strict=True):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            last = pieces[-1] if pieces else None
            if isinstance(last, ast.Constant) and isinstance(last.value, str):
                pieces[-1] = writer.at(segment, constant_of(last.value + value.value))
            elif value.value:
                pieces.append(value)
            continue
        piece = writer.at(segment, writer.runtime_call("_text", value))
        pieces.append(writer.at(segment, ast.FormattedValue(piece, -1, None)))
    if not pieces:
        return writer.at(node, constant_of(""))
    if len(pieces) == 1 and isinstance(pieces[0], ast.Constant):
        return pieces[0]
    return writer.at(node, ast.JoinedStr(pieces))


def text_segment(writer: Writer, node: n.TextExpression) -> ast.expr:
    return writer.at(node, writer.runtime_call("_text", writer.value(node.expression)))


def heredoc(writer: Writer, node: n.HeredocExpression) -> ast.expr:
    value = writer.value(node.text)
    if not node.syntax or isinstance(node.text, n.StringLiteral):
        return value
    return writer.at(node.text, writer.runtime_call("_check_syntax", writer.scope(), constant_of(node.syntax), value))


RULES = {
    n.ConcatenatedString: interpolation,
    n.TextExpression: text_segment,
    n.HeredocExpression: heredoc,
}
