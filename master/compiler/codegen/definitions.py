"""Classes, defines, nodes, functions, aliases and templates: each becomes a Python function and a registration."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .. import nodes as n
from .calls import body_function, catching_returns, required_after_optional, returns_from_lambda, signature
from .expressions import is_constant
from .frames import Frame, assigned_names, reads_scope, uses_matches
from .writer import STORE, Writer, load, text


def definition(writer: Writer, node: n.Node) -> ast.expr:
    """Where it stands a definition does nothing: it is registered when its file is loaded."""
    return writer.at(node, text(None))


def definition_effect(writer: Writer, node: n.Node) -> None:
    return None


def register(writer: Writer, node: n.Node) -> None:
    """Write the function of a definition and the statement that makes it known."""
    with writer.within(Frame("module", body=writer.module)):
        if isinstance(node, n.ClassDefinition):
            name = _scoped_function(writer, f"class {node.name}", "class", node.parameters, node.body, node)
            _registered(writer, "_class", node, text(node.name), _specs(writer, node.parameters), text(node.parent), name)
        elif isinstance(node, n.DefineDefinition):
            name = _scoped_function(writer, f"define {node.name}", "define", node.parameters, node.body, node)
            _registered(writer, "_define", node, text(node.name), _specs(writer, node.parameters), name)
        elif isinstance(node, n.NodeDefinition):
            _node(writer, node)
        elif isinstance(node, n.FunctionDefinition):
            _function(writer, node)
        elif isinstance(node, n.TypeAlias):
            _alias(writer, node)
        else:
            raise TypeError(f"not a definition: {type(node).__name__}")


def _registered(writer: Writer, runtime: str, node: n.Node, *arguments: ast.expr) -> None:
    where = writer.source.locate(node.at)
    writer.emit(ast.Expr(writer.run(runtime, *arguments, text(where.line), text(where.column))), node)


def _scoped_function(writer: Writer, name: str, kind: str, parameters: Sequence[n.Parameter], body: n.Node, node: n.Node) -> ast.expr:
    """The function of a class, define, node or manifest: the scope, then its parameters' values."""
    frame = Frame(kind)
    frame.known = {parameter.name for parameter in parameters}
    if uses_matches(body):
        frame.matches = "m0"
    with writer.within(frame):
        if frame.matches is not None:
            writer.emit(ast.Assign([ast.Name(frame.matches, STORE)], writer.method("enter_matches")), node)
        writer.effect(body)
        if returns_from_lambda(body) and kind not in ("main", "node"):
            frame.body[:] = catching_returns(writer, list(frame.body), node)
    names = ["scope", *[frame.python_name(parameter.name) for parameter in parameters]]
    made = writer.function(name, names, frame, node)
    writer.module.append(made)
    return writer.at(node, load(name))


def main(writer: Writer, body: n.Node) -> None:
    """The code of a manifest outside of definitions."""
    with writer.within(Frame("module", body=writer.module)):
        name = _scoped_function(writer, "main", "main", (), body, body)
        writer.emit(ast.Expr(writer.run("_main", name)), body)


def _specs(writer: Writer, parameters: Sequence[n.Parameter]) -> ast.expr:
    """What is to be known of parameters that are given by name."""
    made: list[ast.expr] = []
    for parameter in parameters:
        type_: ast.expr = text(None)
        if parameter.type is not None:
            type_ = _thunk(writer, parameter.type, f"type of ${parameter.name}")
        fixed = parameter.default is not None and is_constant(parameter.default)
        default: ast.expr = text(None)
        if parameter.default is not None:
            default = writer.value(parameter.default) if fixed else _thunk(writer, parameter.default, f"default of ${parameter.name}")
        flags = (text(parameter.default is not None), text(fixed))
        made.append(writer.at(parameter, writer.run("_parameter", text(parameter.name), type_, default, *flags)))
    return ast.Tuple(made, ast.Load())


def _thunk(writer: Writer, node: n.Node, name: str) -> ast.expr:
    """A function of a scope that gives the value of `node`."""
    frame = Frame("default")
    if uses_matches(node):
        frame.matches = "m0"
    with writer.within(frame):
        if frame.matches is not None:
            writer.emit(ast.Assign([ast.Name(frame.matches, STORE)], writer.run("_Matches", text(None))), node)
        value = writer.value(node)
        writer.emit(ast.Return(value), node)
    made = writer.function(writer.fresh(f"{name} "), ["scope"], frame, node)
    writer.module.append(made)
    return writer.at(node, load(made.name))


def _node(writer: Writer, node: n.NodeDefinition) -> None:
    matches: list[ast.expr] = []
    labels: list[str] = []
    for match in node.matches:
        if isinstance(match, n.Regex):
            matches.append(writer.value(match))
            labels.append(f"/{match.source}/")
        elif isinstance(match, n.Default):
            matches.append(text("default"))
            labels.append("default")
        elif isinstance(match, n.String | n.Name):
            matches.append(text(match.value))
            labels.append(match.value)
        else:
            matches.append(text(str(getattr(match, "value", ""))))
            labels.append(str(getattr(match, "value", "")))
    shown = "".join(c if c.isprintable() else "?" for c in ", ".join(labels))
    name = _scoped_function(writer, f"node {shown}", "node", (), node.body, node)
    parent: ast.expr = text(None)
    if isinstance(node.parent, n.String | n.Name):
        parent = text(node.parent.value)
    elif isinstance(node.parent, n.Default):
        parent = text("default")
    _registered(writer, "_node", node, ast.Tuple(matches, ast.Load()), parent, name)


def _function(writer: Writer, node: n.FunctionDefinition) -> None:
    parts = [node.body, *[parameter.default for parameter in node.parameters]]
    scoped = reads_scope(*parts)
    frame = Frame("function", "scope", scoped)
    frame.known = {parameter.name for parameter in node.parameters}
    frame.seen = set(frame.known)
    frame.locals = assigned_names(node.body) - frame.known
    if uses_matches(*parts):
        frame.matches = "m0"
    # A function sees the top scope, wherever it is called from.
    entry = ast.Attribute(load("scope"), "global_local" if scoped else "global_scope", ast.Load())
    with writer.within(frame):
        writer.emit(ast.Assign([ast.Name("scope", STORE)], ast.Call(entry, [], [])), node)
        refused = required_after_optional(writer, node.parameters)
        if refused is not None:
            writer.emit(refused, node)
    name = f"function {node.name}"
    made = body_function(writer, name, node.parameters, node.body, frame, node, first=["scope"])
    if returns_from_lambda(node.body):
        made.body = catching_returns(writer, made.body, node)
    writer.module.append(made)
    with writer.within(Frame("type")):
        given = signature(writer, node.parameters, node.returns, node)
    wrapped = writer.at(node, ast.Lambda(writer.parameters(["scope"]), given))
    _registered(writer, "_function", node, text(node.name), wrapped, writer.at(node, load(name)))


def _alias(writer: Writer, node: n.TypeAlias) -> None:
    with writer.within(Frame("alias")):
        value = writer.value(node.type)
    wrapped = writer.at(node, ast.Lambda(writer.parameters(["scope"]), value))
    _registered(writer, "_alias", node, text(node.name), wrapped)


# --- templates ----------------------------------------------------------------------------------------------------


def epp(writer: Writer, node: n.Epp) -> None:
    """A template: its function gives the text. Parameters come as those of a class do, by name."""
    parameters = node.parameters or ()
    frame = Frame("epp", output="out")
    frame.known = {parameter.name for parameter in parameters}
    if uses_matches(node.body):
        frame.matches = "m0"
    with writer.within(Frame("module", body=writer.module)):
        with writer.within(frame):
            if frame.matches is not None:
                writer.emit(ast.Assign([ast.Name(frame.matches, STORE)], writer.run("_Matches", text(None))), node)
            writer.emit(ast.Assign([ast.Name("out", STORE)], writer.run("_Output")), node)
            writer.effect(node.body)
            writer.emit(ast.Return(ast.Call(ast.Attribute(load("out"), "result", ast.Load()), [], [])), node)
        names = ["scope", *[frame.python_name(parameter.name) for parameter in parameters]]
        writer.module.append(writer.function("epp", names, frame, node))
        specs: ast.expr = text(None) if node.parameters is None else _specs(writer, parameters)
        writer.emit(ast.Expr(writer.run("_template", specs, load("epp"))), node)


def render_text(writer: Writer, node: n.Node) -> ast.expr:
    assert isinstance(node, n.RenderText)
    if node.value and writer.frame.output:
        _append(writer, "append", writer.at(node, text(node.value)), node)
    return writer.at(node, text(None))


def render_expression(writer: Writer, node: n.Node) -> ast.expr:
    assert isinstance(node, n.RenderExpression)
    writer.mark(node, "an Epp Interpolated Expression")
    _append(writer, "add", writer.value(node.expression), node)
    return writer.at(node, text(None))


def _append(writer: Writer, method: str, value: ast.expr, node: n.Node) -> None:
    assert writer.frame.output is not None
    writer.emit(ast.Expr(ast.Call(ast.Attribute(load(writer.frame.output), method, ast.Load()), [value], [])), node)


RULES = {
    n.ClassDefinition: definition,
    n.DefineDefinition: definition,
    n.NodeDefinition: definition,
    n.FunctionDefinition: definition,
    n.TypeAlias: definition,
    n.RenderText: render_text,
    n.RenderExpression: render_expression,
}

EFFECTS = {
    n.ClassDefinition: definition_effect,
    n.DefineDefinition: definition_effect,
    n.NodeDefinition: definition_effect,
    n.FunctionDefinition: definition_effect,
    n.TypeAlias: definition_effect,
}
