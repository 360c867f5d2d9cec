"""A syntax tree as text: Puppet Notation, what `puppet parser dump` prints."""

from __future__ import annotations

from collections.abc import Iterable

from . import nodes as n

_FORMS = {"@": "virtual", "@@": "exported"}
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def pn(node: n.Node) -> str:
    """The node and all below it on one line, as `puppet parser dump --format pn --no-pretty` writes it."""
    return _RULES[type(node)](node)  # type: ignore[no-any-return, operator]


def _call(name: str, *parts: str) -> str:
    return f"({' '.join((name, *parts))})"


def _map(*entries: tuple[str, str | None]) -> str:
    """Entries whose value is None are left out."""
    return "{" + " ".join(f":{key} {value}" for key, value in entries if value is not None) + "}"


def _list(nodes: Iterable[n.Node]) -> str:
    return "[" + " ".join(map(pn, nodes)) + "]"


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(c) or (c if c >= " " else f"\\o{ord(c):03o}") for c in text) + '"'


def _number(value: float) -> str:
    """As Ruby writes it: `1.0e+20`."""
    text = repr(value)
    return text.replace("e", ".0e") if "e" in text and "." not in text else text


def _body(node: n.Node) -> str:
    return _list(node.statements if isinstance(node, n.Block) else (node,))


def _branch(node: n.Node) -> str | None:
    return None if isinstance(node, n.Nop) else _body(node)


def _optional(node: n.Node | None) -> str | None:
    return None if node is None else pn(node)


def _unary(node: n.Unary) -> str:
    if node.op == "-" and isinstance(node.operand, n.Integer | n.Float):
        return _number(-node.operand.value)
    return _call("unfold" if node.op == "*" else node.op, pn(node.operand))


def _if(node: n.If | n.Unless) -> str:
    name = "if" if isinstance(node, n.If) else "unless"
    return _call(name, _map(("test", pn(node.test)), ("then", _branch(node.then)), ("else", _branch(node.otherwise))))


def _parameters(parameters: Iterable[n.Parameter] | None) -> str | None:
    entries = tuple(
        (each.name, _map(("type", _optional(each.type)), ("splat", "true" if each.splat else None), ("value", _optional(each.default))))
        for each in parameters or ()
    )
    return _map(*entries) if entries else None


def _definition(kind: str, node: n.ClassDefinition | n.DefineDefinition | n.FunctionDefinition) -> str:
    parent = node.parent if isinstance(node, n.ClassDefinition) else None
    return _call(
        kind,
        _map(
            ("name", _quoted(node.name)),
            ("parent", None if parent is None else _quoted(parent)),
            ("params", _parameters(node.parameters)),
            ("body", _branch(node.body)),
            ("returns", _optional(node.returns) if isinstance(node, n.FunctionDefinition) else None),
        ),
    )


def _node(node: n.NodeDefinition) -> str:
    return _call("node", _map(("matches", _list(node.matches)), ("parent", _optional(node.parent)), ("body", _branch(node.body))))


def _lambda(node: n.Lambda) -> str:
    entries = (("params", _parameters(node.parameters)), ("returns", _optional(node.returns)), ("body", _branch(node.body)))
    return _call("lambda", _map(*entries))


def _epp(node: n.Epp) -> str:
    statements = node.body.statements if isinstance(node.body, n.Block) else ()
    return _call("lambda", _map(("params", _parameters(node.parameters)), ("body", f"[{_call('epp', *map(pn, statements))}]")))


def _function_call(node: n.Call) -> str:
    entries = (("functor", pn(node.functor)), ("args", _list(node.arguments)), ("block", _optional(node.lambda_)))
    return _call("call" if node.value_wanted else "invoke", _map(*entries))


def _method_call(node: n.MethodCall) -> str:
    functor = _call(".", pn(node.receiver), _call("qn", _quoted(node.name)))
    return _call("call-method", _map(("functor", functor), ("args", _list(node.arguments)), ("block", _optional(node.lambda_))))


def _with_form(kind: str, form: str, *entries: tuple[str, str]) -> str:
    return _call(kind, _map(*entries, ("form", _quoted(_FORMS[form]) if form else None)))


def _resource(node: n.Resource) -> str:
    return _with_form("resource", node.form, ("type", pn(node.type)), ("bodies", _list(node.bodies)))


def _collector(node: n.Collector) -> str:
    query = () if isinstance(node.query, n.Nop) else (pn(node.query),)
    entries = (
        ("type", pn(node.type)),
        ("query", _call("exported-query" if node.exported else "virtual-query", *query)),
        ("ops", _list(node.attributes) if node.attributes else None),
    )
    return _call("collect", _map(*entries))


def _heredoc(node: n.Heredoc) -> str:
    return _call("heredoc", _map(("syntax", _quoted(node.syntax) if node.syntax else None), ("text", pn(node.text))))


def _integer(node: n.Integer) -> str:
    return str(node.value) if node.radix == 10 else _call("int", _map(("radix", str(node.radix)), ("value", str(node.value))))


# One rule a construct; each takes exactly the class it stands behind.
_RULES: dict[type[n.Node], object] = {
    n.Program: lambda node: pn(node.body),
    n.Nop: lambda node: "(nop)",
    n.Integer: _integer,
    n.Float: lambda node: _number(node.value),
    n.String: lambda node: _quoted(node.value),
    n.Boolean: lambda node: str(node.value).lower(),
    n.Undef: lambda node: "nil",
    n.Default: lambda node: "(default)",
    n.Regex: lambda node: _call("regexp", _quoted(node.source)),
    n.Array: lambda node: _call("array", *map(pn, node.values)),
    n.Entry: lambda node: _call("=>", pn(node.key), pn(node.value)),
    n.Hash: lambda node: _call("hash", *map(pn, node.entries)),
    n.Name: lambda node: _call("qn", _quoted(node.value)),
    n.TypeName: lambda node: _call("qr", _quoted(node.value)),
    n.Reserved: lambda node: _call("reserved", _quoted(node.word)),
    n.Text: lambda node: _call("str", pn(node.expression)),
    n.Interpolated: lambda node: _call("concat", *map(pn, node.segments)),
    n.Heredoc: _heredoc,
    n.Variable: lambda node: _call("var", _quoted(node.name)),
    n.Parenthesized: lambda node: _call("paren", pn(node.expression)),
    n.Binary: lambda node: _call(node.op, pn(node.left), pn(node.right)),
    n.Unary: _unary,
    n.Access: lambda node: _call("access", pn(node.left), *map(pn, node.keys)),
    n.SelectorEntry: lambda node: _call("=>", pn(node.match), pn(node.value)),
    n.Selector: lambda node: _call("?", pn(node.left), _list(node.entries)),
    n.Block: lambda node: _call("block", *map(pn, node.statements)),
    n.If: _if,
    n.Unless: _if,
    n.CaseOption: lambda node: _map(("when", _list(node.values)), ("then", _body(node.then))),
    n.Case: lambda node: _call("case", pn(node.test), _list(node.options)),
    n.Lambda: _lambda,
    n.Call: _function_call,
    n.MethodCall: _method_call,
    n.Attribute: lambda node: _call(node.op, _quoted(node.name), pn(node.value)),
    n.AttributeSplat: lambda node: _call("splat-hash", pn(node.value)),
    n.ResourceBody: lambda node: _map(("title", pn(node.title)), ("ops", _list(node.attributes))),
    n.Resource: _resource,
    n.ResourceDefaults: lambda node: _with_form("resource-defaults", node.form, ("type", pn(node.type)), ("ops", _list(node.attributes))),
    n.ResourceOverride: lambda node: _with_form(
        "resource-override", node.form, ("resources", pn(node.resources)), ("ops", _list(node.attributes))
    ),
    n.Collector: _collector,
    n.ClassDefinition: lambda node: _definition("class", node),
    n.DefineDefinition: lambda node: _definition("define", node),
    n.NodeDefinition: _node,
    n.FunctionDefinition: lambda node: _definition("function", node),
    n.PlanDefinition: lambda node: _definition("plan", node),
    n.TypeAlias: lambda node: _call("type-alias", _quoted(node.name), pn(node.type)),
    n.RenderText: lambda node: _call("render-s", _quoted(node.value)),
    n.RenderExpression: lambda node: _call("render", pn(node.expression)),
    n.Epp: _epp,
}
