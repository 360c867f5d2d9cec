"""Code generation: order of evaluation, variables, positions, and what runs as Python."""

from __future__ import annotations

import dis
from types import CodeType
from typing import Any

import pytest

from language.codegen import body_code, headers
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import CompileError, Unsupported
from tests.support.compiling import ROOT, compiled

VALUES: list[tuple[str, Any]] = [
    # (statements that set $r, the value)
    ("$r = 1 + 2 * 3", 7),
    ("$r = if true { 1 } else { 2 }", 1),
    ("$r = if false { 1 }", "undef"),
    ("$r = unless false { 'a' } else { 'b' }", "a"),
    ("$r = [1, if true { 2 } else { 3 }, 4]", [1, 2, 4]),
    ("$r = { 'a' => if true { 1 }, 'b' => case 2 { 2: { 'two' } } }", {"a": 1, "b": "two"}),
    ("$x = 5 $r = \"${x} ${if true { 'then' }} ${x}\"", "5 then 5"),
    ("$r = case 'b' { 'a': { 1 } 'B': { 2 } default: { 3 } }", 2),
    ("$r = case 9 { default: { 'd' } 1: { 'one' } }", "d"),
    ("$r = 'x' ? { /(x)/ => \"m${1}\", default => 'no' }", "mx"),
    ("$r = true and if false { true } else { true }", True),
    ("$r = false or (if true { 1 } and if true { 2 })", True),
    ("$r = [1, 2, 3].map |$i| { $i * 2 }", [2, 4, 6]),
    ("$r = [1, 2, 3].map |$i| { if $i == 2 { next('two') } $i }", [1, "two", 3]),
    ("$r = [1, 2, 3].filter |$i| { $i > 1 }", [2, 3]),
    ("$r = [1, 2, 3].reduce |$m, $i| { $m + $i }", 6),
    ("$k = 10 $r = [1, 2].map |$i| { $k + $i }", [11, 12]),
    ("$r = [1, 2].map |$i| { $x = $i $x + 1 }", [2, 3]),
    ('$r = [1, 2].map |$i| { [3, 4].map |$j| { "${i}${j}" } }', [["13", "14"], ["23", "24"]]),
    ("$r = [1, 2].map |$i, $v = 7| { $v }", [1, 2]),
    ("$r = with(1) |$a, $b = $a + 1| { [$a, $b] }", [1, 2]),
    ("$r = with(1, 2, 3) |$a, *$rest| { [$a, $rest] }", [1, [2, 3]]),
    ("[$a, [$b, $c]] = [1, [2, 3]] $r = [$c, $b, $a]", [3, 2, 1]),
    ("[$a, $b] = { 'b' => 1, 'a' => 2 } $r = [$a, $b]", [2, 1]),
    ("$r = [1, *[2, 3], *{ 'k' => 'v' }]", [1, 2, 3, ["k", "v"]]),
    ("$r = [a => 1, b => 2, 3]", [{"a": 1, "b": 2}, 3]),
    ("$r = { 1 => 'int', '1' => 'text' }['1']", "text"),
    ("$r = -5", -5),
    ("$r = !undef", True),
    ("$r = 5 =~ Integer[1, 10]", True),
    ("$n = 3 $r = 5 =~ Integer[$n]", True),
    ("$r = Integer('0x1f', 16)", 31),
    ("if 'abc' =~ /b(.)/ { $r = $1 }", "c"),
    ("if true { $x = 1 } $r = $x", 1),
    ("$r = $nothing =~ Undef", None),
]


@pytest.mark.parametrize(("code", "value"), VALUES, ids=[code for code, _ in VALUES])
def test_an_expression_gives_the_value_of_the_language(code: str, value: Any) -> None:
    if value is None:
        with pytest.raises(CompileError, match="Unknown variable"):
            compiled(code)
        return
    shown = "undef" if value == "undef" else value
    result = compiled(f"{code}\n$shown = $r ? {{ undef => 'undef', default => $r }}\nnotify {{ 'r': message => $shown }}")
    assert result.parameters("Notify[r]")["message"] == shown


def test_operands_are_evaluated_left_to_right_around_statements() -> None:
    result = compiled(
        """
        function say($x) { notice($x) $x }
        $a = [say(1), if say(2) == 2 { say(3) }, say(4)]
        """
    )
    assert result.notices == ["1", "2", "3", "4"]


def test_the_right_side_of_and_is_not_evaluated_when_the_left_is_false() -> None:
    result = compiled("function say($x) { notice($x) $x }\n$a = say(false) and if say('no') == 1 { true }")
    assert result.notices == ["false"]


def test_only_the_options_up_to_the_match_are_evaluated() -> None:
    result = compiled(
        """
        function say($x) { notice($x) $x }
        case 2 { say(1): { } say(2), say(3): { notice('hit') } say(4): { } }
        """
    )
    assert result.notices == ["1", "2", "hit"]


VARIABLES = [
    ("a lambda sees what is around it", "$x = 1 [1].each |$i| { notice($x) }", ["1"]),
    ("what a lambda sets stays in it", "[1].each |$i| { $y = 1 } $y = 2 notice($y)", ["2"]),
    ("a lambda may hide a variable", "$x = 1 [1].each |$i| { $x = 2 notice($x) } notice($x)", ["2", "1"]),
    ("a branch of a lambda that is not taken hides nothing", "$x = 1 [1].each |$i| { if false { $x = 2 } notice($x) }", ["1"]),
    ("a lambda's branches may each set it", "[1, 2].each |$i| { if $i == 1 { $x = 'a' } else { $x = 'b' } notice($x) }", ["a", "b"]),
    ("branches may each set it", "if true { $x = 'a' } else { $x = 'b' } notice($x)", ["a"]),
    ("inline_epp sees a lambda's variables", "['v'].each |$q| { notice(inline_epp('<%= $q %>')) }", ["v"]),
    ("inline_epp sees what a lambda set", "[1].each |$i| { $z = 'zz' notice(inline_epp('<%= $z %>')) }", ["zz"]),
    ("defined sees variables by name", "[1].each |$i| { notice(defined('$i'), defined('$nope')) }", ["true false"]),
]


@pytest.mark.parametrize(("why", "code", "notices"), VARIABLES, ids=[why for why, _, _ in VARIABLES])
def test_variables_are_seen_where_they_should_be(why: str, code: str, notices: list[str]) -> None:
    assert compiled(code).notices == notices, why


@pytest.mark.parametrize(
    "code",
    [
        "$a = 1\n$a = 2",
        "class c($p = 1) { $p = 2 }\ninclude c",
        "if true { $a = 1 }\n$a = 2",
        "[1].each |$i| { $a = 1 $a = 2 }",
        "[1].each |$i| { if true { $a = 1 } $a = 2 }",
        "[1].each |$i| { $i = 2 }",
    ],
)
def test_a_variable_is_set_only_once(code: str) -> None:
    with pytest.raises(CompileError, match=r"Cannot reassign variable '\$\w'"):
        compiled(code)


def test_jumps_end_what_the_language_says() -> None:
    result = compiled(
        """
        class c { [1, 2].each |$i| { if $i == 2 { return() } notice("c${i}") } notice('not reached') }
        define d() { notice('d') return() notice('not reached') }
        function f() { [1, 2, 3].each |$i| { if $i == 2 { return("f${i}") } } 'end' }
        include c
        d { 'x': }
        notice(f())
        notice([1, 2, 3].map |$i| { if $i == 2 { break() } $i })
        """
    )
    assert result.notices == ["c1", "f2", "[1]", "d"]


# What Puppet 7.23 and 8.10 say of the same.
@pytest.mark.parametrize(
    ("body", "notices"),
    [
        ('if $x =~ Undef { return() } "v${x}"', ["true"]),
        ("return(3)", ["false"]),
        ("[1].each |$y| { return(3) } 'x'", ["false"]),
        ("with(1) |$y| { return(undef) }", ["true"]),
        ("[1].each |$y| { next(3) } 'x'", ["false"]),
    ],
)
def test_the_type_of_what_return_returns_is_not_checked(body: str, notices: list[str]) -> None:
    assert compiled(f"function f($x) >> String {{ {body} }}\nnotice(f(undef) =~ Undef)").notices == notices


@pytest.mark.parametrize("body", ["3", "next(3)", "if $x { return('x') } 3"])
def test_the_type_of_other_results_is_checked(body: str) -> None:
    with pytest.raises(CompileError, match="value returned from f has wrong type, expects a String value, got Integer"):
        compiled(f"function f($x) >> String {{ {body} }}\nf(undef)")


def _positions(code: CodeType) -> set[tuple[int | None, int | None]]:
    found = {(line, column) for line, _, column, _ in code.co_positions() if line is not None}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _positions(constant)
    return found


def test_generated_code_has_the_lines_and_columns_of_the_manifest() -> None:
    text = "notice(\n  nosuch(1),\n)\nclass c {\n  $x = 1 + $y\n}\n"
    source = Source(text, "/m/site.pp")
    program = parse(source)
    assert [(each.kind, each.name, each.line) for each in headers(program, source)] == [("class", "c", 4), ("main", "", 1)]
    class_, main = (body_code(program, source, index) for index in (0, 1))
    assert class_.co_filename == main.co_filename == "/m/site.pp"
    assert {line for line, _ in _positions(class_)} - {0} <= {4, 5, 6}  # 0: the beginning of the module itself
    assert {line for line, _ in _positions(main)} - {0} <= {1, 2, 3}
    assert (2, 2) in _positions(main)
    assert (5, 9) in _positions(class_)
    assert {each.co_name for code in (class_, main) for each in code.co_consts if isinstance(each, CodeType)} == {"main", "class c"}


def test_a_function_without_match_variables_keeps_no_matches() -> None:
    text = "class c { if 'a' =~ /a/ { notice('x') } }"
    module = body_code(parse(Source(text, "x.pp")), Source(text, "x.pp"), 0)
    code = next(each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == "class c")
    assert "enter_matches" not in [instruction.argval for instruction in dis.get_instructions(code)]


def test_local_variables_are_read_as_python_locals() -> None:
    text = "class c($p) { $x = $p notice($x) }"
    module = body_code(parse(Source(text, "x.pp")), Source(text, "x.pp"), 0)
    code = next(each for each in module.co_consts if isinstance(each, CodeType) and each.co_name == "class c")
    assert {"v0_p", "v0_x"} <= set(code.co_varnames)
    assert "get" not in code.co_names


def test_columns_count_characters_though_python_counts_octets() -> None:
    with pytest.raises(CompileError) as caught:
        compiled("$a = 'åäö日本' + nosuch()")
    assert caught.value.where is not None
    assert (caught.value.where.file, caught.value.where.line, caught.value.where.column) == (f"{ROOT}/manifests/site.pp", 1, 16)


def test_a_construct_that_cannot_be_compiled_is_named_with_its_place() -> None:
    text = "$x = 1\nplan p() { }\n"
    program = parse(Source(text, "p.pp"), tasks=True)
    with pytest.raises(Unsupported, match="PlanDefinition cannot be compiled") as caught:
        headers(program, Source(text, "p.pp"))
    assert caught.value.where is not None
    assert caught.value.where.line == 2
