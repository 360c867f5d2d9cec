"""Blocks, conditionals, case and selector."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from ..syntax import nodes as n
from .expressions import truth
from .writer import STORE, Writer, constant_of, load

Branch = Callable[[], None]


def block(writer: Writer, node: n.BlockExpression) -> ast.expr:
    if not node.statements:
        return writer.at(node, constant_of(None))
    for statement in node.statements[:-1]:
        writer.effect(statement)
    return writer.value(node.statements[-1])


def block_effect(writer: Writer, node: n.BlockExpression) -> None:
    for statement in node.statements:
        writer.effect(statement)


# --- if, unless ---------------------------------------------------------------------------------------------------


def if_value(writer: Writer, node: n.IfExpression | n.UnlessExpression) -> ast.expr:
    name = writer.new_name("t")
    if_effect(writer, node, name)
    return writer.at(node, load(name))


def if_effect(writer: Writer, node: n.IfExpression | n.UnlessExpression, result: str | None = None) -> None:
    """Emit the statement; the value of the branch taken goes into the variable `result`."""
    saved = _save_matches(writer, node, node.test)
    test = truth(writer, node.test)
    if isinstance(node, n.UnlessExpression):
        test = writer.at(node.test, ast.UnaryOp(ast.Not(), test))
    known = set(writer.frame.known)
    then, after_then = _branch(writer, node.then, result)
    otherwise, after_otherwise = _branch(writer, node.otherwise, result)
    # Only what both branches assign is certain to have a value afterwards.
    writer.frame.known = known | (after_then & after_otherwise)
    writer.emit(ast.If(test, then or [ast.Pass()], otherwise), node)
    _restore_matches(writer, node, saved)


def _branch(writer: Writer, node: n.SyntaxNode, result: str | None) -> tuple[list[ast.stmt], set[str]]:
    """Return the statements of a branch, and the variables that are certainly set after them."""
    with writer.block() as statements:
        _finish(writer, node, result)
        after = set(writer.frame.known)
    return statements, after


def _finish(writer: Writer, node: n.SyntaxNode, result: str | None) -> None:
    if result is None:
        if not isinstance(node, n.Nop):
            writer.effect(node)
        return
    value = writer.value(node)
    writer.emit(ast.Assign([ast.Name(result, STORE)], value), node)


def _save_matches(writer: Writer, node: n.SyntaxNode, *tests: n.SyntaxNode) -> str | None:
    """Save the match variables: those that a test sets live until the end of the statement, when the saved ones are restored."""
    holder = writer.frame.matches
    if holder is None:
        return None
    saved = writer.new_name("s")
    writer.emit(ast.Assign([ast.Name(saved, STORE)], ast.Attribute(load(holder), "last", ast.Load())), node)
    return saved


def _restore_matches(writer: Writer, node: n.SyntaxNode, saved: str | None) -> None:
    if saved is not None and writer.frame.matches is not None:
        writer.emit(ast.Assign([ast.Attribute(load(writer.frame.matches), "last", STORE)], load(saved)), node)


# --- case ---------------------------------------------------------------------------------------------------------


def case_value(writer: Writer, node: n.CaseExpression) -> ast.expr:
    name = writer.new_name("t")
    case_effect(writer, node, name)
    return writer.at(node, load(name))


def case_effect(writer: Writer, node: n.CaseExpression, result: str | None = None) -> None:
    """Emit the statement; the value of the branch taken goes into the variable `result`."""
    saved = _save_matches(writer, node, node.test)
    subject = writer.name_for(writer.value(node.test), node.test)
    options = [(option.values, option.then) for option in node.options]
    default = next((then for values, then in options if any(_is_default(value) for value in values)), None)

    def no_match() -> None:
        if default is not None:
            _finish(writer, default, result)
        elif result is not None:
            writer.emit(ast.Assign([ast.Name(result, STORE)], constant_of(None)), node)

    writer.mark(node, "a 'case' statement")
    _options(writer, node, subject, options, result, no_match)
    _restore_matches(writer, node, saved)


def selector(writer: Writer, node: n.SelectorExpression) -> ast.expr:
    saved = _save_matches(writer, node, node.left)
    subject = writer.name_for(writer.value(node.left), node.left)
    name = writer.new_name("t")
    options = [((entry.match,), entry.value) for entry in node.entries]
    # Of several defaults the last one counts in a selector, but the first one in a case.
    default = next((value for (match,), value in reversed(options) if _is_default(match)), None)

    def no_match() -> None:
        if default is not None:
            _finish(writer, default, name)
        else:
            writer.emit(ast.Expr(writer.runtime_call("_no_selector_entry", subject)), node.left)

    writer.mark(node.left, "a Selector Expression")
    _options(writer, node.left, subject, options, name, no_match)
    _restore_matches(writer, node, saved)
    return writer.at(node, load(name))


def _is_default(node: n.SyntaxNode) -> bool:
    while isinstance(node, n.ParenthesizedExpression):
        node = node.expression
    return isinstance(node, n.DefaultLiteral)


def _options(
    writer: Writer,
    place: n.SyntaxNode,
    subject: ast.expr,
    options: Sequence[tuple[Sequence[n.SyntaxNode], n.SyntaxNode]],
    result: str | None,
    no_match: Branch,
) -> None:
    """
    Write `if` the first option matches …, else the next one: an option is evaluated only when all before it failed.

    Errors of the comparisons are those of `place`. Every branch starts with the variables that are set before the construct; after it,
    only those that every branch sets count as set.
    """
    known = set(writer.frame.known)
    outcomes: list[set[str]] = []
    opened: list[list[ast.stmt]] = []
    outside = writer.frame.block
    for values, then in options:
        tests = _tests(writer, place, subject, values)
        if not tests:
            continue
        test = tests[0] if len(tests) == 1 else writer.at(then, ast.BoolOp(ast.Or(), tests))
        statements, after = _branch(writer, then, result)
        outcomes.append(after)
        otherwise: list[ast.stmt] = []
        branch = ast.If(test, statements or [ast.Pass()], otherwise)
        writer.emit(branch, then)
        opened.append(otherwise)
        writer.frame.block = otherwise
    no_match()
    outcomes.append(set(writer.frame.known))
    writer.frame.block = outside
    common = set.intersection(*outcomes)
    writer.frame.known = known | common


def _tests(writer: Writer, place: n.SyntaxNode, subject: ast.expr, values: Sequence[n.SyntaxNode]) -> list[ast.expr]:
    """
    Return the tests for the values of one option, to be joined with `or`.

    A value that needs statements of its own is tested in a statement after the tests of those before it.
    """
    tests: list[ast.expr] = []
    for value in values:
        # The default matches nothing by itself; it is the `else` of the whole construct.
        if _is_default(value):
            continue
        if tests:
            with writer.block() as statements:
                before = writer.hoisted
                test = _test(writer, place, subject, value)
                plain = writer.hoisted == before
            # Without statements of its own the test can stand in one `or` with the earlier ones.
            if plain:
                writer.frame.block.extend(statements)
                tests.append(test)
                continue
            name = writer.new_name("t")
            earlier = tests[0] if len(tests) == 1 else writer.at(value, ast.BoolOp(ast.Or(), tests))
            writer.emit(ast.Assign([ast.Name(name, STORE)], earlier), value)
            assign = ast.Assign([ast.Name(name, STORE)], test)
            writer.set_place(assign, value)
            writer.emit(ast.If(ast.UnaryOp(ast.Not(), load(name)), [*statements, assign], []), value)
            tests = [writer.at(value, load(name))]
            continue
        tests.append(_test(writer, place, subject, value))
    return tests


def _test(writer: Writer, place: n.SyntaxNode, subject: ast.expr, value: n.SyntaxNode) -> ast.expr:
    holder: ast.expr = load(writer.frame.matches) if writer.frame.matches else constant_of(None)
    inner = value
    while isinstance(inner, n.ParenthesizedExpression):
        inner = inner.expression
    subject = ast.Name(subject.id, ast.Load()) if isinstance(subject, ast.Name) else subject
    # The error of an option that cannot be compared with the value is placed at the whole construct, `place`.
    if isinstance(inner, n.UnaryOperation) and inner.op == "*":
        return writer.at(place, writer.runtime_call("_any_case", writer.value(inner), subject, holder))
    return writer.at(place, writer.runtime_call("_case", writer.value(value), subject, holder))


RULES = {
    n.BlockExpression: block,
    n.IfExpression: if_value,
    n.UnlessExpression: if_value,
    n.CaseExpression: case_value,
    n.SelectorExpression: selector,
}

EFFECTS = {
    n.BlockExpression: block_effect,
    n.IfExpression: if_effect,
    n.UnlessExpression: if_effect,
    n.CaseExpression: case_effect,
}
