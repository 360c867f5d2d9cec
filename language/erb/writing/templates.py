"""From the tree of a template to Python, by the same writer as manifests: one rule for each construct."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import CodeType

from ...codegen.frames import Frame, children
from ...codegen.writer import LOAD, STORE, Effect, Rule, Writer, constant_of, load
from ...syntax.nodes import SyntaxNode
from ...syntax.source import Source
from .. import methods
from .. import nodes as n
from ..errors import Refusal
from . import blocks, conditions
from .conditions import again

SESSION = "session"
_ASSIGNING = (n.Assignment, n.SeveralAssignments, n.ConditionalAssignment, n.MatchTest, n.MatchData, n.PatternSplit, n.OwnCall, n.Block)


class TemplateWriter(Writer):
    """
    Writes one template.

    Attributes:
        loops: for each block around the current place, whether it is a "loop" of Python or a "block", a function.
        mutates: whether the template changes values; then it gets copies of those of the scope.
    """

    def __init__(self, source: Source, tree: SyntaxNode) -> None:
        super().__init__(source, RULES, EFFECTS)
        self.loops: list[str] = []
        self.mutates = _mutates(tree)

    def operands(self, parts: Sequence[SyntaxNode]) -> list[ast.expr]:
        """Return the values of `parts`, evaluated left to right; a variable is read before a later operand assigns it."""
        if not any(isinstance(node, _ASSIGNING) for part in parts[1:] for node in walk(part)):
            return super().operands(parts)
        values: list[ast.expr] = []
        for part in parts:
            value = self.value(part)
            if not isinstance(value, ast.Constant):
                name = self.new_name("t")
                self.emit(ast.Assign([ast.Name(name, STORE)], value), part)
                value = self.at(part, load(name))
            values.append(value)
        return values


def template_code(tree: n.Body, source: Source, own: tuple[str, ...]) -> CodeType:
    """
    Return the code of a template: it sets `_body`, which takes the session of one rendering and returns the text.

    Args:
        own: the Python names of the template's own variables.
    Raises:
        Refusal: a construct is in a place where it cannot be translated.
    """
    writer = TemplateWriter(source, tree)
    frame = Frame("template", scope=SESSION)
    with writer.within(frame):
        _begin(writer, tree, own)
        writer.effect(tree)
        text = ast.Call(ast.Attribute(constant_of(""), "join", LOAD), [load("out")], [])
        writer.emit(ast.Return(writer.runtime_call("_finish", text)), tree)
    writer.module.append(writer.function("template", [SESSION], frame, tree))
    assign: ast.stmt = ast.Assign([ast.Name("_body", STORE)], load("template"))
    writer.set_place(assign, tree)
    writer.module.append(assign)
    return compile(ast.Module(writer.module, []), source.file or "(erb)", "exec", dont_inherit=True, optimize=0)


def _begin(writer: TemplateWriter, tree: n.Body, own: tuple[str, ...]) -> None:
    """Write the beginning of a template: the list of its text, the instance variables, and its own variables."""
    names = list(dict.fromkeys([node.name for node in walk(tree) if isinstance(node, n.InstanceVariable | n.Defined)]))
    writer.emit(ast.Assign([ast.Name("out", STORE)], ast.List([], LOAD)), tree)
    writer.emit(ast.Assign([ast.Name("put", STORE)], ast.Attribute(load("out"), "append", LOAD)), tree)
    if names:
        values = writer.scope_call("read", constant_of(tuple(names)), constant_of(writer.mutates))
        writer.emit(ast.Assign([ast.Tuple([ast.Name(f"i_{name}", STORE) for name in names], STORE)], values), tree)
    for name in (
        [*own, "groups"] if any(isinstance(node, n.MatchGroup | n.MatchTest | n.MatchData | n.PatternSplit) for node in walk(tree)) else own
    ):
        writer.emit(ast.Assign([ast.Name(name, STORE)], constant_of(None)), tree)


def walk(tree: SyntaxNode) -> list[SyntaxNode]:
    """Return all nodes of a tree."""
    nodes = [tree]
    for node in nodes:
        nodes += children(node)
        if isinstance(node, n.Case):
            for patterns, then in node.options:
                nodes += [*patterns, then]
    return nodes


def _mutates(tree: SyntaxNode) -> bool:
    """Return whether a template changes arrays or hashes."""
    for node in walk(tree):
        if isinstance(node, n.RubyMethodCall):
            table = methods.METHODS if node.block is None else methods.BLOCK_METHODS
            method = table.get(node.name)
            if method is not None and method.mutates:
                return True
    return False


# --- text and statements ------------------------------------------------------------------------------------------


def _put(writer: Writer, value: ast.expr, node: SyntaxNode) -> None:
    writer.emit(ast.Expr(ast.Call(load("put"), [value], [])), node)


def text(writer: Writer, node: n.Text) -> None:
    _put(writer, writer.at(node, constant_of(node.text)), node)


def output(writer: Writer, node: n.RubyOutput) -> None:
    _put(writer, as_text(writer, writer.value(node.value), node.value), node)


def as_text(writer: Writer, value: ast.expr, node: SyntaxNode) -> ast.expr:
    """Return the expression for the text of a value."""
    if (isinstance(value, ast.Constant) and isinstance(value.value, str)) or isinstance(value, ast.JoinedStr):
        return value
    return writer.at(node, writer.runtime_call("_to_s", value))


def body(writer: Writer, node: n.Body) -> ast.expr:
    if not node.statements:
        return writer.at(node, constant_of(None))
    for statement in node.statements[:-1]:
        writer.effect(statement)
    return writer.value(node.statements[-1])


def body_effect(writer: Writer, node: n.Body) -> None:
    for statement in node.statements:
        writer.effect(statement)


def no_value(writer: Writer, node: SyntaxNode) -> ast.expr:
    """Write a statement of the template where a value could be expected: the value is the text so far, which no code can use."""
    writer.effect(node)
    return writer.at(node, writer.runtime_call("_erbout"))


# --- literals and variables ---------------------------------------------------------------------------------------


def literal(writer: Writer, node: n.Literal) -> ast.expr:
    return writer.at(node, constant_of(node.value))


def symbol(writer: Writer, node: n.SymbolLiteral) -> ast.expr:
    return writer.constant(writer.runtime_call("_symbol", constant_of(node.name)), node)


def regexp(writer: Writer, node: n.RubyRegexpLiteral) -> ast.expr:
    return writer.constant(writer.runtime_call("_regexp", constant_of(node.source)), node)


def interpolation(writer: Writer, node: n.Interpolation) -> ast.expr:
    values = writer.operands(node.parts)
    pieces: list[ast.expr] = []
    for part, value in zip(node.parts, values, strict=True):
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            pieces.append(value)
        else:
            pieces.append(writer.at(part, ast.FormattedValue(as_text(writer, value, part), -1, None)))
    return writer.at(node, ast.JoinedStr(pieces))


def array(writer: Writer, node: n.RubyArrayLiteral) -> ast.expr:
    return writer.at(node, ast.List(writer.operands(node.items), LOAD))


def hash_literal(writer: Writer, node: n.RubyHashLiteral) -> ast.expr:
    return writer.at(node, writer.runtime_call("_hash", *writer.operands(node.parts)))


def range_literal(writer: Writer, node: n.RangeLiteral) -> ast.expr:
    first, last = writer.operands([node.first, node.last])
    return writer.at(node, writer.runtime_call("_range", first, last, constant_of(node.is_exclusive)))


def variable_name(node: n.InstanceVariable | n.LocalVariable) -> str:
    return f"i_{node.name}" if isinstance(node, n.InstanceVariable) else node.python_name


def variable(writer: Writer, node: n.InstanceVariable | n.LocalVariable) -> ast.expr:
    return writer.at(node, load(variable_name(node)))


def assignment(writer: Writer, node: n.Assignment) -> ast.expr:
    assignment_effect(writer, node)
    return variable(writer, node.target)


def assignment_effect(writer: Writer, node: n.Assignment) -> None:
    writer.emit(ast.Assign([ast.Name(variable_name(node.target), STORE)], writer.value(node.value)), node)


def several_effect(writer: Writer, node: n.SeveralAssignments) -> None:
    values = writer.runtime_call("_spread", writer.value(node.value), constant_of(len(node.targets)))
    targets: list[ast.expr] = [ast.Name(variable_name(target), STORE) for target in node.targets]
    writer.emit(ast.Assign([ast.Tuple(targets, STORE)], writer.at(node, values)), node)


def no_values(writer: Writer, node: SyntaxNode) -> ast.expr:
    raise Refusal("several assignments whose value is used", node.at)


def conditional_assignment_effect(writer: Writer, node: n.ConditionalAssignment) -> None:
    test = conditions.truth_of(writer, variable(writer, node.target), node)
    if not node.when_set:
        test = writer.at(node, ast.UnaryOp(ast.Not(), test))
    with writer.block() as statements:
        writer.emit(ast.Assign([ast.Name(variable_name(node.target), STORE)], writer.value(node.value)), node)
    writer.emit(ast.If(test, statements, []), node)


def conditional_assignment(writer: Writer, node: n.ConditionalAssignment) -> ast.expr:
    conditional_assignment_effect(writer, node)
    return variable(writer, node.target)


def defined(writer: Writer, node: n.Defined) -> ast.expr:
    is_unset = ast.Compare(load(f"i_{node.name}"), [ast.Is()], [constant_of(None)])
    return writer.at(node, ast.IfExp(is_unset, constant_of(None), constant_of("instance-variable")))


# --- calls --------------------------------------------------------------------------------------------------------


def method_call(writer: Writer, node: n.RubyMethodCall) -> ast.expr:
    if node.is_safe:
        return _safe_call(writer, node)
    if node.name == "nil?" and node.block is None:
        value = writer.value(node.receiver)
        if isinstance(value, ast.Constant):
            return writer.at(node, constant_of(value.value is None))
        return writer.at(node, ast.Compare(value, [ast.Is()], [constant_of(None)]))
    if node.block is None:
        function = "_indexed" if node.name == "each_with_index" else methods.python_name(node.name)
        return writer.at(node, writer.runtime_call(function, *writer.operands([node.receiver, *node.arguments])))
    method = methods.BLOCK_METHODS[node.name]
    if method.loop and node.name.startswith(("each", "times")):
        if any(isinstance(inner, n.RubyBreak) for inner in walk(node.block.body)):
            raise Refusal("break out of a method whose value is used", node.at)
        receiver = writer.name_for(writer.value(node.receiver), node.receiver)
        blocks.loop(writer, node, receiver)
        return again(receiver)
    operands = writer.operands([node.receiver, *node.arguments])
    operands = [writer.name_for(operand, node) for operand in operands]
    block = blocks.block_function(writer, node.block, method.values)
    count = constant_of(len(node.block.parameters))
    return writer.at(node, writer.runtime_call(f"{methods.python_name(node.name)}_block", operands[0], block, count, *operands[1:]))


def method_call_effect(writer: Writer, node: n.RubyMethodCall) -> None:
    method = methods.BLOCK_METHODS.get(node.name)
    if node.block is not None and method is not None and method.loop and not node.is_safe:
        blocks.loop(writer, node, writer.value(node.receiver))
        return
    value = method_call(writer, node)
    if not isinstance(value, ast.Constant | ast.Name):
        writer.emit(ast.Expr(value), node)


def _safe_call(writer: Writer, node: n.RubyMethodCall) -> ast.expr:
    """Write `a&.b`: nil when `a` is nil, and then no argument is evaluated."""
    receiver = writer.name_for(writer.value(node.receiver), node.receiver)
    if isinstance(receiver, ast.Constant):
        plain = n.RubyMethodCall(node.at, node.end, node.receiver, node.name, node.arguments, node.block)
        return writer.at(node, constant_of(None)) if receiver.value is None else method_call(writer, plain)
    result = writer.new_name("t")
    writer.emit(ast.Assign([ast.Name(result, STORE)], constant_of(None)), node)
    assert isinstance(receiver, ast.Name)
    value = n.LocalVariable(node.receiver.at, node.receiver.end, receiver.id)
    with writer.block() as statements:
        call = n.RubyMethodCall(node.at, node.end, value, node.name, node.arguments, node.block)
        writer.emit(ast.Assign([ast.Name(result, STORE)], method_call(writer, call)), node)
    is_set = ast.Compare(again(receiver), [ast.IsNot()], [constant_of(None)])
    writer.emit(ast.If(is_set, statements, []), node)
    return writer.at(node, load(result))


def class_test(writer: Writer, node: n.ClassTest) -> ast.expr:
    return writer.at(node, writer.runtime_call("_is_class", writer.value(node.value), constant_of(node.name)))


def conversion(writer: Writer, node: n.Conversion) -> ast.expr:
    function = {"File.join": "_file_join", "File.basename": "_file_basename", "Regexp.escape": "_regexp_escape", "sprintf": "_format"}
    name = function.get(node.name, f"_{node.name}")
    return writer.at(node, writer.runtime_call(name, *writer.operands(node.arguments)))


def match_test(writer: Writer, node: n.MatchTest) -> ast.expr:
    left, right = writer.operands([node.left, node.right])
    if not node.notes_groups:
        return writer.at(node, writer.runtime_call("_match_index", left, right))
    return _noting(writer, node, "_match_noting", left, right)


def _noting(writer: Writer, node: SyntaxNode, function: str, *operands: ast.expr) -> ast.expr:
    """Write a call that returns the groups of a match, or those of before, and its result; return the result."""
    if writer.frame.kind != "template":
        raise Refusal("a match whose groups may be read", node.at)
    result = writer.new_name("t")
    noted = writer.runtime_call(function, *operands, load("groups"))
    writer.emit(ast.Assign([ast.Tuple([ast.Name("groups", STORE), ast.Name(result, STORE)], STORE)], writer.at(node, noted)), node)
    return writer.at(node, load(result))


def match_data(writer: Writer, node: n.MatchData) -> ast.expr:
    receiver, argument = writer.operands([node.receiver, node.argument])
    if writer.frame.kind != "template":
        raise Refusal("a match whose groups may be read", node.at)
    writer.emit(ast.Assign([ast.Name("groups", STORE)], writer.at(node, writer.runtime_call("_match", receiver, argument))), node)
    name = writer.new_name("t")
    writer.emit(ast.Assign([ast.Name(name, STORE)], load("groups")), node)
    return writer.at(node, load(name))


def pattern_split(writer: Writer, node: n.PatternSplit) -> ast.expr:
    return _noting(writer, node, "_split_noting", *writer.operands([node.receiver, node.argument]))


def scope_hash(writer: TemplateWriter, node: SyntaxNode) -> ast.expr:
    return writer.at(node, writer.scope_call("to_hash", constant_of(writer.mutates)))


def match_group(writer: Writer, node: n.MatchGroup) -> ast.expr:
    return writer.at(node, writer.runtime_call("_group", load("groups"), constant_of(node.number)))


def scope_variable(writer: TemplateWriter, node: n.ScopeVariable) -> ast.expr:
    return writer.at(node, writer.scope_call("variable", writer.value(node.name), constant_of(writer.mutates)))


def scope_assignment(writer: Writer, node: n.ScopeAssignment) -> ast.expr:
    return writer.at(node, writer.scope_call("set", *writer.operands([node.name, node.value])))


def has_variable(writer: Writer, node: n.HasVariable) -> ast.expr:
    return writer.at(node, writer.scope_call("has_variable", writer.value(node.name)))


def function_call(writer: Writer, node: n.RubyFunctionCall) -> ast.expr:
    return writer.at(node, writer.scope_call("call", constant_of(node.name), writer.value(node.arguments)))


def raise_(writer: Writer, node: n.Raise) -> ast.expr:
    return writer.at(node, writer.runtime_call("_raise", writer.value(node.message)))


RULES: dict[type[SyntaxNode], Rule] = {
    **conditions.RULES,
    n.RubyArrayLiteral: array,
    n.Assignment: assignment,
    n.Body: body,
    n.RubyBreak: blocks.jump_value,
    n.ClassTest: class_test,
    n.ConditionalAssignment: conditional_assignment,
    n.Conversion: conversion,
    n.Defined: defined,
    n.RubyFunctionCall: function_call,
    n.HasVariable: has_variable,
    n.RubyHashLiteral: hash_literal,
    n.InstanceVariable: variable,
    n.Interpolation: interpolation,
    n.Literal: literal,
    n.LocalVariable: variable,
    n.MatchData: match_data,
    n.PatternSplit: pattern_split,
    n.MatchGroup: match_group,
    n.MatchTest: match_test,
    n.RubyMethodCall: method_call,
    n.MethodDefinition: no_value,
    n.RubyNext: blocks.jump_value,
    n.RubyOutput: no_value,
    n.OwnCall: blocks.own_call,
    n.Raise: raise_,
    n.RangeLiteral: range_literal,
    n.RubyRegexpLiteral: regexp,
    n.ScopeAssignment: scope_assignment,
    n.SeveralAssignments: no_values,
    n.ScopeHash: scope_hash,
    n.ScopeVariable: scope_variable,
    n.SymbolLiteral: symbol,
    n.Text: no_value,
}

EFFECTS: dict[type[SyntaxNode], Effect] = {
    **conditions.EFFECTS,
    n.Assignment: assignment_effect,
    n.Body: body_effect,
    n.RubyBreak: blocks.break_effect,
    n.ConditionalAssignment: conditional_assignment_effect,
    n.RubyMethodCall: method_call_effect,
    n.MethodDefinition: blocks.method_definition,
    n.RubyNext: blocks.next_effect,
    n.RubyOutput: output,
    n.SeveralAssignments: several_effect,
    n.Text: text,
}
