"""Calls, lambdas and jumps."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..syntax import nodes as n
from .expressions import elements, is_constant_in_type
from .frames import Frame, assigned_names, reads_scope, uses_matches, walk
from .writer import STORE, Writer, constant_of, load

_JUMPS = frozenset(("next", "return", "break"))


def call(writer: Writer, node: n.FunctionCall) -> ast.expr:
    functor = node.functor
    while isinstance(functor, n.ParenthesizedExpression):
        functor = functor.expression
    if isinstance(functor, n.QualifiedName):
        name = functor.value.removeprefix("::")
        # Other calls of these names are calls of functions, whose errors the runtime reports.
        if name in _JUMPS and node.lambda_ is None and len(node.arguments) <= 1:
            return jump(writer, name, node.arguments, node)
        return _call_function(writer, node, name, node.arguments, node.lambda_, "a Function Call")
    # A type: `Integer('3')` makes a new one.
    return _call_function(writer, node, "new", (functor, *node.arguments), node.lambda_, "a Function Call")


def call_effect(writer: Writer, node: n.FunctionCall) -> None:
    """Write a call of which nobody uses the value. It makes no difference but for a program, whose output then does not count."""
    functor = node.functor
    if isinstance(functor, n.QualifiedName) and functor.value == "generate" and node.lambda_ is None:
        value = _call_function(writer, node, functor.value, node.arguments, None, "a Function Call", "_run")
    else:
        value = call(writer, node)
    writer.discard(value, node)


def method_call(writer: Writer, node: n.MethodCall) -> ast.expr:
    if node.name in _JUMPS and node.lambda_ is None and not node.arguments:
        return jump(writer, node.name, (node.receiver,), node)
    return _call_function(writer, node, node.name, (node.receiver, *node.arguments), node.lambda_, "a Method call", "_call_method")


def _call_function(
    writer: Writer,
    node: n.SyntaxNode,
    name: str,
    arguments: Sequence[n.SyntaxNode],
    lambda_: n.LambdaExpression | None,
    label: str,
    runtime: str = "_call",
) -> ast.expr:
    operands: dict[str, n.SyntaxNode] = {}
    if lambda_ is not None:
        operands = {f"${parameter.name}": parameter for parameter in lambda_.parameters}
    writer.mark(node, label, **operands)
    values = elements(writer, tuple(arguments))
    block = constant_of(None) if lambda_ is None else closure(writer, lambda_, has_value=name != "each")
    return writer.at(node, writer.runtime_call(runtime, writer.scope(), constant_of(name), block, *values))


# --- jumps --------------------------------------------------------------------------------------------------------


def jump(writer: Writer, name: str, arguments: Sequence[n.SyntaxNode], node: n.SyntaxNode) -> ast.expr:
    """Write a jump: `next` leaves the body around it, `return` the function or body around that; `break` ends an iteration."""
    value = writer.value(arguments[0]) if arguments else writer.at(node, constant_of(None))
    kind = writer.frame.kind
    ends_here = ("function", "class", "define", "epp")
    if name != "break" and (kind in ends_here or (name == "next" and kind == "lambda")):
        # An early return skips the check of the result at the end of the function.
        is_unchecked = name == "return" and writer.frame.checks_result
        writer.emit(ast.Return(writer.at(node, writer.runtime_call("_Returned", value)) if is_unchecked else value), node)
    else:
        exception = {"next": "_Next", "return": "_Return", "break": "_Break"}[name]
        error = writer.runtime_call(exception) if name == "break" else writer.runtime_call(exception, value)
        if kind in ("main", "node") and name != "break":
            error = writer.runtime_call("_stray", error, constant_of(writer.source.line(node.at)))
        writer.emit(ast.Raise(writer.at(node, error), None), node)
    return writer.at(node, constant_of(None))


def returns_from_lambda(text: str, *parts: n.SyntaxNode | None) -> bool:
    """Return whether a lambda anywhere in these nodes of the file `text` contains `return`, so that the body around it has to catch it."""
    # Spares the walk over the tree for nearly all files.
    if "return" not in text:
        return False
    for part in parts:
        if part is None:
            continue
        for node in walk(part, into_lambdas=True):
            if isinstance(node, n.LambdaExpression):
                for inner in walk(node.body, into_lambdas=True):
                    if isinstance(inner, n.FunctionCall) and isinstance(inner.functor, n.QualifiedName) and inner.functor.value == "return":
                        return True
                    if isinstance(inner, n.MethodCall) and inner.name == "return":
                        return True
    return False


def catch_returns(writer: Writer, body: list[ast.stmt], node: n.SyntaxNode, *, is_checked: bool = False) -> list[ast.stmt]:
    """Return `body`, wrapped so that the `return` of a lambda in it ends it; `is_checked`: the type of other results is."""
    name = writer.new_name("e")
    value: ast.expr = ast.Attribute(load(name), "value", ast.Load())
    if is_checked:
        value = writer.at(node, writer.runtime_call("_Returned", value))
    handler = ast.ExceptHandler(load("_Return"), name, [ast.Return(value)])
    guarded = ast.Try(body or [ast.Pass()], [handler], [], [])
    writer.set_place(guarded, node)
    return [guarded]


# --- lambdas ------------------------------------------------------------------------------------------------------


def closure(writer: Writer, node: n.LambdaExpression, *, has_value: bool = True) -> ast.expr:
    """Return a Closure over the variables in force; `has_value`: somebody uses its results."""
    outer = writer.frame
    in_order = misplaced_parameter(writer, node.parameters)
    if in_order is not None:
        writer.emit(in_order, node)
    name = writer.new_name("lambda_")
    frame = lambda_frame(writer, node, outer)
    function = body_function(writer, name, node.parameters, node.body, frame, node, has_value=has_value or node.returns is not None)
    # Defining a function has no effect, so that it forces no earlier operand into a name.
    writer.emit(function, node, pure=True)
    return writer.at(node, writer.runtime_call("_Closure", load(name), signature(writer, node.parameters, node.returns, node)))


def lambda_frame(writer: Writer, node: n.LambdaExpression, outer: Frame) -> Frame:
    """Return the frame of a lambda: its variables are Python's own, unless something in it looks them up by name."""
    parts = [node.body, *[parameter.default for parameter in node.parameters]]
    # Only a body that looks variables up by name needs a scope; others keep them in Python's locals, which are faster.
    scoped = reads_scope(*parts)
    frame = Frame("lambda", outer.scope, scoped, outer, output=outer.output)
    frame.known = {parameter.name for parameter in node.parameters}
    frame.seen = set(frame.known)
    if scoped:
        frame.scope = f"scope{frame.depth}"
        # A local scope starts empty: names known outside are still found as Python's locals of the outer functions.
    frame.locals = assigned_names(node.body) - frame.known
    if uses_matches(writer.source.text, *parts) and outer.matches is not None:
        frame.matches = f"m{frame.depth}"
    return frame


def body_function(
    writer: Writer,
    name: str,
    parameters: Sequence[n.ParameterDeclaration],
    body: n.SyntaxNode,
    frame: Frame,
    node: n.SyntaxNode,
    *,
    first: Sequence[str] = (),
    has_value: bool = True,
) -> ast.FunctionDef:
    """
    Return the Python function of a lambda or function: its parameters by position, the value of the body as its result.

    `first` are Python parameters in front. Parameters with a default may be left out, the last may take the rest.
    """
    outer = frame.outer
    with writer.within(frame):
        if frame.matches is not None:
            last_match = ast.Attribute(load(outer.matches), "last", ast.Load()) if outer and outer.matches else constant_of(None)
            writer.emit(ast.Assign([ast.Name(frame.matches, STORE)], writer.runtime_call("_MatchVariables", last_match)), node)
        if frame.scoped and outer is not None:
            writer.emit(
                ast.Assign([ast.Name(frame.scope, STORE)], ast.Call(ast.Attribute(load(outer.scope), "local", ast.Load()), [], [])), node
            )
        _fill_in(writer, parameters, frame, "block" if outer is not None else f"'{name.removeprefix('function ')}'")
        if has_value:
            writer.emit(ast.Return(writer.value(body)), node)
        else:
            writer.effect(body)
        _start_unset(writer, frame, node)
    function = writer.function(name, list(first), frame, node)
    defaults: list[ast.expr] = []
    names = [parameter.name for parameter in parameters]
    for index, parameter in enumerate(parameters):
        # Of two parameters of one name, which only lambdas may have, the last one counts.
        hidden = parameter.name in names[index + 1 :]
        argument = ast.arg(writer.new_name("unused") if hidden else frame.python_name(parameter.name))
        writer.set_place(argument, parameter)
        if parameter.splat:
            function.args.vararg = argument
            continue
        function.args.args.append(argument)
        if parameter.default is not None or defaults:
            # A marker and not the default: that may read other parameters, and is evaluated at each call.
            defaults.append(writer.at(parameter, load("_MISSING")))
    function.args.defaults = defaults
    return function


def _start_unset(writer: Writer, frame: Frame, node: n.SyntaxNode) -> None:
    start: list[ast.stmt] = []
    for name in sorted(frame.unset):
        assign = ast.Assign([ast.Name(frame.python_name(name), STORE)], load("_MISSING"))
        writer.set_place(assign, node)
        start.append(assign)
    frame.body[:0] = start


def _fill_in(writer: Writer, parameters: Sequence[n.ParameterDeclaration], frame: Frame, label: str) -> None:
    """
    Give parameters that got no value their defaults, in order; a default may use the parameters before it.

    Defaults have to be of the declared types; `label` is what errors call the function.
    """
    names = [parameter.name for parameter in parameters]
    frame.known -= set(names)
    for index, parameter in enumerate(parameters):
        if parameter.name in names[index + 1 :]:
            continue
        python = frame.python_name(parameter.name)
        if parameter.splat:
            arguments: ast.expr = writer.runtime_call("list", load(python))
            if parameter.default is not None:
                default = _default_function(writer, parameter)
                arguments = writer.runtime_call("_rest", load(python), default, *_default_check(writer, parameter, label))
            writer.emit(ast.Assign([ast.Name(python, STORE)], arguments), parameter)
        elif parameter.default is not None:
            with writer.block() as statements:
                value = writer.value(parameter.default)
                if parameter.type is not None:
                    value = writer.at(parameter, writer.runtime_call("_of_type", value, *_default_check(writer, parameter, label)))
                writer.emit(ast.Assign([ast.Name(python, STORE)], value), parameter)
            test = ast.Compare(load(python), [ast.Is()], [load("_MISSING")])
            writer.emit(ast.If(test, statements, []), parameter)
        frame.known.add(parameter.name)
        if frame.scoped and frame.kind != "class":
            writer.emit(ast.Expr(writer.scope_call("bind", constant_of(parameter.name), load(python))), parameter)


def _default_check(writer: Writer, parameter: n.ParameterDeclaration, label: str) -> list[ast.expr]:
    """Return type, function and name, for the check of a default; an empty list where any value will do."""
    if parameter.type is None:
        return []
    return [writer.value(parameter.type), constant_of(label), constant_of(parameter.name)]


def _default_function(writer: Writer, parameter: n.ParameterDeclaration) -> ast.expr:
    assert parameter.default is not None
    with writer.block() as statements:
        value = writer.value(parameter.default)
        if statements:
            writer.emit(ast.Return(value), parameter)
    if not statements:
        return writer.at(parameter, ast.Lambda(writer.parameters([]), value))
    name = writer.new_name("default_")
    writer.emit(ast.FunctionDef(name, writer.parameters([]), statements, []), parameter, pure=True)
    return writer.at(parameter, load(name))


def misplaced_parameter(writer: Writer, parameters: Sequence[n.ParameterDeclaration]) -> ast.stmt | None:
    """Return the statement that refuses a list in which a required parameter follows an optional one, or any follows a captures-rest."""
    optional: n.ParameterDeclaration | None = None
    for parameter in parameters:
        if optional is not None and parameter.default is None and not parameter.splat:
            return _refused(writer, parameter, "_required_after_optional")
        if optional is not None and optional.splat:
            return _refused(writer, optional, "_rest_not_last")
        if parameter.default is not None or parameter.splat:
            optional = parameter
    return None


def _refused(writer: Writer, parameter: n.ParameterDeclaration, error: str) -> ast.stmt:
    writer.mark(parameter, "a Parameter Definition")
    statement = ast.Expr(writer.runtime_call(error, constant_of(parameter.name)))
    writer.set_place(statement, parameter)
    return statement


def signature(writer: Writer, parameters: Sequence[n.ParameterDeclaration], returns: n.SyntaxNode | None, node: n.SyntaxNode) -> ast.expr:
    """
    Return the Signature of a lambda or function.

    It is made once per file when its types are constant, which they nearly always are.
    """
    types = [parameter.type for parameter in parameters if parameter.type is not None]
    if returns is not None:
        types.append(returns)
    if not types:
        return writer.constant(_signature_call(writer, parameters, returns, node), node, "S")
    if all(is_constant_in_type(type_) for type_ in types):
        wrapped = function_of_scope(writer, node, Frame("type"), lambda: _signature_call(writer, parameters, returns, node))
        constant = writer.constant(writer.runtime_call("_Lazy", wrapped), node, "S")
        return writer.at(node, ast.Call(constant, [writer.scope()], []))
    return _signature_call(writer, parameters, returns, node)


def _signature_call(
    writer: Writer, parameters: Sequence[n.ParameterDeclaration], returns: n.SyntaxNode | None, node: n.SyntaxNode
) -> ast.expr:
    specs: list[ast.expr] = []
    for parameter in parameters:
        type_ = constant_of(None) if parameter.type is None else writer.value(parameter.type)
        flags = [constant_of(parameter.default is not None), constant_of(parameter.splat)]
        specs.append(writer.at(parameter, ast.Tuple([constant_of(parameter.name), type_, *flags], ast.Load())))
    result = constant_of(None) if returns is None else writer.value(returns)
    return writer.at(node, writer.runtime_call("_signature", ast.Tuple(specs, ast.Load()), result))


def function_of_scope(writer: Writer, node: n.SyntaxNode, frame: Frame, write: Callable[[], ast.expr]) -> ast.expr:
    """
    Return a Python function of a scope whose result is the expression that `write` writes in `frame`.

    Statements that the expression needs (those of an `if`, of a lambda) become the body of a function of the module.
    """
    with writer.within(frame):
        value = write()
        if not frame.body:
            return writer.at(node, ast.Lambda(writer.parameters(["scope"]), value))
        writer.emit(ast.Return(value), node)
    function = writer.function(writer.new_name(f"{frame.kind}_"), ["scope"], frame, node)
    writer.module.append(function)
    return writer.at(node, load(function.name))


RULES = {n.FunctionCall: call, n.MethodCall: method_call}
EFFECTS = {n.FunctionCall: call_effect}
