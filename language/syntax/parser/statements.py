"""Statements: their order, calls without parentheses, assignments and relationships."""

from __future__ import annotations

from dataclasses import replace

from ..nodes import BinaryOperation, BlockExpression, FunctionCall, Nop, QualifiedName, SyntaxNode
from ..source import Source
from .cursor import TokenCursor

# fmt: off
STATEMENT_CALLS: frozenset[str] = frozenset((
    "require", "realize", "include", "contain", "tag", "debug", "info", "notice", "warning", "err", "fail", "import", "break", "next",
    "return",
))
# fmt: on
# fmt: off
_STARTS = frozenset((
    "variable", "string", "word", "name", "ref", "dqpre", "heredoc", "[", " [", "(", " (", "number", "boolean", "undef", "default", "regex",
    "attr", "private", "render", "render=", "if", "unless", "case", "type", "class", "define", "node", "function", "plan", "-", "*", "!",
    "@", "@@", ";", "error",
))
# fmt: on
_ASSIGNS = frozenset(("=", "+=", "-="))
_EDGES = frozenset(("->", "~>", "<-", "<~"))


class StatementParser(TokenCursor):
    """The grammar of statements, above resources."""

    def statements(self, first: SyntaxNode | None = None) -> list[SyntaxNode]:
        """
        statements = statement ([";"] statement)*
        statement = assignment ("," assignment)*      more than one only as arguments of a call without parentheses

        Nothing but the next statement ends one: line breaks mean nothing. `first` is the first expression, when already read.
        """
        groups: list[list[SyntaxNode]] = []
        commas: list[int] = []
        while True:
            group = [first or self.assignment()]
            first = None
            commas.append(self.at)
            while self.accept(","):
                group.append(self.assignment())
            groups.append(group)
            if self.kind not in _STARTS:
                return assemble_calls(self.source, groups, commas)
            self.accept(";")

    def assignment(self) -> SyntaxNode:
        """assignment = relationship [("=" | "+=" | "-=") assignment]"""
        left = self.relationship()
        if self.kind not in _ASSIGNS:
            return left
        op, at = self.kind, self.at
        self.deeper()
        self.advance()
        right = self.assignment()
        self.depth -= 1
        return BinaryOperation(at, right.end, op, left, right)

    def relationship(self) -> SyntaxNode:
        """relationship = resource (("->" | "~>" | "<-" | "<~") resource)*"""
        left = self.resource()
        while self.kind in _EDGES:
            op, at = self.kind, self.at
            self.advance()
            right = self.resource()
            left = BinaryOperation(at, right.end, op, left, right)
        return left

    def braced(self) -> SyntaxNode:
        """braced = "{" [statements] "}": a single statement is returned as it is."""
        at = self.at
        self.take("{")
        if self.accept("}"):
            return Nop(at, self.last_end)
        statements = self.statements()
        self.take("}")
        return in_block(statements, at, self.last_end)


def in_block(statements: list[SyntaxNode], at: int, end: int) -> SyntaxNode:
    """Return the only statement, or a BlockExpression of several."""
    return statements[0] if len(statements) == 1 else BlockExpression(at, end, tuple(statements))


def assemble_calls(source: Source, groups: list[list[SyntaxNode]], commas: list[int]) -> list[SyntaxNode]:
    """
    Return the statements, with calls like `include a, b` assembled: one of STATEMENT_CALLS takes the following group as arguments.

    `groups` are expressions separated by commas, `commas` the place behind each group's first.
    """
    statements: list[SyntaxNode] = []
    for number, group in enumerate(groups):
        before = statements[-1] if statements else None
        if isinstance(before, QualifiedName) and before.value in STATEMENT_CALLS:
            statements[-1] = FunctionCall(before.at, group[-1].end, before, tuple(group), None, False)
        elif len(group) > 1:
            if isinstance(before, QualifiedName):
                message = f"attempt to pass argument list to the function '{before.value}' which cannot be called without parentheses"
                raise source.error(message, commas[number], hint=f"Write {before.value}(…).")
            raise source.error("illegal comma separated argument list", commas[number])
        elif isinstance(group[0], FunctionCall):
            statements.append(replace(group[0], value_wanted=False))
        else:
            statements.append(group[0])
    return statements
