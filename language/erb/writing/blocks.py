"""Methods with blocks as Python: loops where the value of the call is not used, functions otherwise."""

from __future__ import annotations

import ast

from ...codegen.frames import Frame
from ...codegen.writer import LOAD, STORE, Writer, constant_of, load
from ...syntax.nodes import SyntaxNode
from .. import methods
from .. import nodes as n
from ..errors import Refusal


def loop(writer: Writer, node: n.RubyMethodCall, receiver: ast.expr) -> None:
    """Write a loop over what the method yields of the receiver; it yields tuples when the block has several parameters."""
    block = node.block
    assert block is not None
    yields_pairs = methods.BLOCK_METHODS[node.name].values == 2
    names, destructured = _parameter_names(block, 2 if yields_pairs and len(block.parameters) < 2 else len(block.parameters))
    if not names:
        names = [writer.new_name("t")]
    several = len(names) > 1
    target: ast.expr = ast.Tuple([ast.Name(name, STORE) for name in names], STORE) if several else ast.Name(names[0], STORE)
    items = writer.runtime_call(f"{methods.python_name(node.name)}_loop", receiver)
    if several and not yields_pairs:
        items = writer.runtime_call("_spread_all", writer.at(node, items), constant_of(len(names)))
    with writer.block() as statements:
        _enter(writer, block, destructured)
        loops_of(writer).append("loop")
        writer.effect(block.body)
        loops_of(writer).pop()
    writer.emit(ast.For(target, writer.at(node, items), statements or [ast.Pass()], []), node)


def block_function(writer: Writer, block: n.Block, values: int) -> ast.expr:
    """Write the Python function of a block with this number of values; return its name."""
    name = writer.new_name("block")
    outer_frame = writer.frame
    frame = Frame("block", scope=outer_frame.scope, outer=outer_frame)
    arguments, destructured = _parameter_names(block, values) if values == 2 else _single_parameter(writer, block)
    with writer.within(frame):
        outer = list(block.outer)
        if outer:
            writer.emit(ast.Nonlocal(outer), block)
        _enter(writer, block, destructured)
        loops_of(writer).append("block")
        value = writer.value(block.body)
        loops_of(writer).pop()
        writer.emit(ast.Return(value), block)
    writer.emit(writer.function(name, arguments, frame, block), block)
    return writer.at(block, load(name))


def loops_of(writer: Writer) -> list[str]:
    loops: list[str] = writer.loops  # type: ignore[attr-defined]
    return loops


def _parameter_names(block: n.Block, count: int) -> tuple[list[str], list[n.RubyParameter]]:
    """Return the Python names of `count` parameters, and the parameters to destructure."""
    names = [parameter.python_name for parameter in block.parameters]
    while len(names) < count:
        names.append(f"unused{len(names)}")
    return names, [parameter for parameter in block.parameters if parameter.inner]


def _single_parameter(writer: Writer, block: n.Block) -> tuple[list[str], list[n.RubyParameter]]:
    """Return the one parameter of a function whose block may have several, which its value is destructured to."""
    if len(block.parameters) == 1:
        return _parameter_names(block, 1)
    name = writer.new_name("item")
    if not block.parameters:
        return [name], []
    return [name], [n.RubyParameter(block.at, block.end, name, block.parameters)]


def _enter(writer: Writer, block: n.Block, destructured: list[n.RubyParameter]) -> None:
    """Write the beginning of a block: its parameters, and its variables, which are nil."""
    pending = list(destructured)
    while pending:
        parameter = pending.pop(0)
        names = [inner.python_name for inner in parameter.inner]
        spread = writer.runtime_call("_spread", load(parameter.python_name), constant_of(len(names)))
        writer.emit(ast.Assign([ast.Tuple([ast.Name(name, STORE) for name in names], STORE)], spread), block)
        pending += [inner for inner in parameter.inner if inner.inner]
    for name in block.own:
        writer.emit(ast.Assign([ast.Name(name, STORE)], constant_of(None)), block)


def next_effect(writer: Writer, node: n.RubyNext) -> None:
    if loops_of(writer)[-1] == "loop":
        writer.effect(node.value)
        writer.emit(ast.Continue(), node)
    else:
        writer.emit(ast.Return(writer.value(node.value)), node)


def break_effect(writer: Writer, node: SyntaxNode) -> None:
    if loops_of(writer)[-1] != "loop":
        raise Refusal("break out of a method whose value is used", node.at)
    writer.emit(ast.Break(), node)


def jump_value(writer: Writer, node: SyntaxNode) -> ast.expr:
    """Write a jump where a value is expected; there is none."""
    writer.effect(node)
    return writer.at(node, constant_of(None))


def method_definition(writer: Writer, node: n.MethodDefinition) -> None:
    frame = Frame("function", scope=writer.frame.scope, outer=writer.frame)
    with writer.within(frame):
        for name in node.own:
            writer.emit(ast.Assign([ast.Name(name, STORE)], constant_of(None)), node)
        writer.emit(ast.Return(writer.value(node.body)), node)
    writer.emit(writer.function(node.python_name, node.parameters, frame, node), node)


def own_call(writer: Writer, node: n.OwnCall) -> ast.expr:
    return writer.at(node, ast.Call(ast.Name(node.python_name, LOAD), writer.operands(node.arguments), []))
