"""if, unless and case."""

from __future__ import annotations

from ..nodes import CaseExpression, CaseOption, IfExpression, Nop, SyntaxNode, UnlessExpression
from .cursor import TokenCursor


class ControlParser(TokenCursor):
    """The grammar of conditionals."""

    def control(self) -> SyntaxNode:
        """control = if | unless | case"""
        if self.kind == "if":
            return self.if_()
        return self.unless() if self.kind == "unless" else self.case()

    def if_(self) -> SyntaxNode:
        """if = ("if" | "elsif") expression block [if from "elsif" | "else" block]"""
        at = self.at
        self.deeper()
        self.advance()
        test = self.expression()
        then = self.braced()
        if self.kind == "elsif":
            otherwise = self.if_()
        elif self.accept("else"):
            otherwise = self.braced()
        else:
            otherwise = Nop(self.last_end, self.last_end)
        self.depth -= 1
        return IfExpression(at, self.last_end, test, then, otherwise)

    def unless(self) -> SyntaxNode:
        """unless = "unless" expression block ["else" block]"""
        at = self.at
        self.deeper()
        self.advance()
        test = self.expression()
        then = self.braced()
        otherwise = self.braced() if self.accept("else") else Nop(self.last_end, self.last_end)
        self.depth -= 1
        return UnlessExpression(at, self.last_end, test, then, otherwise)

    def case(self) -> SyntaxNode:
        """
        case = "case" expression "{" option+ "}"
        option = expression ("," expression)* ":" "{" [statements] "}"
        """
        at = self.at
        self.deeper()
        self.advance()
        test = self.expression()
        self.take("{")
        options = [self.option()]
        while self.kind != "}":
            options.append(self.option())
        self.advance()
        self.depth -= 1
        return CaseExpression(at, self.last_end, test, tuple(options))

    def option(self) -> CaseOption:
        """See `case`; the place is the colon."""
        values = [self.expression()]
        while self.accept(","):
            values.append(self.expression())
        at = self.at
        self.take(":")
        self.take("{")
        statements = [] if self.kind == "}" else self.statements()
        body = self.block(statements, at)
        self.take("}")
        return CaseOption(at, self.last_end, tuple(values), body)
