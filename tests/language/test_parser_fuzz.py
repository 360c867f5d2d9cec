"""Any text ends in a tree or in a ParseError, and any tree can be checked."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from language.syntax.checker import check
from language.syntax.dump import notation_of
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import ParseError
from tests.support.examples import examples

# fmt: off
WORDS = (
    "class", "define", "node", "function", "type", "if", "elsif", "else", "unless", "case", "default", "undef", "true", "in", "and", "inherits",
    "private", "foo", "include", "Foo", "Foo::Bar", "::foo", "a-b", "$x", "$1", "$", "'s'", "'", '"a ${', '"', "${", "}", "{", "[", " [", "(",
    "\n(", ")", "]", "|", "||", "<|", "|>", "<<|", "|>>", "@", "@@", "@(A)", '@("B":json/tL)', "\n  | A\n", "\n- B\n", "=>", "+>", "=", "==",
    "=~", "->", "<-", "~", "-", "+", "*", "/", "/re/", "%", "!", "?", ",", ";", ":", ".", "1", "0x1f", "089", "1e400", "1.5", "#", "/*", "*/",
    "\\", "\n", "\r\n", "é", "\x00", "<%", "<%=", "<%-", "<%#", "-%>", "%>", "<%%",
)
# fmt: on

texts = st.one_of(
    st.text(max_size=80),
    st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join),
    st.lists(st.sampled_from(WORDS), max_size=25).map("".join),
)


@pytest.mark.slow
@settings(max_examples=examples(3000), deadline=None)
@given(texts, st.booleans())
def test_any_text_ends_in_a_tree_or_a_parse_error(text: str, epp: bool) -> None:
    source = Source(text)
    try:
        program = parse(source, epp=epp)
    except ParseError as error:
        assert error.message
        return
    check(program, source, namespace="m")
    assert notation_of(program.body)
    for issue in check(program, source):
        assert issue.where.line is not None
