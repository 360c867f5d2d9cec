"""Which expressions do nothing but have a value."""

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


def without_effect(node: n.SyntaxNode) -> bool:
    """Whether evaluating the node changes nothing. A match counts as an effect: it sets `$1`."""
    if type(node) in _ALWAYS:
        return True
    if isinstance(node, n.BinaryOperation):
        return node.op not in _ACTING
    if isinstance(node, n.ParenthesizedExpression):
        return without_effect(node.expression)
    if isinstance(node, n.BlockExpression):
        return all(map(without_effect, node.statements))
    if isinstance(node, n.IfExpression | n.UnlessExpression):
        return without_effect(node.test) and without_effect(node.then) and without_effect(node.otherwise)
    if isinstance(node, n.CaseExpression):
        return without_effect(node.test) and all(
            all(map(without_effect, option.values)) and without_effect(option.then) for option in node.options
        )
    return False


def value_at_end(body: n.SyntaxNode) -> n.SyntaxNode | None:
    """The last statement of a body when it has a value but no effect; None when all is well."""
    last = body.statements[-1] if isinstance(body, n.BlockExpression) else body
    return last if not isinstance(last, n.Nop) and without_effect(last) else None


def untitled_resource(node: n.SyntaxNode) -> str | None:
    """The type in `type { attribute => value }`, which reads as a name and a hash; None for everything else."""
    if isinstance(node, n.BlockExpression) and len(node.statements) == 2:
        name, attributes = node.statements
        if isinstance(name, n.QualifiedName) and isinstance(attributes, n.HashLiteral):
            return name.value
    return None
