"""Tokens: each case is a text and its tokens, `kind:text` where the two differ."""

from __future__ import annotations

import pytest

from language.syntax.lexer import lex
from language.syntax.source import Source


def shown(text: str, *, epp: bool = False, tasks: bool = False) -> str:
    """The tokens on one line, without the last; an error as its text."""
    lexed = lex(Source(text), epp=epp, tasks=tasks)
    parts = [kind if kind.strip() == value else f"{kind}:{value}" for kind, value, _, _ in lexed.tokens[:-1]]
    return " ".join([*parts, *([f"! {lexed.error}"] if lexed.error else [])])


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("foo Foo $foo 'foo' _a a-b foo::bar", "name:foo ref:Foo variable:foo string:foo word:_a word:a-b name:foo::bar"),
        ("::foo ::Foo::Bar $::foo::bar", "name:::foo ref:::Foo::Bar variable:::foo::bar"),
        ("foo::_bar a--b foo- ", "word:foo::_bar word:a--b name:foo -"),
        ("if true undef attr", "if boolean:true undef attr"),
        ("plan", "name:plan"),
        ("1 0x1F 017 1.5 1e2 1.5E-3", "number:1 number:0x1F number:017 number:1.5 number:1e2 number:1.5E-3"),
        ("a[1] [1]", "name:a [ number:1 ]  [ number:1 ]"),
        ("a(1)\n (2)", "name:a ( number:1 )  ( number:2 )"),
        ("1 ? { 2", "number:1 ? ?{:{ number:2"),
        ("/a\\/b/ 1 /2/ 3", "regex:a/b number:1 / number:2 / number:3"),
        ("} /a/ ] /a/", "} regex:a ] / name:a /"),
        ("a<-1 b<~c <<| <| |>> |> || ~> ~", "name:a <- number:1 name:b <~ name:c <<| <| |>> |> | | ~> ~"),
        ("# one\na /* two\n # */ b", "name:a name:b"),
        ("'it\\'s \\\\ \\n'", "string:it's \\ \\n"),
        ('"a\\tb\\u0041\\u{1F600}\\$x\\\nc"', "string:a\tbA\U0001f600$xc"),
        ("$ @@ @ `", "variable: @@ @ other:"),
        ("\u00a0a\u3000b", "name:a name:b"),
    ],
)
def test_a_text_becomes_its_tokens(text: str, tokens: str) -> None:
    assert shown(text) == tokens


def test_plan_is_a_keyword_when_tasks_are_on() -> None:
    assert shown("plan", tasks=True) == "plan"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ('"a $b c"', "dqpre:a  variable:b dqpost: c"),
        ('"$a_b::c-d.e[f]"', "dqpre: variable:a_b::c dqpost:-d.e[f]"),
        ('"5$ $$a"', "dqpre:5$ $ variable:a dqpost:"),
        ('"${if}${1}${a-b}${true}"', "dqpre: variable:if dqmid: variable:1 dqmid: variable:a-b dqmid: variable:true dqpost:"),
        ('"${x[a].b}"', "dqpre: variable:x [ name:a ] . name:b dqpost:"),
        ('"${x [0]}"', "dqpre: name:x  [ number:0 ] dqpost:"),
        ('"${ x + 1 }"', "dqpre: name:x + number:1 dqpost:"),
        ('"${f({a => "${b}"})}"', "dqpre: name:f ( { name:a => dqpre: variable:b dqpost: } ) dqpost:"),
        ('"${/x/}"', "dqpre: regex:x dqpost:"),
    ],
)
def test_what_is_interpolated_stands_between_the_parts_of_its_string(text: str, tokens: str) -> None:
    assert shown(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("@(A)\n  x\n  A\ny", "heredoc: string:  x\n name:y"),
        ("@(A)\n  x\n   y\n  | A\n", "heredoc: string:x\n y\n"),
        ("@(A)\n  x\n z\n  |- A\n", "heredoc: string:x\n z"),
        ("@(A)\n  x\n  | - A", "heredoc: string:x"),
        ("@(A)\n  x\n  - A", "heredoc: string:  x"),
        ("@(A:json)\n1\nA\n", "heredoc:json string:1\n"),
        ("@(A)\n$x\\t\nA\n", "heredoc: string:$x\\t\n"),
        ("@(A/t)\n$x\\t\\n\nA\n", "heredoc: string:$x\t\\n\n"),
        ("@(A/L)\na\\\nb\nA\n", "heredoc: string:ab\n"),
        ('@("A")\n$x\\t\nA\n', "heredoc: dqpre: variable:x dqpost:\\t\n"),
        ('@("A"/$)\n\\$x\nA\n', "heredoc: string:$x\n"),
        ("[@(A), @(B)]\na\nA\nb\nB\nc", " [ heredoc: string:a\n , heredoc: string:b\n ] name:c"),
        ("@(A).upcase # x\na\nA\nb", "heredoc: string:a\n . name:upcase name:b"),
        ("@( END OF TEXT )\na\nEND OF TEXT\n", "heredoc: string:a\n"),
        ("@(A)\r\n  x\r\n  |- A\r\ny", "heredoc: string:x name:y"),
    ],
)
def test_a_heredoc_is_the_text_below_its_line(text: str, tokens: str) -> None:
    assert shown(text) == tokens


def test_places_in_a_heredoc_are_those_of_the_file() -> None:
    source = Source('$a = @("A")\n    one\n    two ${x} 3\n    | A\n')
    places = {value: (source.line(at), source.column(at)) for kind, value, at, _ in lex(source).tokens if kind == "variable"}
    assert places == {"a": (1, 1), "x": (3, 11)}


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a <%= $b %> c", "render:a  render=: variable:b %> render: c"),
        ("<%- |$a| -%>\nx", "| variable:a | render:x"),
        ("a\n  <%- $b -%>  \nc", "render:a\n variable:b render:c"),
        ("<%% %%> <%# no %>x", "render:<% %> x"),
        ("x  <%#- no -%>\ny", "render:xy"),
        ("<% if $a { %>b<% } %>", "if variable:a { render:b }"),
        ("a\r\n<% $b -%>\r\nc", "render:a\r\n variable:b render:c"),
        ("text<%# last %>", "render:text"),
        ("a <% $b", "render:a  variable:b ! Unbalanced epp tag, reached <eof> without closing tag. (line: 1, column: 8)"),
        ("a <%", "! Unbalanced embedded expression - opening <% and reaching end of input (line: 1, column: 5)"),
        ("a <%# b", "! Reaching end after opening <%# without seeing %> (line: 1, column: 5)"),
    ],
)
def test_a_template_is_text_with_code_in_tags(text: str, tokens: str) -> None:
    assert shown(text, epp=True) == tokens


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("$a = 12abc", "variable:a = ! Illegal number '12abc' (line: 1, column: 6)"),
        ("0899", "! Not a valid octal number 0899 (line: 1, column: 1)"),
        ("0xfg", "! Not a valid hex number 0xfg (line: 1, column: 1)"),
        ("1.0e+2", "number:1 . ! Not a valid decimal number 1.0e (line: 1, column: 1)"),
        ("foo::", "name:foo ! Illegal fully qualified name (line: 1, column: 6)"),
        ("Foo::bar", "! Illegal class reference (line: 1, column: 5)"),
        ("1 /* x", "number:1 ! Unclosed multiline comment (line: 1, column: 3)"),
        ("f('never closed", "name:f ( ! Unclosed quote after \"'\" followed by 'never...' (line: 1, column: 4)"),
        ('a "x $b\ty', "name:a ! Unclosed quote after 'b' followed by '\\ty...' (line: 1, column: 8)"),
        ('"${a', "! Unclosed quote after 'a' followed by '<eof>' (line: 1, column: 5)"),
        ("@(A", "! Unclosed parenthesis after '@(' followed by '@(A...' (line: 1, column: 1)"),
        ("@()", "! Invalid syntax in heredoc expected @(endtag[:syntax][/escapes]) (line: 1, column: 4)"),
        ('@("")', "! Heredoc with an empty endtag (line: 1, column: 6)"),
        ("@(A)", "! Heredoc without any following lines of text (line: 1, column: 5)"),
        ("@(A)\nx\n", "! Heredoc without end-tagged line (line: 2, column: 1)"),
        ("@(A/x)\n", "! Invalid heredoc escape char. Only t, r, n, s,  u, L, $ allowed. Got 'x' (line: 1, column: 7)"),
        ("@(A/nn)\n", "! An escape char for @() may only appear once. Got 'n, n' (line: 1, column: 8)"),
    ],
)
def test_what_cannot_be_read_is_named_behind_the_tokens_before_it(text: str, error: str) -> None:
    assert shown(text) == error


def test_unknown_escapes_stay_and_are_warned_about() -> None:
    lexed = lex(Source('"a\\qb \\u12"'))
    assert lexed.tokens[0][1] == "a\\qb \\u12"
    assert [message for _, message in lexed.warnings] == [
        "Unrecognized escape sequence '\\q'",
        "Unicode escape '\\u' was not followed by 4 hex digits or 1-6 hex digits in {} or was > 10ffff",
    ]


def test_a_regular_expression_that_never_ends_is_a_division() -> None:
    assert shown("$a = /abc\n") == "variable:a = / name:abc"
