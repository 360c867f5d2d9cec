"""Parses PQL: `nodes[certname] { facts { name = "role" } }` becomes `["from", "nodes", ["extract", ["certname"], …]]`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken
from lark.lark import PostLex

from .errors import PqlError, expectation

Ast: TypeAlias = "bool | int | float | str | list[Ast] | None"
"""A query or a part of it, as the values that JSON has without objects."""

_MAX_DIGITS = 1000
_QUOTES = "\"'"
_ENTITIES = (
    "catalogs, edges, environments, events, fact_contents, fact_paths, facts, factsets, inventory, nodes, package_inventory, packages, "
    "reports, resources"
)
_ROOTS = ("facts", "trusted", "parameters")
_DOTTED = "a part of the field's name; one in double quotes is followed by a dot or a blank"
_WORDS = {
    "ENTITY": "an entity",
    "NAME": "a field",
    "DOTTED": "",
    "FUNCTION": "count, avg, sum, min, max, to_string",
    "_ORDER_BY": "order by",
    "_GROUP_BY": "group by",
    "LIMIT": "limit",
    "OFFSET": "offset",
    "DIRECTION": "asc, desc",
    "_AND": "and",
    "_OR": "or",
    "IS_NULL": "is null, is not null",
    "ORDER": "<, <=, >, >=",
    "DOUBLE_QUOTED": "a string in quotes",
    "SINGLE_QUOTED": "",
    "REAL": "a number",
    "INTEGER": "a number",
    "BOOLEAN": "true, false",
    "$END": "the end of the query",
}
"""The names of the grammar's terminals in messages; one that another implies has none. Any other terminal is named by its sign."""


_MAX_LENGTH = 2**20
"""Characters of a query."""
_MAX_DEPTH = 100
"""Brackets and negations within each other."""


class _Fault(Exception):
    """Something that the grammar allows and that is not a query all the same."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        self.reason = reason


production = v_args(inline=True)


class _AstBuilder(Transformer[Token, Ast]):
    """Makes the tree of each production, named as in the grammar, from the trees of its parts."""

    @production
    def query(self, entity: Token, *parts: list[Ast]) -> Ast:
        *columns, body = parts
        condition, grouping, paging = body
        clauses = [part for part in (condition, grouping) if part is not None]
        if columns:
            clauses = [["extract", columns[0], *clauses]]
        assert isinstance(paging, list)
        return ["from", str(entity), *clauses, *paging]

    @production
    def array(self, *values: Ast) -> Ast:
        return list(values)

    @production
    def function(self, name: Token, *arguments: Ast) -> Ast:
        return ["function", str(name), *arguments]

    @production
    def body(self, *clauses: list[Ast]) -> Ast:
        """Return the condition and the grouping, None where there is none, and the list of clauses for paging."""
        condition: Ast = None
        grouping: Ast = None
        paging: list[Ast] = []
        for clause in clauses:
            if clause[0] == "group_by":
                grouping = clause
            elif clause[0] in ("limit", "offset", "order_by"):
                paging.append(clause)
            else:
                condition = clause
        return [condition, grouping, paging]

    @production
    def limit(self, _word: Token, number: Ast) -> Ast:
        return ["limit", number]

    @production
    def offset(self, _word: Token, number: Ast) -> Ast:
        return ["offset", number]

    @production
    def order_by(self, *keys: Ast) -> Ast:
        return ["order_by", list(keys)]

    @production
    def sort_key(self, field: Ast, direction: Token | None = None) -> Ast:
        return field if direction is None else [field, str(direction)]

    @production
    def group_by(self, *columns: Ast) -> Ast:
        return ["group_by", *columns]

    @production
    def disjunction(self, *conditions: Ast) -> Ast:
        return ["or", *conditions]

    @production
    def conjunction(self, *conditions: Ast) -> Ast:
        return ["and", *conditions]

    @production
    def negation(self, condition: Ast) -> Ast:
        return ["not", condition]

    @production
    def comparison(self, field: Ast, operator: Token, value: Ast) -> Ast:
        return [str(operator), field, value]

    @production
    def difference(self, field: Ast, value: Ast) -> Ast:
        return ["not", ["=", field, value]]

    @production
    def mismatch(self, field: Ast, pattern: Ast) -> Ast:
        return ["not", ["~", field, pattern]]

    @production
    def path_match(self, field: Ast, *patterns: Ast) -> Ast:
        return ["~>", field, list(patterns)]

    @production
    def null_check(self, field: Ast, words: Token) -> Ast:
        return ["null?", field, words == "is null"]

    @production
    def membership(self, fields: Ast, values: Ast) -> Ast:
        return ["in", fields, values]

    @production
    def choices(self, *values: Ast) -> Ast:
        return ["array", list(values)]

    @production
    def subquery(self, entity: Token, condition: list[Ast]) -> Ast:
        return ["subquery", str(entity), *condition]

    @production
    def field(self, name: Token) -> Ast:
        return str(name)

    @production
    def string(self, quoted: Token) -> Ast:
        offset = quoted.start_pos or 0
        if quoted[0] == "'":
            return quoted[1:-1].replace("\\'", "'")
        try:
            value = str(json.loads(quoted, strict=False))
            value.encode()
        except json.JSONDecodeError as err:
            raise _Fault(offset + err.pos, "There is no such escape in a string: a backslash itself is written \\\\") from err
        except UnicodeEncodeError as err:
            raise _Fault(offset, "This string holds half of a surrogate pair, which is no character") from err
        return value

    @production
    def integer(self, digits: Token) -> Ast:
        if len(digits) > _MAX_DIGITS:
            raise _Fault(digits.start_pos or 0, f"This number has more than {_MAX_DIGITS} digits")
        return int(digits)

    @production
    def real(self, digits: Token) -> Ast:
        value = float(digits)
        if math.isinf(value):
            raise _Fault(digits.start_pos or 0, "This number is too large")
        return value

    @production
    def boolean(self, word: Token) -> Ast:
        return str(word) == "true"


class _NestingCounter(PostLex):
    """Sits between the lexer and the parser and ends a query that is nested too deeply, before anything is made of it."""

    always_accept = ()

    def process(self, tokens: Iterator[Token]) -> Iterator[Token]:
        """Yield the tokens as they are."""
        depth = 0
        negations = 0
        for token in tokens:
            if token in ("{", "[", "("):
                depth += 1
            elif token in ("}", "]", ")"):
                depth -= 1
            negations = negations + 1 if token.value == "!" else 0
            if depth + negations > _MAX_DEPTH:
                raise _Fault(token.start_pos or 0, f"This query is nested more than {_MAX_DEPTH} levels deep")
            yield token


@cache
def _parser() -> Lark:
    """Return the parser, which takes some hundredths of a second to make."""
    return Lark(
        Path(__file__).with_name("pql.lark").read_text("utf-8"),
        parser="lalr",
        lexer="contextual",
        maybe_placeholders=False,
        transformer=_AstBuilder(),
        postlex=_NestingCounter(),
    )


def parse(text: str) -> list[Ast]:
    """
    Return the syntax tree of a query, `["from", ENTITY, …]`. It takes about ten microseconds a word; the first call also loads the grammar.

    Raises:
        PqlError: the text is no query, or it is too large.
    """
    if len(text) > _MAX_LENGTH:
        raise PqlError(text, _MAX_LENGTH, f"This query is longer than {_MAX_LENGTH} characters")
    try:
        query = _parser().parse(text)
    except UnexpectedToken as err:
        end = err.token.type == "$END"
        raise _syntax_error(text, len(text) if end else err.token.start_pos or 0, err.accepts or err.expected) from err
    except UnexpectedCharacters as err:
        before = err.token_history[-1] if err.token_history and err.token_history[-1] else ""
        raise _syntax_error(text, err.pos_in_stream or 0, err.allowed or (), before) from err
    except _Fault as err:
        raise PqlError(text, err.offset, err.reason) from err
    assert isinstance(query, list)
    return query


def _syntax_error(text: str, offset: int, terminals: Iterable[str], before: str = "") -> PqlError:
    """
    Return the error for a place at which none of the terminals matches; `before`: the token in front of it.

    A string without its end is wrong where the text ends, and a name with a dot behind the dot.
    """
    terminals = set(terminals)
    if text[offset : offset + 1] and text[offset] in _QUOTES and "DOUBLE_QUOTED" in terminals:
        return PqlError(text, len(text), expectation([text[offset]]))
    if terminals == {"$END"}:
        return PqlError(text, len(text[:offset].rstrip()), expectation([_word("$END")]))
    if text[offset : offset + 1] == "." and before.startswith(_ROOTS) and text.endswith(before, 0, offset):
        return PqlError(text, offset + 1, expectation([_DOTTED]))
    words = {_word(terminal) for terminal in terminals - _namesakes(terminals)} - {""}
    if "NAME" not in terminals and "ENTITY" in terminals:
        words = words - {_word("ENTITY")} | {f"{_word('ENTITY')} ({_ENTITIES})"}
    return PqlError(text, offset, expectation(sorted(words)))


def _namesakes(terminals: set[str]) -> set[str]:
    """Return the terminals that could be at a place as names of fields only."""
    if "NAME" not in terminals:
        return set()
    paging = set() if "_ORDER_BY" in terminals else {"LIMIT", "OFFSET"}
    return paging if "BANG" in terminals else {"ENTITY", *paging}


def _word(terminal: str) -> str:
    """Return how a message calls a terminal of the grammar; empty where the word of another implies it."""
    known = _WORDS.get(terminal)
    if known is not None:
        return known
    return _parser_signs().get(terminal, terminal)


@cache
def _parser_signs() -> dict[str, str]:
    """Return the signs that the grammar's anonymous terminals stand for."""
    return {terminal.name: terminal.pattern.value for terminal in _parser().terminals}
