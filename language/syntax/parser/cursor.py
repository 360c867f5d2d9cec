"""The parser's position in the tokens, and the methods by which each part of the grammar uses the others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NoReturn

from shared.errors import Location, ParseError

from ..lexer import TokenizedSource
from ..nodes import AttributeOperation, AttributeSplat, BlockExpression, LambdaExpression, Nop, ParameterDeclaration, SyntaxNode
from ..source import Source

_OPENS = {"{": "}", "?{": "}", "[": "]", " [": "]", "(": ")", " (": ")"}
_CLOSES = frozenset("}])")


class TokenCursor(ABC):
    """The position of the parser: `kind`, `text` and `at` of the current token; `last_end` is the offset behind the previous one."""

    def __init__(self, source: Source, lexed: TokenizedSource, max_depth: int) -> None:
        self.source = source
        self.tokens = lexed.tokens
        self.broken = lexed.error
        self.max_depth = max_depth
        self.depth = 0
        self.namespace: list[str] = []
        self.definitions: list[SyntaxNode] = []
        self.index = 0
        self.last_end = 0
        self.kind, self.text, self.at, self.token_end = self.tokens[0]
        if self.kind == "error":
            self.unexpected()

    def advance(self) -> None:
        """Go to the next token; raise the lexer's error when that is an `error` token."""
        self.last_end = self.token_end
        self.index += 1
        self.kind, self.text, self.at, self.token_end = self.tokens[self.index]
        if self.kind == "error":
            self.unexpected()

    def following(self) -> str:
        """Return the kind of the next token; '' when the current one is the last."""
        return self.tokens[self.index + 1][0] if self.index + 1 < len(self.tokens) else ""

    def take(self, kind: str) -> None:
        """Go past the current token; raise ParseError when it is not of this kind."""
        if self.kind != kind:
            self.unexpected()
        self.advance()

    def accept(self, kind: str) -> bool:
        """Go past the current token if it is of this kind; return whether it was."""
        if self.kind != kind:
            return False
        self.advance()
        return True

    def unexpected(self) -> NoReturn:
        """Raise the error for the current token, with which no rule of the grammar continues."""
        if self.kind == "error":
            assert self.broken is not None
            raise self.broken
        if self.kind == "end":
            raise ParseError(
                "Syntax error at end of input",
                where=Location(self.source.file) if self.source.file else None,
                hint=self._unclosed(),
            )
        text = f"(?-mix:{self.text})" if self.kind == "regex" else self.text
        raise self.source.error(f"Syntax error at '{text}'", self.at)

    def _unclosed(self) -> str:
        """Return a hint that names the innermost bracket that is not closed; '' when all are closed."""
        open_: list[tuple[str, int]] = []
        for kind, _, at, _ in self.tokens:
            if kind in _OPENS:
                open_.append((kind[-1], at))
            elif kind in _CLOSES and open_:
                open_.pop()
        if not open_:
            return ""
        bracket, at = open_[-1]
        where = self.source.locate(at)
        return f"The '{bracket}' at line {where.line}, column {where.column} is never closed."

    def deeper(self) -> None:
        """Enter a level of nesting; the caller decrements `depth` when it leaves it."""
        self.depth += 1
        if self.depth > self.max_depth:
            self.too_deep()

    def too_deep(self) -> NoReturn:
        raise self.source.error(f"Nested too deeply: more than {self.max_depth} levels", self.at, hint="Split the expression up.")

    def block(self, statements: list[SyntaxNode], at: int) -> SyntaxNode:
        """Return the body of a definition or lambda: a BlockExpression, or Nop when it is empty."""
        if not statements:
            return Nop(at, at)
        return BlockExpression(at, self.last_end, tuple(statements))

    # What the parts of the grammar ask of each other; each is documented where it is defined.

    @abstractmethod
    def expression(self, above: int = 0) -> SyntaxNode: ...

    @abstractmethod
    def assignment(self) -> SyntaxNode: ...

    @abstractmethod
    def statements(self, first: SyntaxNode | None = None) -> list[SyntaxNode]: ...

    @abstractmethod
    def resource(self) -> SyntaxNode: ...

    @abstractmethod
    def braced(self) -> SyntaxNode: ...

    @abstractmethod
    def primary(self) -> SyntaxNode: ...

    @abstractmethod
    def quoted(self) -> SyntaxNode: ...

    @abstractmethod
    def array(self) -> SyntaxNode: ...

    @abstractmethod
    def hash(self) -> SyntaxNode: ...

    @abstractmethod
    def keys(self, *, trailing: bool) -> tuple[SyntaxNode, ...]: ...

    @abstractmethod
    def parameters(self, close: str) -> tuple[ParameterDeclaration, ...]: ...

    @abstractmethod
    def lambda_(self) -> LambdaExpression: ...

    @abstractmethod
    def attributes(self) -> tuple[AttributeOperation | AttributeSplat, ...]: ...

    @abstractmethod
    def definition(self) -> SyntaxNode: ...

    @abstractmethod
    def control(self) -> SyntaxNode: ...
