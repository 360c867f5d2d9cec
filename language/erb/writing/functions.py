"""From the tree of a function in Ruby to Python: each method becomes a function, whose first argument is the session of one call."""

from __future__ import annotations

import ast
from types import CodeType

from ...codegen.frames import Frame
from ...codegen.writer import LOAD, STORE, Effect, Rule, Writer, constant_of, load
from ...syntax.nodes import SyntaxNode
from ...syntax.source import Source
from .. import nodes as n
from ..errors import Refusal
from ..reading.functions import FunctionTree
from . import conditions, templates
from .blocks import loops_of
from .templates import SESSION, TemplateWriter, as_text, walk


def function_code(tree: FunctionTree, source: Source) -> CodeType:
    """
    Return the code of a function: it sets `_methods`, its Python functions by their names in Ruby, and `_definition`: arity and whether
    it gives no value, or None and the dispatches (method, parameters, return type, whether it is for mismatches); and whether it changes
    its arguments.

    Raises:
        Refusal: a construct is in a place where it cannot be translated.
    """
    writer = TemplateWriter(source, list(tree.methods.values()), RULES, EFFECTS)
    for method in tree.methods.values():
        _method(writer, method)
    names = ast.Dict([constant_of(name) for name in tree.methods], [load(method.python_name) for method in tree.methods.values()])
    dispatches = tuple([(each.method, each.parameters, each.returns, each.is_mismatch) for each in tree.dispatches])
    definition = (tree.arity, tree.is_statement if tree.is_legacy else dispatches, writer.mutates)
    first = next(iter(tree.methods.values()))
    for name, value in (("_methods", names), ("_definition", constant_of(definition))):
        assign: ast.stmt = ast.Assign([ast.Name(name, STORE)], value)
        writer.set_place(assign, first)
        writer.module.append(assign)
    return compile(ast.Module(writer.module, []), source.file or "(function)", "exec", dont_inherit=True, optimize=0)


def _method(writer: TemplateWriter, method: n.FunctionMethod) -> None:
    frame = Frame("function", scope=SESSION)
    arguments = writer.parameters([SESSION])
    with writer.within(frame):
        for parameter in method.parameters:
            name = parameter.python_name
            if parameter.is_rest:
                arguments.vararg = ast.arg(name)
                writer.emit(ast.Assign([ast.Name(name, STORE)], ast.Call(load("list"), [load(name)], [])), method)
                continue
            arguments.args.append(ast.arg(name))
            if parameter.default is not None:
                arguments.defaults.append(load("_absent"))
                with writer.block() as statements:
                    writer.emit(ast.Assign([ast.Name(name, STORE)], writer.value(parameter.default)), method)
                writer.emit(ast.If(ast.Compare(load(name), [ast.Is()], [load("_absent")]), statements, []), method)
        for name in method.own:
            writer.emit(ast.Assign([ast.Name(name, STORE)], constant_of(None)), method)
        writer.emit(ast.Return(writer.value(method.body)), method)
    function = ast.FunctionDef(method.python_name, arguments, frame.body, [])
    writer.set_place(function, method)
    writer.module.append(function)


# --- what templates do not have -----------------------------------------------------------------------------------


def return_effect(writer: Writer, node: SyntaxNode) -> None:
    assert isinstance(node, n.RubyReturn)
    if writer.frame.kind == "block":
        raise Refusal("return out of a block whose value is used", node.at)
    writer.emit(ast.Return(writer.value(node.value)), node)


def nothing_returned(writer: Writer, node: SyntaxNode) -> ast.expr:
    """Write a jump where a value is expected; there is none."""
    writer.effect(node)
    return writer.at(node, constant_of(None))


def while_effect(writer: Writer, node: SyntaxNode) -> None:
    assert isinstance(node, n.RubyWhile)
    with writer.block() as statements:
        test = conditions.truth(writer, node.test)
        if not node.negated:
            test = writer.at(node, ast.UnaryOp(ast.Not(), test))
        writer.emit(ast.If(test, [ast.Break()], []), node)
        loops_of(writer).append("loop")
        writer.effect(node.body)
        loops_of(writer).pop()
    writer.emit(ast.While(constant_of(True), statements, []), node)


def rescued_value(writer: Writer, node: SyntaxNode) -> ast.expr:
    name = writer.new_name("t")
    _rescued(writer, node, name)
    return writer.at(node, load(name))


def rescued_effect(writer: Writer, node: SyntaxNode) -> None:
    _rescued(writer, node, None)


def _rescued(writer: Writer, node: SyntaxNode, result: str | None) -> None:
    assert isinstance(node, n.Rescued)
    body = conditions.branch_of(writer, node.body, result)
    error = writer.new_name("error")
    with writer.block() as statements:
        _handlers(writer, node, error, 0, result)
    caught = ast.Tuple([load("RubyError"), load("LanguageError")], LOAD)
    handler = ast.ExceptHandler(caught, error, statements)
    writer.emit(ast.Try(body or [ast.Pass()], [handler], [], []), node)


def _handlers(writer: Writer, node: n.Rescued, error: str, index: int, result: str | None) -> None:
    """Write the handlers of a rescue from one on; when none is left the error goes on."""
    if index == len(node.handlers):
        writer.emit(ast.Raise(), node)
        return
    test = writer.runtime_call("_is_rescued", load(error), writer.value(node.classes[index]))
    branch = conditions.branch_of(writer, node.handlers[index], result)
    with writer.block() as rest:
        _handlers(writer, node, error, index + 1, result)
    writer.emit(ast.If(test, branch or [ast.Pass()], rest), node)


def class_value(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.RubyClassName)
    return writer.constant(writer.runtime_call("_class_named", constant_of(node.name)), node)


def splat(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.RubySplat)
    return writer.at(node, ast.Starred(writer.runtime_call("_to_splat", writer.value(node.value)), LOAD))


def array(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.RubyArrayLiteral)
    if any(isinstance(item, n.RubySplat) for item in node.items) and any(isinstance(inner, n.OwnCall | n.Block) for inner in walk(node)):
        raise Refusal("a splat beside what may assign", node.at)
    return templates.array(writer, node)


def resource_defaults(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.ResourceDefaults)
    return writer.at(node, writer.scope_call("defaults", writer.value(node.type_name)))


def log_call(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.LogCall)
    text = as_text(writer, writer.value(node.text), node.text)
    return writer.at(node, writer.scope_call("log", constant_of(node.level), text))


def regexp_interpolation(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.RegexpInterpolation)
    return writer.at(node, writer.runtime_call("_dynamic_pattern", writer.value(node.text)))


def library_call(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.LibraryCall)
    return writer.at(node, writer.runtime_call(node.function, *writer.operands(node.arguments)))


def own_call(writer: Writer, node: SyntaxNode) -> ast.expr:
    assert isinstance(node, n.OwnCall)
    return writer.at(node, ast.Call(load(node.python_name), [writer.scope(), *writer.operands(node.arguments)], []))


RULES: dict[type[SyntaxNode], Rule] = {
    **templates.RULES,
    n.LibraryCall: library_call,
    n.LogCall: log_call,
    n.OwnCall: own_call,
    n.RegexpInterpolation: regexp_interpolation,
    n.Rescued: rescued_value,
    n.ResourceDefaults: resource_defaults,
    n.RubyReturn: nothing_returned,
    n.RubyArrayLiteral: array,
    n.RubyClassName: class_value,
    n.RubySplat: splat,
    n.RubyWhile: nothing_returned,
}

EFFECTS: dict[type[SyntaxNode], Effect] = {
    **templates.EFFECTS,
    n.Rescued: rescued_effect,
    n.RubyReturn: return_effect,
    n.RubyWhile: while_effect,
}
