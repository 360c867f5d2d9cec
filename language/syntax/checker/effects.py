"""Finds expressions that have a value but no effect."""

from __future__ import annotations

from .. import nodes as n

_ALWAYS = frozenset(
    (
        n.Nop,
        n.IntegerLiteral,
        n.FloatLiteral,
        n.StringLiteral,
        n.BooleanLiteral,
        n.UndefLiteral,
        n.DefaultLiteral,
        n.RegexpLiteral,
        n.ArrayLiteral,
        n.HashLiteral,
        n.QualifiedName,
        n.QualifiedReference,
        n.ConcatenatedString,
        n.HeredocExpression,
        n.VariableExpression,
        n.AccessExpression,
        n.UnaryOperation,
        n.SelectorExpression,
        n.ReservedWord,
    )
)
_ACTING = frozenset(("=~", "!~", "=", "+=", "-=", "->", "~>", "<-", "<~"))


def is_without_effect(node: n.SyntaxNode) -> bool:
    """Return whether evaluating the node changes nothing. A match counts as an effect, because it sets `$1`."""
    if type(node) in _ALWAYS:
        return True
    if isinstance(node, n.BinaryOperation):
        return node.op not in _ACTING
    if isinstance(node, n.ParenthesizedExpression):
        return is_without_effect(node.expression)
    if isinstance(node, n.BlockExpression):
        return all(map(is_without_effect, node.statements))
    if isinstance(node, n.IfExpression | n.UnlessExpression):
        return is_without_effect(node.test) and is_without_effect(node.then) and is_without_effect(node.otherwise)
    if isinstance(node, n.CaseExpression):
        return is_without_effect(node.test) and all(
            all(map(is_without_effect, option.values)) and is_without_effect(option.then) for option in node.options
        )
    return False


def value_at_end(body: n.SyntaxNode) -> n.SyntaxNode | None:
    """Return the last statement of a body when it has a value but no effect; else None."""
    last = body.statements[-1] if isinstance(body, n.BlockExpression) else body
    return last if not isinstance(last, n.Nop) and is_without_effect(last) else None


def untitled_resource(node: n.SyntaxNode) -> str | None:
    """Return the type in `type { attribute => value }`, which is parsed as a name and a hash; None for everything else."""
    if isinstance(node, n.BlockExpression) and len(node.statements) == 2:
        name, attributes = node.statements
        if isinstance(name, n.QualifiedName) and isinstance(attributes, n.HashLiteral):
            return name.value
    return None
