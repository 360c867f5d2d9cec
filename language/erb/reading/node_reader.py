"""Reads the nodes of Ruby's grammar: places, texts, and statements by the rules of each type of node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...syntax.nodes import SyntaxNode
from .. import methods
from .. import nodes as n
from ..errors import Refusal
from .scanner import TemplateProgram
from .variables import Variables

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_DEPTH = 60
"""Constructs inside constructs."""


def named(node: Node | None) -> list[Node]:
    """Return the parts of a node without comments."""
    return [] if node is None else [child for child in node.named_children if child.type not in _IGNORED]


_IGNORED = frozenset(("comment", "empty_statement"))


class NodeReader:
    """
    One template: its places, and its statements one by one.

    Attributes:
        rules: what reads each type of node of the grammar.
        uses_groups: whether it reads `$1` and the like.
    """

    rules: Mapping[str, Callable[[Any, Node], SyntaxNode]]

    def __init__(self, program: TemplateProgram, size: int) -> None:
        self.program = program
        self.size = size
        self.variables = Variables()
        self.methods: dict[str, tuple[str, int]] = {}  # by name: the Python name, and the number of parameters
        self.block_depth = 0
        self.branch_depth = 0
        self.in_method = False
        self.assigned: set[str] = set()  # instance variables
        self.tested: set[str] = set()  # instance variables whose definition is asked for
        self.depth = 0
        self.uses_groups = b"$" in program.octets

    # --- places ---

    def at(self, node: Node) -> int:
        return self.program.offset(node.start_byte)

    def place(self, node: Node) -> tuple[int, int]:
        at = self.at(node)
        return at, max(self.program.offset(node.end_byte), at)

    def text(self, node: Node) -> str:
        return self.program.octets[node.start_byte : node.end_byte].decode()

    def error_offset(self, node: Node) -> int:
        """Return the offset of the first thing that the grammar could not read."""
        pending = [node]
        while pending:
            current = pending.pop()
            if current.is_error or current.is_missing:
                return self.at(current)
            pending += reversed([child for child in current.children if child.has_error or child.is_missing])
        return 0

    def refuse(self, node: Node, reason: str = "") -> Refusal:
        return Refusal(reason or f"{self.text(node).splitlines()[0][:60] if self.text(node) else node.type}", self.at(node))

    # --- statements ---

    def body(self, statements: Sequence[Node], at: int, end: int | None = None) -> n.Body:
        read = [self.statement(node) for node in statements]
        return n.Body(at, end if end is not None else at, tuple(read))

    def part(self, node: Node | None, like: Node) -> n.Body:
        """Return the statements of a branch or body, which may be missing."""
        if node is None:
            at, end = self.place(like)
            return n.Body(at, end, ())
        at, end = self.place(node)
        if node.type in ("then", "else", "do", "body_statement", "block_body", "parenthesized_statements", "begin"):
            return self.body(named(node), at, end)
        return n.Body(at, end, (self.statement(node),))

    def branch(self, node: Node | None, like: Node) -> n.Body:
        self.branch_depth += 1
        try:
            return self.part(node, like)
        finally:
            self.branch_depth -= 1

    def statement(self, node: Node) -> SyntaxNode:
        """Return a statement or an expression."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.refuse(node, "expressions that are nested too deeply")
        try:
            if node.is_error or node.is_missing:
                raise self.refuse(node, "what the grammar of Ruby does not know")
            rule = self.rules.get(node.type)
            if rule is None:
                raise self.refuse(node, f"{node.type.replace('_', ' ')}: {self.text(node).splitlines()[0][:60]}")
            return rule(self, node)
        finally:
            self.depth -= 1

    def field(self, node: Node, name: str) -> SyntaxNode:
        """Return the expression of the part of a node that the grammar calls `name`."""
        return self.statement(self.node(node, name))

    def node(self, node: Node, name: str) -> Node:
        part = node.child_by_field_name(name)
        if part is None:
            raise self.refuse(node)
        return part

    def class_name(self, node: Node) -> n.ClassName:
        name = self.text(node)
        if node.type != "constant" or name not in methods.CLASSES:
            raise self.refuse(node, f"the constant {name[:40]}")
        return n.ClassName(*self.place(node), name)
