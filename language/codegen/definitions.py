"""Classes, defines, nodes, functions, aliases and templates: each becomes a Python function; `headers` make them known."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ..syntax import nodes as n
from .calls import body_function, catch_returns, function_of_scope, misplaced_parameter, returns_from_lambda, signature
from .frames import Frame, assigned_names, reads_scope, uses_matches
from .static_types import illegal_part
from .writer import STORE, Writer, constant_of, load


def definition(writer: Writer, node: n.SyntaxNode) -> ast.expr:
    """Write nothing where a definition stands: it is registered when its file is loaded."""
    return writer.at(node, constant_of(None))


def definition_effect(writer: Writer, node: n.SyntaxNode) -> None:
    return None


def body(writer: Writer, node: n.SyntaxNode) -> None:
    """Write the function `_body` of a definition or of top-level code, and the signature of a function."""
    with writer.within(Frame("module", body=writer.module)):
        if isinstance(node, n.ClassDefinition):
            function = _scoped_function(writer, f"class {node.name}", "class", node.parameters, node.body, node)
        elif isinstance(node, n.DefineDefinition):
            function = _scoped_function(writer, f"define {node.name}", "define", node.parameters, node.body, node)
        elif isinstance(node, n.NodeDefinition):
            function = _scoped_function(writer, f"node {_matches_text(node)}", "node", (), node.body, node)
        elif isinstance(node, n.FunctionDefinition):
            function = _function(writer, node)
        elif isinstance(node, n.TypeAliasDefinition):
            function = _alias(writer, node)
        elif isinstance(node, n.EppExpression):
            function = _template(writer, node)
        else:
            function = _scoped_function(writer, "main", "main", (), node, node)
        _assign(writer, "_body", function, node)


def parameters(writer: Writer, node: n.SyntaxNode) -> None:
    """Write the parts of parameters that the headers do not contain: `_types` and `_defaults`, functions of a scope by name."""
    assert isinstance(node, n.ClassDefinition | n.DefineDefinition | n.EppExpression)
    types: dict[str, ast.expr] = {}
    defaults: dict[str, ast.expr] = {}
    for parameter in node.parameters or ():
        if parameter.type is not None:
            types[parameter.name] = _thunk(writer, parameter.type, f"type of ${parameter.name}")
        if parameter.default is not None:
            defaults[parameter.name] = _thunk(writer, parameter.default, f"default of ${parameter.name}")
    with writer.within(Frame("module", body=writer.module)):
        for name, thunks in (("_types", types), ("_defaults", defaults)):
            keys: list[ast.expr | None] = [constant_of(parameter_name) for parameter_name in thunks]
            _assign(writer, name, ast.Dict(keys, list(thunks.values())), node)


def _assign(writer: Writer, name: str, value: ast.expr, node: n.SyntaxNode) -> None:
    writer.emit(ast.Assign([ast.Name(name, STORE)], value), node)


def _scoped_function(
    writer: Writer, name: str, kind: str, parameters: Sequence[n.ParameterDeclaration], body: n.SyntaxNode, node: n.SyntaxNode
) -> ast.expr:
    """Return the function of a class, define, node or manifest: the scope, then its parameters' values."""
    frame = Frame(kind)
    frame.known = {parameter.name for parameter in parameters}
    if uses_matches(writer.source.text, body):
        frame.matches = "m0"
    with writer.within(frame):
        if frame.matches is not None:
            writer.emit(ast.Assign([ast.Name(frame.matches, STORE)], writer.scope_call("enter_matches")), node)
        writer.effect(body)
        if returns_from_lambda(writer.source.text, body) and kind not in ("main", "node"):
            frame.body[:] = catch_returns(writer, list(frame.body), node)
    names = ["scope", *[frame.python_name(parameter.name) for parameter in parameters]]
    function = writer.function(name, names, frame, node)
    writer.module.append(function)
    return writer.at(node, load(name))


def _thunk(writer: Writer, node: n.SyntaxNode, name: str) -> ast.expr:
    """Return a function of a scope that gives the value of `node`."""
    frame = Frame("default")
    if uses_matches(writer.source.text, node):
        frame.matches = "m0"
    with writer.within(frame):
        if frame.matches is not None:
            writer.emit(ast.Assign([ast.Name(frame.matches, STORE)], writer.runtime_call("_MatchVariables", constant_of(None))), node)
        value = writer.value(node)
        writer.emit(ast.Return(value), node)
    function = writer.function(writer.new_name(f"{name} "), ["scope"], frame, node)
    writer.module.append(function)
    return writer.at(node, load(function.name))


def _matches_text(node: n.NodeDefinition) -> str:
    labels = [
        f"/{match.source}/" if isinstance(match, n.RegexpLiteral) else str(getattr(match, "value", "default")) for match in node.matches
    ]
    return "".join(c if c.isprintable() else "?" for c in ", ".join(labels))


def _function(writer: Writer, node: n.FunctionDefinition) -> ast.expr:
    parts = [node.body, *[parameter.default for parameter in node.parameters]]
    scoped = reads_scope(*parts)
    frame = Frame("function", "scope", scoped, checks_result=node.returns is not None)
    frame.known = {parameter.name for parameter in node.parameters}
    frame.seen = set(frame.known)
    frame.locals = assigned_names(node.body) - frame.known
    if uses_matches(writer.source.text, *parts):
        frame.matches = "m0"
    # A function sees the top scope, wherever it is called from.
    entry = ast.Attribute(load("scope"), "global_local" if scoped else "global_scope", ast.Load())
    with writer.within(frame):
        writer.emit(ast.Assign([ast.Name("scope", STORE)], ast.Call(entry, [], [])), node)
        refused = misplaced_parameter(writer, node.parameters)
        if refused is not None:
            writer.emit(refused, node)
    name = f"function {node.name}"
    function = body_function(writer, name, node.parameters, node.body, frame, node, first=["scope"])
    if returns_from_lambda(writer.source.text, node.body):
        function.body = catch_returns(writer, function.body, node, is_checked=frame.checks_result)
    writer.module.append(function)
    own = function_of_scope(writer, node, Frame("type"), lambda: signature(writer, node.parameters, node.returns, node))
    _assign(writer, "_own_signature", own, node)
    return writer.at(node, load(name))


def _alias(writer: Writer, node: n.TypeAliasDefinition) -> ast.expr:
    # An alias that cannot be evaluated becomes the text that is to blame: `declared_type` refuses it where the alias is used.
    illegal = illegal_part(writer.source, node.type)
    if illegal is not None:
        return writer.at(node, ast.Lambda(writer.parameters(["scope"]), writer.at(node, constant_of(illegal))))
    return function_of_scope(writer, node, Frame("alias"), lambda: writer.value(node.type))


# --- templates ----------------------------------------------------------------------------------------------------


def _template(writer: Writer, node: n.EppExpression) -> ast.expr:
    """Return a template: its function gives the text. Parameters come as those of a class do, by name."""
    frame = Frame("epp", output="out")
    names = [parameter.name for parameter in node.parameters or ()]
    frame.known = set(names)
    if uses_matches(writer.source.text, node.body):
        frame.matches = "m0"
    with writer.within(frame):
        if frame.matches is not None:
            writer.emit(ast.Assign([ast.Name(frame.matches, STORE)], writer.runtime_call("_MatchVariables", constant_of(None))), node)
        writer.emit(ast.Assign([ast.Name("out", STORE)], writer.runtime_call("_TemplateOutput")), node)
        writer.effect(node.body)
        writer.emit(ast.Return(ast.Call(ast.Attribute(load("out"), "result", ast.Load()), [], [])), node)
    writer.module.append(writer.function("epp", ["scope", *[frame.python_name(name) for name in names]], frame, node))
    return writer.at(node, load("epp"))


def render_text(writer: Writer, node: n.RenderText) -> ast.expr:
    if node.value and writer.frame.output:
        _append(writer, "append", writer.at(node, constant_of(node.value)), node)
    return writer.at(node, constant_of(None))


def render_expression(writer: Writer, node: n.RenderExpression) -> ast.expr:
    writer.mark(node, "an Epp Interpolated Expression")
    _append(writer, "add", writer.value(node.expression), node)
    return writer.at(node, constant_of(None))


def _append(writer: Writer, method: str, value: ast.expr, node: n.SyntaxNode) -> None:
    assert writer.frame.output is not None
    writer.emit(ast.Expr(ast.Call(ast.Attribute(load(writer.frame.output), method, ast.Load()), [value], [])), node)


RULES = {
    n.ClassDefinition: definition,
    n.DefineDefinition: definition,
    n.NodeDefinition: definition,
    n.FunctionDefinition: definition,
    n.TypeAliasDefinition: definition,
    n.RenderText: render_text,
    n.RenderExpression: render_expression,
}

EFFECTS = {
    n.ClassDefinition: definition_effect,
    n.DefineDefinition: definition_effect,
    n.NodeDefinition: definition_effect,
    n.FunctionDefinition: definition_effect,
    n.TypeAliasDefinition: definition_effect,
}
