"""Truth and conditions as Python: `and`, `or`, `if`, `case`."""

from __future__ import annotations

import ast

from ...codegen.writer import STORE, Effect, Rule, Writer, constant_of, load
from ...syntax.nodes import SyntaxNode
from .. import nodes as n
from ..errors import Refusal


def truth(writer: Writer, node: SyntaxNode) -> ast.expr:
    """Return the condition that a value is neither nil nor false, as Python tests it."""
    if isinstance(node, n.RubyNot):
        return writer.at(node, ast.UnaryOp(ast.Not(), truth(writer, node.operand)))
    if isinstance(node, n.And | n.Or):
        left = truth(writer, node.left)
        with writer.block() as statements:
            right = truth(writer, node.right)
        operator: ast.boolop = ast.And() if isinstance(node, n.And) else ast.Or()
        if not statements:
            return writer.at(node, ast.BoolOp(operator, [left, right]))
        name = writer.new_name("t")
        writer.emit(ast.Assign([ast.Name(name, STORE)], left), node)
        statements.append(_placed_assign(writer, name, right, node))
        test: ast.expr = load(name)
        writer.emit(ast.If(test if isinstance(node, n.And) else ast.UnaryOp(ast.Not(), test), statements, []), node)
        return writer.at(node, load(name))
    return truth_of(writer, writer.value(node), node)


def _placed_assign(writer: Writer, name: str, value: ast.expr, node: SyntaxNode) -> ast.stmt:
    statement = ast.Assign([ast.Name(name, STORE)], value)
    writer.set_place(statement, node)
    return statement


_CONDITIONS = frozenset(
    ("_equal", "_less", "_less_or_equal", "_greater", "_greater_or_equal", "_is_class", "_empty_p", "_nil_p", "_include_p")
)


def truth_of(writer: Writer, value: ast.expr, node: SyntaxNode) -> ast.expr:
    """Return the condition that the value of an expression is neither nil nor false."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in _CONDITIONS:
        return value  # these return nothing but booleans
    if isinstance(value, ast.Compare):
        return value
    first = value
    if not isinstance(value, ast.Name):
        name = writer.new_name("t")
        first, value = ast.NamedExpr(ast.Name(name, STORE), value), load(name)
    not_nil = ast.Compare(first, [ast.IsNot()], [constant_of(None)])
    not_false = ast.Compare(load(value.id), [ast.IsNot()], [constant_of(False)])
    return writer.at(node, ast.BoolOp(ast.And(), [not_nil, not_false]))


def not_(writer: Writer, node: n.RubyNot) -> ast.expr:
    return writer.at(node, ast.UnaryOp(ast.Not(), truth(writer, node.operand)))


def and_or(writer: Writer, node: n.And | n.Or) -> ast.expr:
    """The value is that of the operand that decides."""
    name = writer.new_name("t")
    writer.emit(ast.Assign([ast.Name(name, STORE)], writer.value(node.left)), node)
    test = truth_of(writer, load(name), node)
    if isinstance(node, n.Or):
        test = writer.at(node, ast.UnaryOp(ast.Not(), test))
    with writer.block() as statements:
        writer.emit(ast.Assign([ast.Name(name, STORE)], writer.value(node.right)), node)
    writer.emit(ast.If(test, statements, []), node)
    return writer.at(node, load(name))


def and_or_effect(writer: Writer, node: n.And | n.Or) -> None:
    test = truth(writer, node.left)
    if isinstance(node, n.Or):
        test = writer.at(node, ast.UnaryOp(ast.Not(), test))
    with writer.block() as statements:
        writer.effect(node.right)
    writer.emit(ast.If(test, statements or [ast.Pass()], []), node)


# --- branches -----------------------------------------------------------------------------------------------------


def if_effect(writer: Writer, node: n.If, result: str | None = None) -> None:
    test = truth(writer, node.test)
    if node.negated:
        test = writer.at(node, ast.UnaryOp(ast.Not(), test))
    then, otherwise = branch_of(writer, node.then, result), branch_of(writer, node.otherwise, result)
    writer.emit(ast.If(test, then or [ast.Pass()], otherwise), node)


def branch_of(writer: Writer, node: SyntaxNode, result: str | None) -> list[ast.stmt]:
    """Return the statements of one of several ways; the name `result`, if there is one, gets its value."""
    with writer.block() as statements:
        if result is None:
            writer.effect(node)
        else:
            writer.emit(ast.Assign([ast.Name(result, STORE)], writer.value(node)), node)
    return statements


def if_value(writer: Writer, node: n.If) -> ast.expr:
    name = writer.new_name("t")
    if_effect(writer, node, name)
    return writer.at(node, load(name))


def case_effect(writer: Writer, node: n.Case, result: str | None = None) -> None:
    subject = writer.name_for(writer.value(node.subject), node.subject) if node.subject is not None else None
    _options(writer, node, subject, 0, result)


def _options(writer: Writer, node: n.Case, subject: ast.expr | None, index: int, result: str | None) -> None:
    """Write the options of a case from one on; each is tested when those before it did not match."""
    if index == len(node.options):
        if result is None:
            writer.effect(node.otherwise)
        else:
            writer.emit(ast.Assign([ast.Name(result, STORE)], writer.value(node.otherwise)), node)
        return
    patterns, then = node.options[index]
    tests: list[ast.expr] = []
    for pattern in patterns:
        with writer.block() as statements:
            test = _pattern_test(writer, pattern, subject)
        if statements:
            raise Refusal("a pattern that needs statements", pattern.at)
        tests.append(test)
    test = tests[0] if len(tests) == 1 else writer.at(node, ast.BoolOp(ast.Or(), tests))
    branch = branch_of(writer, then, result)
    with writer.block() as rest:
        _options(writer, node, subject, index + 1, result)
    writer.emit(ast.If(test, branch or [ast.Pass()], rest), node)


def _pattern_test(writer: Writer, pattern: SyntaxNode, subject: ast.expr | None) -> ast.expr:
    if subject is None:
        return truth(writer, pattern)
    subject_again = again(subject)
    if isinstance(pattern, n.ClassName):
        return writer.at(pattern, writer.runtime_call("_is_class", subject_again, constant_of(pattern.name)))
    return writer.at(pattern, writer.runtime_call("_case_equal", writer.value(pattern), subject_again))


def again(value: ast.expr) -> ast.expr:
    """Return a constant or name once more, as a node of its own."""
    return ast.copy_location(load(value.id) if isinstance(value, ast.Name) else constant_of(getattr(value, "value", None)), value)


def case_value(writer: Writer, node: n.Case) -> ast.expr:
    name = writer.new_name("t")
    case_effect(writer, node, name)
    return writer.at(node, load(name))


RULES: dict[type[SyntaxNode], Rule] = {n.And: and_or, n.Case: case_value, n.If: if_value, n.RubyNot: not_, n.Or: and_or}

EFFECTS: dict[type[SyntaxNode], Effect] = {n.And: and_or_effect, n.Case: case_effect, n.If: if_effect, n.Or: and_or_effect}
