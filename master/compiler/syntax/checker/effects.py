"""Which expressions do nothing but have a value."""

from __future__ import annotations

from .. import nodes as n

_ALWAYS = frozenset(
    (
        n.Nop,
        n.Integer,
        n.Float,
        n.String,
        n.Boolean,
        n.Undef,
        n.Default,
        n.Regex,
        n.Array,
        n.Hash,
        n.Name,
        n.TypeName,
        n.Interpolated,
        n.Heredoc,
        n.Variable,
        n.Access,
        n.Unary,
        n.Selector,
        n.Reserved,
    )
)
_ACTING = frozenset(("=~", "!~", "=", "+=", "-=", "->", "~>", "<-", "<~"))


def without_effect(node: n.Node) -> bool:
    """Whether evaluating the node changes nothing. A match counts as an effect: it sets `$1`."""
    if type(node) in _ALWAYS:
        return True
    if isinstance(node, n.Binary):
        return node.op not in _ACTING
    if isinstance(node, n.Parenthesized):
        return without_effect(node.expression)
    if isinstance(node, n.Block):
        return all(map(without_effect, node.statements))
    if isinstance(node, n.If | n.Unless):
        return without_effect(node.test) and without_effect(node.then) and without_effect(node.otherwise)
    if isinstance(node, n.Case):
        return without_effect(node.test) and all(
            all(map(without_effect, option.values)) and without_effect(option.then) for option in node.options
        )
    return False


def value_at_end(body: n.Node) -> n.Node | None:
    """The last statement of a body when it has a value but no effect; None when all is well."""
    last = body.statements[-1] if isinstance(body, n.Block) else body
    return last if not isinstance(last, n.Nop) and without_effect(last) else None


def untitled_resource(node: n.Node) -> str | None:
    """The type in `type { attribute => value }`, which reads as a name and a hash; None for everything else."""
    if isinstance(node, n.Block) and len(node.statements) == 2:
        name, attributes = node.statements
        if isinstance(name, n.Name) and isinstance(attributes, n.Hash):
            return name.value
    return None
