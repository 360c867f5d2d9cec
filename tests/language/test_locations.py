"""Errors: what is said, and the place that is named."""

from __future__ import annotations

import pytest

from shared.errors import CompileError
from tests.support.compiling import compiled

SITE = "/env/manifests/site.pp"
NODE = "on node node1.example.com"

ERRORS = [
    ("nosuch()", f"Evaluation Error: Unknown function: 'nosuch'. (file: {SITE}, line: 1, column: 1) {NODE}"),
    (
        "$a = 1\n$b = $a + 'x'",
        f"Evaluation Error: The value 'x' cannot be converted to Numeric. (file: {SITE}, line: 2, column: 11) {NODE}",
    ),
    (
        "$a = [1]\nnotice($a['k'])",
        f"Evaluation Error: The value 'k' cannot be converted to Numeric. (file: {SITE}, line: 2, column: 11) {NODE}",
    ),
    (
        "fail('too', 'bad')",
        f"Evaluation Error: Error while evaluating a Function Call, too bad (file: {SITE}, line: 1, column: 1) {NODE}",
    ),
    (
        '[1].each |$x| {\n  fail("in ${x}")\n}',
        f"Evaluation Error: Error while evaluating a Function Call, in 1 (file: {SITE}, line: 2, column: 3) {NODE}",
    ),
    (
        "define d() {\n  fail('inside')\n}\nd { 'x': }",
        "Evaluation Error: Error while evaluating a Resource Statement, Evaluation Error: Error while evaluating a Function Call, inside "
        f"(file: {SITE}, line: 2, column: 3) (file: {SITE}, line: 4) {NODE}",
    ),
    (
        "class c(Integer $a) { }\nclass { 'c': a => 'x' }",
        "Evaluation Error: Error while evaluating a Resource Statement, Class[C]: parameter 'a' expects an Integer value, got String "
        f"(file: {SITE}, line: 2, column: 1) {NODE}",
    ),
    (
        "notify { 'a': }\nnotify { 'a': }",
        "Evaluation Error: Error while evaluating a Resource Statement, Duplicate declaration: Notify[a] is already declared at "
        f"(file: {SITE}, line: 1); cannot redeclare (file: {SITE}, line: 2) (file: {SITE}, line: 2, column: 1) {NODE}",
    ),
    ("notify { 'a': nosuch => 1 }", f"no parameter named 'nosuch' (file: {SITE}, line: 1) on Notify[a] (file: {SITE}, line: 1) {NODE}"),
    (
        "notify { 'a':\n  require => File['/x'],\n}",
        f"Could not find resource 'File[/x]' in parameter 'require' (file: {SITE}, line: 2) {NODE}",
    ),
    ("Notify['a'] -> Notify['b']\nnotify { 'a': }", f"Could not find resource 'Notify[b]' for relationship from 'Notify[a]' {NODE}"),
    ("class {", f"Could not parse for environment production: Syntax error at end of input (file: {SITE}) {NODE}"),
    ("break()", f"break() from context where this is illegal (file: {SITE}, line: 1) {NODE}"),
]


@pytest.mark.parametrize(("manifest", "message"), ERRORS, ids=[manifest for manifest, _ in ERRORS])
def test_an_error_says_what_and_where(manifest: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(manifest)
    assert str(caught.value) == message


def test_an_error_in_a_module_names_the_module_s_file() -> None:
    files = {
        "modules/m/manifests/init.pp": "class m {\n  include m::deep\n}\n",
        "modules/m/manifests/deep.pp": "class m::deep {\n  $x = 1 / 0\n}\n",
    }
    with pytest.raises(CompileError) as caught:
        compiled("include m", files)
    where = caught.value.where
    assert where is not None
    assert (where.file, where.line, where.column) == ("/env/modules/m/manifests/deep.pp", 2, 12)


def test_an_error_in_a_template_names_the_template() -> None:
    with pytest.raises(CompileError) as caught:
        compiled(
            "notice(epp('m/t.epp'))",
            {"modules/m/templates/t.epp": "one\ntwo <%= nosuch() %>\n", "modules/m/manifests/init.pp": "class m { }"},
        )
    assert "(file: /env/modules/m/templates/t.epp, line: 2, column: 9)" in str(caught.value)


@pytest.mark.parametrize(
    ("manifest", "hint"),
    [
        ("$colour = 1\nnotice($color)", "Did you mean '$colour'?"),
        ("notify { 'a': mesage => 'x' }", "Did you mean 'message'?"),
        ("notise('x')", "Did you mean 'notice'?"),
    ],
)
def test_an_error_says_what_could_have_been_meant(manifest: str, hint: str) -> None:
    with pytest.raises(CompileError) as caught:
        compiled(manifest)
    assert caught.value.hint == hint


def test_endless_recursion_is_one_error() -> None:
    with pytest.raises(CompileError, match="stack level too deep"):
        compiled("function f($x) { f($x) }\nf(1)")


def test_a_warning_names_the_place_it_is_about() -> None:
    (entry,) = compiled("$a = 1 + '2'").logs
    assert entry.text == f"The string '2' was automatically coerced to the numerical value 2 (file: {SITE}, line: 1, column: 10)"
