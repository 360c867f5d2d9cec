"""Whole compiles of made-up manifests: what comes back is a catalog, or an error that says what is wrong and where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from shared.data import plainjson
from shared.errors import CompileError, PuppetError
from tests.support.compiling import compiled
from tests.support.examples import examples

NAMES = ("a", "b", "c", "title", "facts", "1")
FILES = {
    "modules/m/manifests/init.pp": 'class m ($a = 1, Integer $b = $a, Optional[String] $c = undef) { notify { "m ${a}": } }',
    "modules/m/manifests/d.pp": 'define m::d ($a = $title, Array[Integer] $b = [1]) { notify { "d ${title}": message => $a } }',
    "modules/m/functions/f.pp": "function m::f($a, *$b) >> Any { [$a, $b] }",
    "modules/m/types/t.pp": "type M::T = Variant[Integer, Array[M::T]]",
    "modules/m/templates/t.epp": "<%- | $a = 1 | -%>\n<%= $a %>",
    "data/common.yaml": "m::a: 5\nk: {x: 1}\n",
    "hiera.yaml": "version: 5\nhierarchy: [{name: common, path: common.yaml}]\n",
}
CALLED = """
    notice fail length keys join flatten unique sort type String Integer Sensitive Timestamp lookup regsubst split sprintf match
    versioncmp merge dig epp inline_epp m::f defined include contain tag create_resources assert_type new abs upcase min round any
    index get getvar realize Deferred return break next
"""
FUNCTIONS = CALLED.split()
BLOCKS = (
    "each",
    "map",
    "filter",
    "reduce",
    "any",
    "all",
    "with",
    "then",
    "slice",
    "group_by",
    "tree_each",
    "lest",
    "step",
    "index",
    "sort",
)
TYPES = (
    "Integer",
    "String[1]",
    "Array[Integer, 1]",
    "Hash",
    "M::T",
    "Optional[Enum['a']]",
    "Type",
    "Any",
    "Pattern[/a/]",
    "Callable",
    "Notify",
)
OPERATORS = ("+", "-", "*", "/", "%", "<<", ">>", "==", "!=", "<", ">=", "=~", "!~", "in", "and", "or")

literals = st.one_of(
    st.integers(0, 12).map(str),
    st.sampled_from(("1.5", "1.0e300", "0x1F", "017", "-3", "-9223372036854775808")),
    st.text("ab'\"${}\\é \n", max_size=6).map(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"),
    st.sampled_from(("undef", "default", "true", "false", "/a(b)/", "[]", "{}", *TYPES)),
    st.sampled_from(NAMES).map(lambda name: f"${name}"),
    st.sampled_from(("Notify['x']", "Class['m']", "$m::a", "$::a", "$facts['a']['b']", "File['/x']", "@(X)\n a ${1}\n | X\n")),
)


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    lists = st.lists(inner, max_size=3)
    return st.one_of(
        st.tuples(inner, st.sampled_from(OPERATORS), inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        lists.map(lambda items: f"[{', '.join(items)}]"),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda pairs: "{" + ", ".join(f"{k} => {v}" for k, v in pairs) + "}"),
        st.tuples(inner, lists.filter(bool)).map(lambda parts: f"({parts[0]})[{', '.join(parts[1])}]"),
        st.tuples(st.sampled_from(FUNCTIONS), lists).map(lambda parts: f"{parts[0]}({', '.join(parts[1])})"),
        st.tuples(inner, st.sampled_from(BLOCKS), st.sampled_from(("$a", "$a, $b", "*$a", "Integer $a = 1", "")), inner).map(
            lambda parts: f"({parts[0]}).{parts[1]} |{parts[2]}| {{ {parts[3]} }}"
        ),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {{ {parts[1]} => {parts[2]}, default => 1 }})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"if {parts[0]} {{ {parts[1]} }} else {{ {parts[2]} }}"),
        st.tuples(inner, inner).map(lambda parts: f"case {parts[0]} {{ {parts[1]}: {{ 1 }} default: {{ 2 }} }}"),
        inner.map(lambda part: f'"x ${{{part}}} y"'),
        inner.map(lambda part: f"(*{part})"),
        inner.map(lambda part: f"!({part})"),
    )


expressions = st.recursive(literals, _larger, max_leaves=8)
titles = st.one_of(st.sampled_from(("'x'", "'y'", "default", "$a", "['x', 'z']")), expressions)
ATTRIBUTES = ("message", "a", "b", "tag", "require", "before", "noop", "alias", "*", "zz", "ensure")
attributes = st.lists(
    st.tuples(st.sampled_from(ATTRIBUTES), st.sampled_from(("=>", "=>", "=>", "+>")), expressions).map(" ".join), max_size=3
).map(", ".join)
types = st.sampled_from(("notify", "file", "m::d", "class", "d", "nope", "Notify", "Notify['x']", "stage", "exec", "resources"))


def _statements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    blocks = st.lists(inner, max_size=3).map("\n".join)
    return st.one_of(
        st.tuples(st.sampled_from(("", "@", "@@")), types, titles, attributes).map(
            lambda parts: f"{parts[0]}{parts[1]} {{ {parts[2]}: {parts[3]} }}"
        ),
        st.tuples(types, attributes).map(lambda parts: f"{parts[0].capitalize()} {{ {parts[1]} }}"),
        st.tuples(types, expressions, attributes).map(lambda parts: f"{parts[0].capitalize()} <| {parts[1]} |> {{ {parts[2]} }}"),
        st.tuples(st.sampled_from(NAMES), expressions).map(lambda parts: f"${parts[0]} = {parts[1]}"),
        st.tuples(expressions, expressions).map(lambda parts: f"{parts[0]} -> {parts[1]}"),
        st.tuples(st.sampled_from(("class c", "define d", "function f", "node default", "node /x/", "class c inherits m")), blocks).map(
            lambda parts: f"{parts[0]}{'($a = 1)' if 'f' in parts[0][:2] else ''} {{ {parts[1]} }}"
        ),
        st.tuples(expressions, blocks).map(lambda parts: f"if {parts[0]} {{ {parts[1]} }}"),
        st.sampled_from(
            ("include m", "include c", "d { 'q': }", "f(1)", "realize Notify['x']", "type T = Array[T]", "Notify['x'] ~> Class['m']")
        ),
        expressions,
    )


manifests = st.lists(st.recursive(expressions, _statements, max_leaves=6), min_size=1, max_size=5).map("\n".join)


def outcome(manifest: str, **options: Any) -> str:
    """'catalog', or the error; anything that is neither is a fault of ours and raised."""
    try:
        made = compiled(manifest, FILES, facts={"a": {"b": 1}}, **options)
    except PuppetError as error:
        assert isinstance(error, CompileError), f"{type(error).__name__} has no node"
        assert error.message and error.where is not None
        return str(error)
    assert plainjson.dumps(made.catalog)
    return "catalog"


@pytest.mark.slow
@settings(max_examples=examples(3000), deadline=None, suppress_health_check=list(HealthCheck))
@given(manifests, st.sampled_from(("off", "warning", "error")))
@example("(*{}).lest || { 1 }", "off")
def test_any_manifest_gives_a_catalog_or_an_error(manifest: str, strict: str) -> None:
    outcome(manifest, settings={"strict": strict, "strict_variables": strict != "off"})


@pytest.mark.slow
@settings(max_examples=examples(1500), deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions)
@example("M::T")  # a type that holds itself
def test_any_expression_gives_a_value_or_an_error_with_a_place(expression: str) -> None:
    told = outcome(f"$value = {expression}\nnotify {{ 'x': message => $value }}\n")
    assert told == "catalog" or " on node node1.example.com" in told


def test_manifests_are_really_compiled_by_this() -> None:
    assert outcome("include m\nm::d { 'x': }\nnotice(m::f(1))\n") == "catalog"
    assert outcome("fail('x')").endswith("line: 1, column: 1) on node node1.example.com")
