"""
Tokens to syntax tree: recursive descent, with precedence climbing for operators.

The grammar is in the docstrings of the parts, from the top down: `statements`, `resources`, `expressions`, with `control` and
`definitions` as operands. The parser accepts a little too much; the checker rejects it with a better message.
"""

from __future__ import annotations

from ..lexer import lex
from ..nodes import EppExpression, Nop, Program, SyntaxNode
from ..source import Source
from .control import ControlParser
from .definitions import DefinitionParser
from .expressions import ExpressionParser
from .resources import ResourceParser
from .statements import StatementParser, in_block

MAX_DEPTH = 100


def parse(source: Source, *, epp: bool = False, tasks: bool = False, max_depth: int = MAX_DEPTH) -> Program:
    """
    Return the syntax tree of a manifest, or of a template with `epp`.

    `tasks` makes `plan` a keyword. `max_depth` bounds how deeply expressions, blocks and strings may be nested.

    Raises:
        ParseError: located, in the reference's words (without the prefix `Could not parse for environment …`).
    Source: language reference 1 to 5, 12.1.
    """
    lexed = lex(source, epp=epp, tasks=tasks, max_depth=max_depth)
    parser = _Parser(source, lexed, max_depth)
    try:
        body = parser.template() if epp else parser.manifest()
    except RecursionError:
        raise source.error("Nested too deeply", parser.at, hint="Split the expression up.") from None
    return Program(0, len(source.text), body, tuple(parser.definitions), tuple(lexed.warnings))


class _Parser(StatementParser, ResourceParser, ExpressionParser, ControlParser, DefinitionParser):
    """The whole grammar."""

    def manifest(self) -> SyntaxNode:
        """manifest = [statements]"""
        if self.kind == "end":
            return Nop(self.at, self.at)
        statements = self.statements()
        self.take_end()
        return in_block(statements, statements[0].at, statements[-1].end)

    def template(self) -> SyntaxNode:
        """template = ["|" parameters "|"] [statements]"""
        parameters = None
        if self.accept("|"):
            parameters = self.parameters("|")
        statements = [] if self.kind == "end" else self.statements()
        self.take_end()
        return EppExpression(0, self.at, parameters, self.block(statements, 0))

    def take_end(self) -> None:
        if self.kind != "end":
            self.unexpected()
