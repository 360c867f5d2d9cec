"""A syntax tree as text in Puppet Notation, which `puppet parser dump` prints."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from . import nodes as n

_FORMS = {"@": "virtual", "@@": "exported"}
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


@dataclass(frozen=True, slots=True)
class NotationCall:
    """`(name element …)`"""

    name: str
    elements: tuple[Tree, ...] = ()


@dataclass(frozen=True, slots=True)
class NotationMap:
    """`{:key value …}`"""

    entries: tuple[tuple[str, Tree], ...]


@dataclass(frozen=True, slots=True)
class NotationNil:
    """`nil`; None, in contrast, means that an element is absent."""


Tree = NotationCall | NotationMap | NotationNil | list["Tree"] | str | int | float


def notation_of(node: n.SyntaxNode, *, pretty: bool = False) -> str:
    """Return the node and all below it as `puppet parser dump --format pn` writes it: on one line, or on many with `pretty`."""
    return _as_text(tree(node), "" if pretty else None)


def as_data(node: n.SyntaxNode) -> Any:
    """Return the node as plain data, as `puppet parser dump --format json` writes it: `{"^": [call]}`, `{"#": [key, value]}`."""
    return _data(tree(node))


def tree(node: n.SyntaxNode) -> Tree:
    """Return the notation's own tree of a node."""
    return _RULES[type(node)](node)


def _as_text(item: Tree, indent: str | None) -> str:
    inner = None if indent is None else indent + "  "
    gap = " " if inner is None else f"\n{inner}"
    match item:
        case NotationCall(name, elements):
            return "(" + gap.join([name, *(_as_text(element, inner) for element in elements)]) + ")"
        case NotationMap(entries):
            written = [f":{key} {_as_text(value, inner)}" for key, value in entries]
            return "{" + ("" if inner is None or not written else gap) + gap.join(written) + "}"
        case list():
            written = [_as_text(element, inner) for element in item]
            return "[" + ("" if inner is None or not written else gap) + gap.join(written) + "]"
        case NotationNil():
            return "nil"
        case bool():
            return str(item).lower()
        case float():
            return _number(item)
        case str():
            return _quoted(item)
    return str(item)


def _data(item: Tree) -> Any:
    match item:
        case NotationCall(name, elements):
            return {"^": [name, *map(_data, elements)]}
        case NotationMap(entries):
            return {"#": [part for key, value in entries for part in (key, _data(value))]}
        case list():
            return [_data(element) for element in item]
        case NotationNil():
            return None
    return item


def _call(name: str, *parts: Tree) -> NotationCall:
    return NotationCall(name, parts)


def _map(*entries: tuple[str, Tree | None]) -> NotationMap:
    """Return a map without the entries whose value is None."""
    return NotationMap(tuple((key, value) for key, value in entries if value is not None))


def _list(nodes: Iterable[n.SyntaxNode]) -> list[Tree]:
    return [tree(node) for node in nodes]


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (c if c >= " " else f"\\o{ord(c):03o}") for c in text) + '"'


def _number(value: float) -> str:
    """Return a number as Ruby writes it: `1.0e+20`."""
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _body(node: n.SyntaxNode) -> Tree:
    return _list(node.statements if isinstance(node, n.BlockExpression) else (node,))


def _branch(node: n.SyntaxNode) -> Tree | None:
    return None if isinstance(node, n.Nop) else _body(node)


def _optional(node: n.SyntaxNode | None) -> Tree | None:
    return None if node is None else tree(node)


def _unary(node: n.UnaryOperation) -> Tree:
    if node.op == "-" and isinstance(node.operand, n.IntegerLiteral | n.FloatLiteral):
        return -node.operand.value
    return _call("unfold" if node.op == "*" else node.op, tree(node.operand))


def _if(node: n.IfExpression | n.UnlessExpression) -> Tree:
    name = "if" if isinstance(node, n.IfExpression) else "unless"
    return _call(name, _map(("test", tree(node.test)), ("then", _branch(node.then)), ("else", _branch(node.otherwise))))


def _parameters(parameters: Iterable[n.ParameterDeclaration] | None) -> Tree | None:
    entries = tuple(
        (
            parameter.name,
            _map(
                ("type", _optional(parameter.type)), ("splat", True if parameter.splat else None), ("value", _optional(parameter.default))
            ),
        )
        for parameter in parameters or ()
    )
    return _map(*entries) if entries else None


def _definition(kind: str, node: n.ClassDefinition | n.DefineDefinition | n.FunctionDefinition) -> Tree:
    parent = node.parent if isinstance(node, n.ClassDefinition) else None
    return _call(
        kind,
        _map(
            ("name", node.name),
            ("parent", None if parent is None else parent),
            ("params", _parameters(node.parameters)),
            ("body", _branch(node.body)),
            ("returns", _optional(node.returns) if isinstance(node, n.FunctionDefinition) else None),
        ),
    )


def _node(node: n.NodeDefinition) -> Tree:
    return _call("node", _map(("matches", _list(node.matches)), ("parent", _optional(node.parent)), ("body", _branch(node.body))))


def _lambda(node: n.LambdaExpression) -> Tree:
    entries = (("params", _parameters(node.parameters)), ("returns", _optional(node.returns)), ("body", _branch(node.body)))
    return _call("lambda", _map(*entries))


def _epp(node: n.EppExpression) -> Tree:
    statements = node.body.statements if isinstance(node.body, n.BlockExpression) else ()
    return _call("lambda", _map(("params", _parameters(node.parameters)), ("body", [_call("epp", *map(tree, statements))])))


def _function_call(node: n.FunctionCall) -> Tree:
    entries = (("functor", tree(node.functor)), ("args", _list(node.arguments)), ("block", _optional(node.lambda_)))
    return _call("call" if node.value_wanted else "invoke", _map(*entries))


def _method_call(node: n.MethodCall) -> Tree:
    functor = _call(".", tree(node.receiver), _call("qn", node.name))
    return _call("call-method", _map(("functor", functor), ("args", _list(node.arguments)), ("block", _optional(node.lambda_))))


def _with_form(kind: str, form: str, *entries: tuple[str, Tree]) -> Tree:
    return _call(kind, _map(*entries, ("form", _FORMS[form] if form else None)))


def _resource(node: n.ResourceExpression) -> Tree:
    return _with_form("resource", node.form, ("type", tree(node.type)), ("bodies", _list(node.bodies)))


def _collector(node: n.CollectorExpression) -> Tree:
    query = () if isinstance(node.query, n.Nop) else (tree(node.query),)
    entries = (
        ("type", tree(node.type)),
        ("query", _call("exported-query" if node.exported else "virtual-query", *query)),
        ("ops", _list(node.attributes) if node.attributes else None),
    )
    return _call("collect", _map(*entries))


def _heredoc(node: n.HeredocExpression) -> Tree:
    return _call("heredoc", _map(("syntax", node.syntax if node.syntax else None), ("text", tree(node.text))))


def _integer(node: n.IntegerLiteral) -> Tree:
    return node.value if node.radix == 10 else _call("int", _map(("radix", node.radix), ("value", node.value)))


# One rule a construct; each takes exactly the class it stands behind.
_RULES: dict[type[n.SyntaxNode], Callable[[Any], Tree]] = {
    n.Program: lambda node: tree(node.body),
    n.Nop: lambda node: _call("nop"),
    n.IntegerLiteral: _integer,
    n.FloatLiteral: lambda node: node.value,
    n.StringLiteral: lambda node: node.value,
    n.BooleanLiteral: lambda node: node.value,
    n.UndefLiteral: lambda node: NotationNil(),
    n.DefaultLiteral: lambda node: _call("default"),
    n.RegexpLiteral: lambda node: _call("regexp", node.source),
    n.ArrayLiteral: lambda node: _call("array", *map(tree, node.values)),
    n.HashEntry: lambda node: _call("=>", tree(node.key), tree(node.value)),
    n.HashLiteral: lambda node: _call("hash", *map(tree, node.entries)),
    n.QualifiedName: lambda node: _call("qn", node.value),
    n.QualifiedReference: lambda node: _call("qr", node.value),
    n.ReservedWord: lambda node: _call("reserved", node.word),
    n.TextExpression: lambda node: _call("str", tree(node.expression)),
    n.ConcatenatedString: lambda node: _call("concat", *map(tree, node.segments)),
    n.HeredocExpression: _heredoc,
    n.VariableExpression: lambda node: _call("var", node.name),
    n.ParenthesizedExpression: lambda node: _call("paren", tree(node.expression)),
    n.BinaryOperation: lambda node: _call(node.op, tree(node.left), tree(node.right)),
    n.UnaryOperation: _unary,
    n.AccessExpression: lambda node: _call("access", tree(node.left), *map(tree, node.keys)),
    n.SelectorEntry: lambda node: _call("=>", tree(node.match), tree(node.value)),
    n.SelectorExpression: lambda node: _call("?", tree(node.left), _list(node.entries)),
    n.BlockExpression: lambda node: _call("block", *map(tree, node.statements)),
    n.IfExpression: _if,
    n.UnlessExpression: _if,
    n.CaseOption: lambda node: _map(("when", _list(node.values)), ("then", _body(node.then))),
    n.CaseExpression: lambda node: _call("case", tree(node.test), _list(node.options)),
    n.LambdaExpression: _lambda,
    n.FunctionCall: _function_call,
    n.MethodCall: _method_call,
    n.AttributeOperation: lambda node: _call(node.op, node.name, tree(node.value)),
    n.AttributeSplat: lambda node: _call("splat-hash", tree(node.value)),
    n.ResourceBody: lambda node: _map(("title", tree(node.title)), ("ops", _list(node.attributes))),
    n.ResourceExpression: _resource,
    n.ResourceDefaultsExpression: lambda node: _with_form(
        "resource-defaults", node.form, ("type", tree(node.type)), ("ops", _list(node.attributes))
    ),
    n.ResourceOverrideExpression: lambda node: _with_form(
        "resource-override", node.form, ("resources", tree(node.resources)), ("ops", _list(node.attributes))
    ),
    n.CollectorExpression: _collector,
    n.ClassDefinition: lambda node: _definition("class", node),
    n.DefineDefinition: lambda node: _definition("define", node),
    n.NodeDefinition: _node,
    n.FunctionDefinition: lambda node: _definition("function", node),
    n.PlanDefinition: lambda node: _definition("plan", node),
    n.TypeAliasDefinition: lambda node: _call("type-alias", node.name, tree(node.type)),
    n.RenderText: lambda node: _call("render-s", node.value),
    n.RenderExpression: lambda node: _call("render", tree(node.expression)),
    n.EppExpression: _epp,
}
