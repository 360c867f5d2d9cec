"""Trees: each case is a manifest and its tree in Puppet Notation, as the reference's `puppet parser dump` gives it."""

# ruff: noqa: E501 - a case is one line

from __future__ import annotations

import pytest

from language.syntax import nodes as n
from language.syntax.dump import notation_of
from language.syntax.parser import parse
from language.syntax.source import Source
from shared.errors import ParseError

OPERATORS = [
    ("1 + 2 * 3", "(+ 1 (* 2 3))"),
    ("1 - 2 - 3", "(- (- 1 2) 3)"),
    ("1 < 2 == true", "(< 1 (== 2 true))"),
    ("$a in $b =~ $c", '(=~ (in (var "a") (var "b")) (var "c"))'),
    ("!1 in [false]", "(in (! 1) (array false))"),
    ("-5.each", '(- (call-method {:functor (. 5 (qn "each")) :args []}))'),
    ("- 1 + 2", "(+ -1 2)"),
    ("2 ** 3", "(* 2 (unfold 3))"),
    ("1 << 2 + 3", "(<< 1 (+ 2 3))"),
    ("$a and $b or $c and $d", '(or (and (var "a") (var "b")) (and (var "c") (var "d")))'),
    ("true and 1 ? { 1 => false }", "(and true (? 1 [(=> 1 false)]))"),
    ("1 + 1 ? { 2 => a }", '(? (+ 1 1) [(=> 2 (qn "a"))])'),
    ("1 ? { 1 => 2 } + 3", "(+ (? 1 [(=> 1 2)]) 3)"),
    ("1 ? 2 => 3 + 4", "(? 1 [(=> 2 (+ 3 4))])"),
    ("1 ? { 1 => 2 } ? { 2 => 3, }", "(? (? 1 [(=> 1 2)]) [(=> 2 3)])"),
    ("!$a.b[1]", '(! (access (call-method {:functor (. (var "a") (qn "b")) :args []}) 1))'),
    ("*$a", '(unfold (var "a"))'),
    ("(1 + 2) * 3", "(* (paren (+ 1 2)) 3)"),
    ("$a % 2 != 0", '(!= (% (var "a") 2) 0)'),
]

ASSIGNMENTS = [
    ("$a = $b = 3", '(= (var "a") (= (var "b") 3))'),
    ("[$a, [$b]] = $c", '(= (array (var "a") (array (var "b"))) (var "c"))'),
    ("$a = A -> B", '(= (var "a") (-> (qr "A") (qr "B")))'),
    ("$a += 1", '(+= (var "a") 1)'),
    ("$a -= 1", '(-= (var "a") 1)'),
]

LITERALS = [
    ("[1, 2,]", "(array 1 2)"),
    ("[a => 1, b => 2, 3, c => 4]", '(array (hash (=> (qn "a") 1) (=> (qn "b") 2)) 3 (hash (=> (qn "c") 4)))'),
    ("[type, function => 1]", '(array "type" (hash (=> "function" 1)))'),
    ("{'a' => 1, type => 2,}", '(hash (=> "a" 1) (=> "type" 2))'),
    ("[]", "(array)"),
    ("{}", "(hash)"),
    ("undef", "nil"),
    ("default", "(default)"),
    ("017", "(int {:radix 8 :value 15})"),
    ("0x1F", "(int {:radix 16 :value 31})"),
    ("1.5e3", "1500.0"),
    ("1e20", "1.0e+20"),
    ("/a\\/b/", '(regexp "a/b")'),
    ('"x"', '"x"'),
    ('"a ${b} $c"', '(concat "a " (str (var "b")) " " (str (var "c")))'),
    ('"${x.y[1]}"', '(concat (str (access (call-method {:functor (. (var "x") (qn "y")) :args []}) 1)))'),
    ('"${upcase(x)}"', '(concat (str (call {:functor (qn "upcase") :args [(qn "x")]})))'),
    ("a-b", '"a-b"'),
    ("Foo::Bar", '(qr "Foo::Bar")'),
    ("::foo", '(qn "::foo")'),
    ("@(A:json/t)\n1\\t\n| A\n", '(heredoc {:syntax "json" :text "1\\t\\n"})'),
    ('@("A")\n${x}\n| A\n', '(heredoc {:text (concat (str (var "x")) "\\n")})'),
]

ACCESSES_AND_CALLS = [
    ("$a[1][2, 3]", '(access (access (var "a") 1) 2 3)'),
    ("a [1]", '(block (qn "a") (array 1))'),
    ("foo()", '(invoke {:functor (qn "foo") :args []})'),
    ("foo(1, 2,)", '(invoke {:functor (qn "foo") :args [1 2]})'),
    ("foo(a => 1, b => 2)", '(invoke {:functor (qn "foo") :args [(hash (=> (qn "a") 1) (=> (qn "b") 2))]})'),
    ("foo(1)[2].bar(3)", '(call-method {:functor (. (access (call {:functor (qn "foo") :args [1]}) 2) (qn "bar")) :args [3]})'),
    ('Integer("3")', '(invoke {:functor (qr "Integer") :args ["3"]})'),
    ("type(1)", '(invoke {:functor (qn "type") :args [1]})'),
    ("$a.type", '(call-method {:functor (. (var "a") (qn "type")) :args []})'),
    (
        "$a.each |$x| { $x }",
        '(call-method {:functor (. (var "a") (qn "each")) :args [] :block (lambda {:params {:x {}} :body [(var "x")]})})',
    ),
    (
        "foo(1) |Integer $a, *$b| >> Array[Integer] { 1 }",
        '(invoke {:functor (qn "foo") :args [1] :block (lambda {:params {:a {:type (qr "Integer")} :b {:splat true}} :returns (access (qr "Array") (qr "Integer")) :body [1]})})',
    ),
    ("map($a) |$k, $v = 1| { }", '(invoke {:functor (qn "map") :args [(var "a")] :block (lambda {:params {:k {} :v {:value 1}}})})'),
    (
        "$x.a.b(1) |$y| { $y.c }",
        '(call-method {:functor (. (call-method {:functor (. (var "x") (qn "a")) :args []}) (qn "b")) :args [1] :block (lambda {:params {:y {}} :body [(call-method {:functor (. (var "y") (qn "c")) :args []})]})})',
    ),
    ("foo\n(1)", '(block (qn "foo") (paren 1))'),
]

STATEMENTS = [
    ("include a, b", '(invoke {:functor (qn "include") :args [(qn "a") (qn "b")]})'),
    ('notice "x"', '(invoke {:functor (qn "notice") :args ["x"]})'),
    (
        "include a include b",
        '(block (invoke {:functor (qn "include") :args [(qn "a")]}) (invoke {:functor (qn "include") :args [(qn "b")]}))',
    ),
    ('fail("x")', '(invoke {:functor (qn "fail") :args ["x"]})'),
    ("$a = 1; $b = 2", '(block (= (var "a") 1) (= (var "b") 2))'),
    ("next", '(qn "next")'),
    ("return 1", '(invoke {:functor (qn "return") :args [1]})'),
    ("foo(1) bar(2)", '(block (invoke {:functor (qn "foo") :args [1]}) (invoke {:functor (qn "bar") :args [2]}))'),
    ("tag a b", '(block (invoke {:functor (qn "tag") :args [(qn "a")]}) (qn "b"))'),
    ("if $a { 1 } elsif $b { 2 } else { 3 }", '(if {:test (var "a") :then [1] :else [(if {:test (var "b") :then [2] :else [3]})]})'),
    ("if $a { }", '(if {:test (var "a")})'),
    ("unless $a { 1 2 } else { 3 }", '(unless {:test (var "a") :then [1 2] :else [3]})'),
    ("case $a { 1, 2: { x } default: { } }", '(case (var "a") [{:when [1 2] :then [(qn "x")]} {:when [(default)] :then [(nop)]}])'),
    ("case $a { *$b: { 1 } }", '(case (var "a") [{:when [(unfold (var "b"))] :then [1]}])'),
]

RESOURCES = [
    (
        "file { '/a': ensure => file, mode => '0644' }",
        '(resource {:type (qn "file") :bodies [{:title "/a" :ops [(=> "ensure" (qn "file")) (=> "mode" "0644")]}]})',
    ),
    (
        "file { '/a': ; '/b': mode => '0600', ; }",
        '(resource {:type (qn "file") :bodies [{:title "/a" :ops []} {:title "/b" :ops [(=> "mode" "0600")]}]})',
    ),
    (
        "file { default: mode => '0644'; ['/a', '/b']: * => $h }",
        '(resource {:type (qn "file") :bodies [{:title (default) :ops [(=> "mode" "0644")]} {:title (array "/a" "/b") :ops [(splat-hash (var "h"))]}]})',
    ),
    ("class { 'a': b => 1 }", '(resource {:type (qn "class") :bodies [{:title "a" :ops [(=> "b" 1)]}]})'),
    ("@user { 'a': }", '(resource {:type (qn "user") :bodies [{:title "a" :ops []}] :form "virtual"})'),
    ("@@user { 'a': }", '(resource {:type (qn "user") :bodies [{:title "a" :ops []}] :form "exported"})'),
    ("File { mode => '0644' }", '(resource-defaults {:type (qr "File") :ops [(=> "mode" "0644")]})'),
    ("File['/a'] { mode +> '0644' }", '(resource-override {:resources (access (qr "File") "/a") :ops [(+> "mode" "0644")]})'),
    ("Notify { 'a': }", '(resource {:type (qr "Notify") :bodies [{:title "a" :ops []}]})'),
    ("Resource[notify] { 'a': }", '(resource {:type (access (qr "Resource") (qn "notify")) :bodies [{:title "a" :ops []}]})'),
    (
        "foo::bar { 'x': if => 1, class => 2, type => 3 }",
        '(resource {:type (qn "foo::bar") :bodies [{:title "x" :ops [(=> "if" 1) (=> "class" 2) (=> "type" 3)]}]})',
    ),
    ("notify { }", '(block (qn "notify") (hash))'),
    ("File <| |>", '(collect {:type (qr "File") :query (virtual-query)})'),
    (
        "File <| mode == '0644' and (tag != x) |> { mode => '0600' }",
        '(collect {:type (qr "File") :query (virtual-query (and (== (qn "mode") "0644") (paren (!= (qn "tag") (qn "x"))))) :ops [(=> "mode" "0600")]})',
    ),
    ("File <<| title == a |>>", '(collect {:type (qr "File") :query (exported-query (== (qn "title") (qn "a")))})'),
    ("A -> B ~> C <- D <~ E", '(<~ (<- (~> (-> (qr "A") (qr "B")) (qr "C")) (qr "D")) (qr "E"))'),
    (
        "File['/a'] -> notify { 'x': } -> File <| |>",
        '(-> (-> (access (qr "File") "/a") (resource {:type (qn "notify") :bodies [{:title "x" :ops []}]})) (collect {:type (qr "File") :query (virtual-query)}))',
    ),
    ("$x { 'a': }", '(resource {:type (var "x") :bodies [{:title "a" :ops []}]})'),
    ("notify { message => 'x' }", '(block (qn "notify") (hash (=> "message" "x")))'),
    ("include { a => 1 }", '(invoke {:functor (qn "include") :args [(hash (=> "a" 1))]})'),
]

DEFINITIONS = [
    ("class a { }", '(class {:name "a"})'),
    (
        "class a::b($x, Integer $y = 1) inherits c { include d }",
        '(class {:name "a::b" :parent "c" :params {:x {} :y {:type (qr "Integer") :value 1}} :body [(invoke {:functor (qn "include") :args [(qn "d")]})]})',
    ),
    (
        "class a { class b { class c { } } define d { } }",
        '(class {:name "a" :body [(class {:name "a::b" :body [(class {:name "a::b::c"})]}) (define {:name "a::d"})]})',
    ),
    (
        'define a::b(String[1] $x = "y") { notice($x) }',
        '(define {:name "a::b" :params {:x {:type (access (qr "String") 1) :value "y"}} :body [(invoke {:functor (qn "notice") :args [(var "x")]})]})',
    ),
    ('node a, b.c.d, "e", /f/, default { }', '(node {:matches ["a" "b.c.d" "e" (regexp "f") (default)]})'),
    ("node a inherits b { include c }", '(node {:matches ["a"] :parent "b" :body [(invoke {:functor (qn "include") :args [(qn "c")]})]})'),
    (
        "function a::b($x, Integer *$y) >> String { $x }",
        '(function {:name "a::b" :params {:x {} :y {:type (qr "Integer") :splat true}} :body [(var "x")] :returns (qr "String")})',
    ),
    ("type A = Integer[0, 9]", '(type-alias "A" (access (qr "Integer") 0 9))'),
    ("type A = { attributes => { } }", '(type-alias "A" (access (qr "Object") (hash (=> (qn "attributes") (hash)))))'),
    ("type A = B { a => 1 }", '(type-alias "A" (access (qr "Object") (hash (=> (qn "a") 1) (=> (qn "parent") (qr "B")))))'),
    ("type A = [B]", '(type-alias "A" (array (qr "B")))'),
    ("class a($x = 1,) { $y = 1 }", '(class {:name "a" :params {:x {:value 1}} :body [(= (var "y") 1)]})'),
]

TEMPLATES = [
    ("a <%= $b %> c", '(lambda {:body [(epp (render-s "a ") (render (var "b")) (render-s " c"))]})'),
    (
        "<%- | $a, Integer $b = 1 | -%>\n<% if $a { -%>x<% } %>",
        '(lambda {:params {:a {} :b {:type (qr "Integer") :value 1}} :body [(epp (if {:test (var "a") :then [(render-s "x")]}))]})',
    ),
    ("<%= { a => 1 }.b %>", '(lambda {:body [(epp (render (call-method {:functor (. (hash (=> (qn "a") 1)) (qn "b")) :args []})))]})'),
    ("<%= { 1 2 } %>", "(lambda {:body [(epp (render (block 1 2)))]})"),
    ("", "(lambda {:body [(epp)]})"),
]


@pytest.mark.parametrize(("text", "tree"), OPERATORS)
def test_operators(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text)).body) == tree


@pytest.mark.parametrize(("text", "tree"), ASSIGNMENTS)
def test_assignments(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text)).body) == tree


@pytest.mark.parametrize(("text", "tree"), LITERALS)
def test_literals(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text)).body) == tree


@pytest.mark.parametrize(("text", "tree"), ACCESSES_AND_CALLS)
def test_accesses_and_calls(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text)).body) == tree


@pytest.mark.parametrize(("text", "tree"), STATEMENTS)
def test_statements(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text)).body) == tree


@pytest.mark.parametrize(("text", "tree"), RESOURCES)
def test_resources(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text)).body) == tree


@pytest.mark.parametrize(("text", "tree"), DEFINITIONS)
def test_definitions(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text)).body) == tree


@pytest.mark.parametrize(("text", "tree"), TEMPLATES)
def test_templates(text: str, tree: str) -> None:
    assert notation_of(parse(Source(text), epp=True).body) == tree


# Where the reference says each construct stands: the construct is the first of its class in the text.
@pytest.mark.parametrize(
    ("text", "kind", "line", "column"),
    [
        ("$a =\n  1 + 2", n.BinaryOperation, 1, 4),
        ("  ($a)", n.ParenthesizedExpression, 1, 3),
        ("$abc[1]", n.AccessExpression, 1, 1),
        ("$abc.foo(1)", n.MethodCall, 1, 9),
        ("$abc.foo", n.MethodCall, 1, 5),
        ("$abc.foo |$x| { }", n.LambdaExpression, 1, 10),
        ("f({a => 1})", n.HashEntry, 1, 6),
        ("f(a => 1)", n.HashLiteral, 1, 5),
        ("$a ? { 1 => 2 }", n.SelectorExpression, 1, 1),
        ("$a ? { 1 => 2 }", n.SelectorEntry, 1, 10),
        ("case 1 {\n 1: { } }", n.CaseOption, 2, 3),
        ("@user { 'a': }", n.ResourceExpression, 1, 1),
        ("@user { 'a': }", n.ResourceBody, 1, 1),
        ("user { 'a': b => 1 }", n.AttributeOperation, 1, 13),
        ("User <| |> { a => 1 }", n.CollectorExpression, 1, 1),
        ("class a(Integer $b) { }", n.ParameterDeclaration, 1, 17),
        ("type A = Integer[1]", n.TypeAliasDefinition, 1, 6),
        ('f("a ${b}")', n.ConcatenatedString, 1, 3),
        ('f("a ${b}")', n.VariableExpression, 1, 8),
        ('f(@("A"))\n  x ${b}\n  | A\n', n.VariableExpression, 2, 7),
        ("if true {\n  1 2 }", n.BlockExpression, 1, 9),
    ],
)
def test_a_construct_stands_where_the_reference_says(text: str, kind: type[n.SyntaxNode], line: int, column: int) -> None:
    source = Source(text)
    found = next(node for node in walked(parse(source).body) if type(node) is kind)
    assert (source.line(found.at), source.column(found.at)) == (line, column)


def walked(node: object) -> list[n.SyntaxNode]:
    """The node and all below it, from the outside in."""
    if isinstance(node, tuple):
        return [each for item in node for each in walked(item)]
    if not isinstance(node, n.SyntaxNode):
        return []
    names = [name for base in type(node).__mro__ for name in getattr(base, "__slots__", ())]
    return [node, *(each for name in names for each in walked(getattr(node, name)))]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("$a = [1, 2)", "Syntax error at ')' (line: 1, column: 11)"),
        ("file { 'a':\n  ensure => file\n  mode => 1 }", "Syntax error at 'mode' (line: 3, column: 3)"),
        ("file { 'a': 'ensure' => file }", "Syntax error at 'ensure' (line: 1, column: 13)"),
        ("file { 'a': ensure = file }", "Syntax error at '=' (line: 1, column: 20)"),
        ("$a = {\n 'a' => 1\n 'b' => 2 }", "Syntax error at 'b' (line: 3, column: 2)"),
        ("if true notice(1)", "Syntax error at 'notice' (line: 1, column: 9)"),
        ("unless 1 { } elsif 2 { }", "Syntax error at 'elsif' (line: 1, column: 14)"),
        ("case 1 { { a } }", "Syntax error at '}' (line: 1, column: 14)"),
        ("[1].each { notice(1) }", "Syntax error at '}' (line: 1, column: 22)"),
        ("$f = |$x| { $x }", "Syntax error at '|' (line: 1, column: 6)"),
        ("class c inherits d ($a) { }", "Syntax error at '(' (line: 1, column: 20)"),
        ("class { }", "Syntax error at '}' (line: 1, column: 9)"),
        ("class class { }", "'class' keyword not allowed at this location (line: 1, column: 7)"),
        ("class 'a' { }", "A quoted string is not valid as a name here (line: 1, column: 7)"),
        ('"x ${} y"', "Syntax error at ' y' (line: 1, column: 7)"),
        ("$a = 1;", "Syntax error at end of input"),
        (
            "sprintf '%s', 'x'",
            "attempt to pass argument list to the function 'sprintf' which cannot be called without parentheses (line: 1, column: 13)",
        ),
        ("1, 2]", "illegal comma separated argument list (line: 1, column: 2)"),
        ("false { }", "Expression is not valid as a resource, resource-default, or resource-override (line: 1, column: 1)"),
        ("@1", "Virtual (@) can only be applied to a Resource Expression (line: 1, column: 1)"),
        ("Enum['a', type]", "Syntax error at ']' (line: 1, column: 15)"),
        ("notify { else 'a': }", "Syntax error at 'a' (line: 1, column: 15)"),
        ("f() 'oops", "Unclosed quote after \"'\" followed by 'oops...' (line: 1, column: 6)"),
        ("f( ] 'oops", "Syntax error at ']' (line: 1, column: 4)"),
        ("\ufefff()", "Illegal UTF-8 Byte Order mark at beginning of input: [EF BB BF] - remove these from the puppet source"),
        ("$a = 1e400", "The number 1e400 is too large for a Float (line: 1, column: 6)"),
    ],
)
def test_a_syntax_error_names_the_first_token_that_does_not_fit(text: str, error: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(Source(text))
    assert str(caught.value) == error


def test_an_unclosed_brace_is_named_in_the_hint() -> None:
    with pytest.raises(ParseError) as caught:
        parse(Source("class c {\n  if true {\n    f()\n}\n", "a.pp"))
    assert str(caught.value) == "Syntax error at end of input (file: a.pp)"
    assert caught.value.hint == "The '{' at line 1, column 9 is never closed."


@pytest.mark.parametrize(
    "opening", ["(", "[", "{1=>", "-", "!", "f(", "if true { ", "case 1 { 1: { ", "$a.each |$x| { ", "class a { ", '"${', "@", "$a = "]
)
def test_deep_nesting_is_an_error_with_a_place(opening: str) -> None:
    with pytest.raises(ParseError, match=r"nested too deeply|Nested too deeply") as caught:
        parse(Source(opening * 2000))
    assert caught.value.where is not None
    assert caught.value.where.line == 1


def test_long_chains_are_not_deep() -> None:
    assert isinstance(parse(Source(" + ".join(["1"] * 3000))).body, n.BinaryOperation)


def test_definitions_are_collected_from_everywhere() -> None:
    program = parse(Source("class a { class b { } } define c { } type D = Integer node e { }"))
    assert [type(each).__name__ for each in program.definitions] == [
        "ClassDefinition",
        "ClassDefinition",
        "DefineDefinition",
        "TypeAliasDefinition",
        "NodeDefinition",
    ]


def test_plans_are_parsed_when_tasks_are_on() -> None:
    assert notation_of(parse(Source("plan a::b($x) { }"), tasks=True).body) == '(plan {:name "a::b" :params {:x {}}})'
