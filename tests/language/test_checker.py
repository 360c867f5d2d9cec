"""The checker: each case is a manifest whose wrong lines say what is wrong with them, behind `###`."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import re
from pathlib import PurePath

import pytest

from language.syntax.checker import MISPLACED, Diagnostic, check, log_and_refuse, namespace_of, problem
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import Location, ParseError

FORGOTTEN = "A value was produced and then forgotten (one or more preceding expressions may have the wrong form)"


def issues(text: str, *, epp: bool = False, namespace: str | None = None, strict: str = "warning") -> list[Diagnostic]:
    source = Source(text, "m.pp")
    return check(parse(source, epp=epp), source, namespace=namespace, strict=strict)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        # statements without effect
        f"foo ### This Name has no effect. {FORGOTTEN}\nnotice(1)",
        f"1 + 2 ### This '+' expression has no effect. {FORGOTTEN}\nnotice(1)",
        f"if true {{\n  'a' ### This String has no effect. {FORGOTTEN}\n  notice(1)\n}}",
        f"if $a {{ 1 }} else {{ 2 }} ### This 'if' statement has no effect. {FORGOTTEN}\nnotice(1)",
        "if 'a' =~ /b/ { 1 }\nnotice(1)",
        "'a' =~ /b/\nnotice($1)",
        "class c {\n  $x ### This Variable has no effect. A Host Class Definition can not end with a value-producing expression without other effect\n}",
        "define d {\n  1 ### This Literal Integer has no effect. A 'define' expression can not end with a value-producing expression without other effect\n}",
        "node default {\n  $a['b'] ### This '[]' expression has no effect. A Node Definition can not end with a value-producing expression without other effect\n}",
        "function f() { 1 }",
        "notify { ### This expression is invalid. Did you try declaring a 'notify' resource without a title?\n  message => 'x' }",
        # names
        "$Foo = 1 ### Illegal variable name, The given name 'Foo' does not conform to the naming rule /^((::)?[a-z]\\w*)*((::)?[a-z_]\\w*)$/",
        "notice($1a) ### Illegal numeric variable name, The given name '1a' must be a decimal value if it starts with a digit 0-9",
        "notice($_a, $a::_b, $::a, $0, $10)",
        "class foo-bar { } ### Unacceptable name. The name 'foo-bar' is unacceptable as the name of a Host Class Definition",
        "define A { } ### Unacceptable name. The name 'A' is unacceptable as the name of a 'define' expression",
        "class string { } ### The name: 'string' is already defined by Puppet and can not be used as the name of a Host Class Definition.",
        "class plan { } ### ~Use of future reserved word: 'plan'",
        "type Foo = [A] ### Illegal expression. An Array Expression is unacceptable as a type reference in a Type Alias",
        "$a = attr ### Use of reserved word: attr, must be quoted if intended to be a String value",
        # parameters
        "class c($title) { } ### The parameter $title redefines a built in parameter in the Host Class Definition",
        "function f($a, $a) { } ### The parameter 'a' is declared more than once in the parameter list",
        "class c(*$a) { } ### Parameter $a has 'captures rest' - not supported in a Host Class Definition",
        "f() |*$a, $b| { } ### Parameter $a is not last, and has 'captures rest'",
        "class c($a::b) { } ### Illegal parameter name. The given name 'a::b' does not conform to the naming rule /^[a-z_]\\w*$/",
        "class c($a = ($b = 1)) { } ### Assignment not allowed here",
        "class c($a = [1].map |$x| { $b = $x }) { }",
        # assignments
        "'a' = 1 ### Illegal attempt to assign to 'a String'. Not an assignable reference",
        "$foo-bar = 1 ### Illegal attempt to assign to 'a '-' expression'. Not an assignable reference",
        "$1 = 2 ### Illegal attempt to assign to the numeric match result variable '$1'. Numeric variables are not assignable",
        "$a::b = 1 ### Illegal attempt to assign to 'a::b'. Cannot assign to variables in other namespaces",
        "$a[0] = 1 ### Illegal attempt to assign via [index/key]. Not an assignable reference",
        "[$a, [$b, $c::d]] = 1 ### Illegal attempt to assign to 'c::d'. Cannot assign to variables in other namespaces",
        "$a += 1 ### The operator '+=' is no longer supported. See http://links.puppet.com/remove-plus-equals",
        # where things may stand
        "if true { class c { } } ### Classes, definitions, and nodes may only appear at toplevel or inside other classes",
        "define d { class c { } } ### Classes, definitions, and nodes may only appear at toplevel or inside other classes",
        "class c { function f() { } } ### A Function Definition may only appear at toplevel",
        "class c { type A = Integer } ### A Type Alias may only appear at toplevel",
        "class a { class b { define c { } } }",
        # values
        "$x = 9223372036854775808 ### A Literal Integer resulted in a value outside of Puppet Integer max range, got '+0x8000000000000000'",
        "$x = { a => 1, 'a' => 2 } ### ~The key 'a' is declared more than once",
        "$x = { 1 => 1, '1' => 2, 1.0 => 3, true => 4, default => 5, 'default' => 6 }",
        "$x = [A <| |>] ### Invalid use of expression. A Virtual Query does not produce a value",
        "1(2) ### Illegal expression. A Literal Integer is unacceptable as function name in a Function Call",
        # choices
        "case 1 {\n  default: { }\n  default: { } ### This 'case' statement already has a 'default' entry - this is a duplicate\n}",
        "$a = 1 ? { default => 1,\n default => 2 } ### This Selector Expression already has a 'default' entry - this is a duplicate",
        # resources
        "notify { 'a': tag +> 1 } ### Illegal +> operation on attribute tag. This operator can not be used in a Resource Instance Definition",
        "Notify { tag +> 1 } ### Illegal +> operation on attribute tag. This operator can not be used in a Resource Defaults Expression",
        "Notify['a'] { tag +> 1 }\nNotify <| |> { tag +> 1 }",
        "notify { 'a': * => $a,\n * => $b } ### Unfolding of attributes from Hash can only be used once per resource body",
        "@Notify { a => 1 } ### Resource Defaults are not virtualizable",
        "@class { 'a': } ### Classes are not virtualizable",
        "A <| a =~ b |> ### Illegal query expression. A '=~' expression cannot be used in a query",
        "A <| (a == [1] or b != $c) and d == undef |>",
        "a <| |> ### Illegal expression. A Name is unacceptable as type name in a Virtual Query",
        # nodes
        'node "a${b}" { } ### An interpolated expression is not allowed in a hostname of a node',
        "node 'a b' { } ### The hostname 'a b' contains illegal characters (only letters, digits, '_', '-', and '.' are allowed)",
        "node a inherits b { } ### Node inheritance is not supported in Puppet >= 4.0.0. See http://links.puppet.com/puppet-node-inheritance-deprecation",
        # inside strings
        "notice(\"a\\qb\") ### ~Unrecognized escape sequence '\\q'",
        "$x = '(' =~ /(/ ### !",
    ],
)
def test_what_is_wrong_is_said_on_its_line(text: str) -> None:
    wanted = [(line, match[1]) for line, rest in enumerate(text.split("\n"), 1) if (match := re.search(r"### (.*)", rest))]
    found = [(issue.where.line, ("" if issue.severity == "error" else "~") + issue.message) for issue in issues(text)]
    assert [line for line, _ in found] == [line for line, _ in wanted]
    assert all(message in ("!", got) for (_, message), (_, got) in zip(wanted, found, strict=True)), found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<%- |*$a| -%>", "Parameter $a has 'captures rest' - not supported in an Epp Template (file: m.pp, line: 1, column: 7)"),
        (
            "<% class c { } %>",
            "Classes, definitions, and nodes may only appear at toplevel or inside other classes (file: m.pp, line: 1, column: 4)",
        ),
        ("<% 1 + 1 %>x", f"This '+' expression has no effect. {FORGOTTEN} (file: m.pp, line: 1, column: 6)"),
        ("a <%-= 1 %>", "Illegal attempt to assign to 'an Epp Text'. Not an assignable reference (file: m.pp, line: 1, column: 1)"),
    ],
)
def test_templates_are_checked_too(text: str, message: str) -> None:
    assert message in [str(issue) for issue in issues(text, epp=True)]


def test_a_duplicate_key_is_as_severe_as_strict_says() -> None:
    text = "$a = { a => 1, a => 2 }"
    assert [issue.severity for issue in issues(text, strict="error")] == ["error"]
    assert [issue.severity for issue in issues(text, strict="warning")] == ["warning"]
    assert issues(text, strict="off") == []


def test_a_modules_file_defines_only_what_its_path_says() -> None:
    assert issues("class m::a { }", namespace="m::a") == []
    assert [str(issue) for issue in issues("class m::b { }", namespace="m::a")] == [
        "Unacceptable location. The name 'm::b' is unacceptable in file 'm.pp' (file: m.pp, line: 1, column: 1)"
    ]
    assert len(issues("class m { }", namespace=MISPLACED)) == 1


def test_a_modules_file_holds_nothing_but_definitions() -> None:
    assert [issue.message for issue in issues("class m { }\nnotify { 'a': }", namespace="m")] == [
        "This Resource Statement is unacceptable as a top level construct in this location"
    ]
    assert issues("# nothing", namespace="m") == []


@pytest.mark.parametrize(
    ("path", "namespace"),
    [
        ("apache/manifests/init.pp", "apache"),
        ("apache/manifests/mod/SSL.pp", "apache::mod::ssl"),
        ("apache/manifests/mod/init.pp", "apache::mod::init"),
        ("apache/functions/f.pp", "apache::f"),
        ("apache/lib/f.pp", MISPLACED),
        ("apache/f.pp", MISPLACED),
    ],
)
def test_a_path_in_a_module_gives_its_namespace(path: str, namespace: str) -> None:
    assert namespace_of(PurePath(path)) == namespace


@pytest.mark.parametrize(
    ("text", "syntax", "wrong"),
    [
        ('{"a": 1}', "json", False),
        ('{"a": }', "json", True),
        ('{"a": }', "data+json", True),
        ('{"a": }', "yaml", False),
        ('{"a": }', "", False),
        ("$a = 1", "pp", False),
        ("$a = = 1", "pp", True),
        ("1 2", "pp", True),
        ("<%= $a %>", "epp", False),
        ("<%= $a", "epp", True),
        ("YWJj\nZA==\n", "base64", False),
        ("YWJjZ", "base64", True),
        ("YW-j", "base64", True),
    ],
)
def test_text_that_claims_a_syntax_is_held_to_it(text: str, syntax: str, wrong: bool) -> None:
    assert (problem(text, syntax) is not None) is wrong


def refused(found: list[Diagnostic]) -> tuple[list[tuple[str, str]], str]:
    log: list[tuple[str, str]] = []
    try:
        log_and_refuse(found, lambda level, issue: log.append((level, issue.message)))
    except ParseError as error:
        return log, str(error)
    return log, ""


def issue(severity: str, number: int, *, lexical: bool = False) -> Diagnostic:
    return Diagnostic(severity, f"{severity}{number}", Location("m.pp", number, 1), lexical=lexical)  # type: ignore[arg-type]


def test_one_error_is_raised_as_it_is() -> None:
    assert refused([issue("warning", 1), issue("error", 2)]) == ([("warning", "warning1")], "error2 (file: m.pp, line: 2, column: 1)")


def test_several_errors_are_logged_and_counted_with_the_warnings_of_the_checker() -> None:
    found = [issue("warning", 1, lexical=True), issue("error", 1), issue("deprecation", 2), *(issue("error", n) for n in range(2, 13))]
    log, raised = refused(found)
    assert raised == "Language validation logged 12 errors, and 1 warnings. Giving up (file: m.pp)"
    assert log[:2] == [("warning", "warning1"), ("warning", "deprecation2")]
    assert [message for level, message in log if level == "err"] == [f"error{n}" for n in range(1, 11)]


def test_nothing_is_raised_for_warnings() -> None:
    assert refused([issue("warning", 1)]) == ([("warning", "warning1")], "")
