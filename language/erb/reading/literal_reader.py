"""Reads literals: numbers, symbols, strings, arrays, hashes, ranges and regular expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...syntax.nodes import SyntaxNode
from .. import nodes as n
from . import literals
from .node_reader import NodeReader, named

if TYPE_CHECKING:
    from tree_sitter import Node


def simple(read: NodeReader, node: Node) -> SyntaxNode:
    return n.Literal(*read.place(node), {"nil": None, "true": True, "false": False}[node.type])


def integer(read: NodeReader, node: Node) -> SyntaxNode:
    at, end = read.place(node)
    return n.Literal(at, end, literals.integer(read.text(node), at))


def float_(read: NodeReader, node: Node) -> SyntaxNode:
    at, end = read.place(node)
    return n.Literal(at, end, literals.floating(read.text(node), at))


def symbol(read: NodeReader, node: Node) -> SyntaxNode:
    at, end = read.place(node)
    return n.SymbolLiteral(at, end, read.text(node).removeprefix(":"))


def string(read: NodeReader, node: Node) -> SyntaxNode:
    at, end = read.place(node)
    opening = read.text(node.children[0]) if node.children else ""
    parts = _string_parts(read, node, opening)
    if all(isinstance(part, n.Literal) for part in parts):
        return n.Literal(at, end, "".join([str(part.value) for part in parts if isinstance(part, n.Literal)]))
    return n.Interpolation(at, end, tuple(parts))


def _string_parts(read: NodeReader, node: Node, opening: str) -> list[SyntaxNode]:
    parts: list[SyntaxNode] = []
    raw = literals.is_raw(opening)
    for child in named(node):
        at, end = read.place(child)
        text = read.text(child)
        if "\r" in text:
            raise read.refuse(child, "a line end of Windows in a string")
        if child.type == "string_content" and not raw and ("#@" in text or "#$" in text or "\\" in text):
            raise read.refuse(child)
        if child.type in ("string_content", "escape_sequence"):
            parts.append(n.Literal(at, end, literals.characters(text, opening, at, is_escape=child.type == "escape_sequence")))
        elif child.type == "interpolation" and not raw:
            parts.append(read.body(named(child), at, end))
        else:
            raise read.refuse(child)
    return parts


def chained_string(read: NodeReader, node: Node) -> SyntaxNode:
    parts: list[SyntaxNode] = []
    for child in named(node):
        string = read.statement(child)
        parts += string.parts if isinstance(string, n.Interpolation) else [string]
    return n.Interpolation(*read.place(node), tuple(parts))


def word_array(read: NodeReader, node: Node) -> SyntaxNode:
    opening = read.text(node.children[0])
    if opening[:2] != "%w":
        raise read.refuse(node)
    items: list[SyntaxNode] = []
    for child in named(node):
        at, end = read.place(child)
        items.append(n.Literal(at, end, literals.single_quoted(read.text(child), opening, at)))
    return n.RubyArrayLiteral(*read.place(node), tuple(items))


def array(read: NodeReader, node: Node) -> SyntaxNode:
    children = named(node)
    pairs = [child for child in children if child.type == "pair"]  # Ruby takes them at the end only: a hash without braces
    items = [read.statement(child) for child in children if child.type != "pair"]
    if pairs:
        items.append(_hash_of(read, pairs[0], pairs))
    return n.RubyArrayLiteral(*read.place(node), tuple(items))


def hash_(read: NodeReader, node: Node) -> SyntaxNode:
    return _hash_of(read, node, named(node))


def _hash_of(read: NodeReader, node: Node, children: Sequence[Node]) -> SyntaxNode:
    pairs: list[tuple[SyntaxNode, SyntaxNode]] = []
    for child in children:
        if child.type != "pair":
            raise read.refuse(child)
        key = read.node(child, "key")
        if key.type == "hash_key_symbol":
            at, end = read.place(key)
            key_value: SyntaxNode = n.SymbolLiteral(at, end, read.text(key))
        else:
            if octet_behind(read, key) == b":":
                raise read.refuse(key)
            key_value = read.statement(key)
        pairs.append((key_value, read.field(child, "value")))
    return n.RubyHashLiteral(*read.place(node), tuple(pairs), tuple([part for pair in pairs for part in pair]))


def octet_behind(read: NodeReader, node: Node) -> bytes:
    return read.program.octets[node.end_byte : node.end_byte + 1]


def range_(read: NodeReader, node: Node) -> SyntaxNode:
    return n.RangeLiteral(
        *read.place(node), read.field(node, "begin"), read.field(node, "end"), read.text(read.node(node, "operator")) == "..."
    )


def regexp(read: NodeReader, node: Node) -> SyntaxNode:
    at, end = read.place(node)
    inner = node.children[1:-1]
    if any(child.type not in ("string_content", "escape_sequence") for child in inner) or read.text(node.children[0]) not in (
        "/",
        "%r{",
    ):
        raise read.refuse(node, "a regular expression with expressions in it")
    source = "".join([read.text(child) for child in inner])
    return n.RubyRegexpLiteral(at, end, literals.regexp(source, read.text(node.children[-1]), at))
