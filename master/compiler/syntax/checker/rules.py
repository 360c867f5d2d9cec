"""The rules, by construct; each is called once for each of its nodes, from the outside in."""

from __future__ import annotations

import re

from shared.errors import EvaluationError
from shared.regexps import Regexp

from .. import nodes as n
from . import definitions, syntaxes
from .effects import untitled_resource, without_effect
from .findings import CheckReport, NodeContext, Rule
from .labels import label, sentence, with_article

MAX_INTEGER = 2**63 - 1

_VARIABLE = re.compile(r"(?:::)?(?:[a-z]\w*::)*[a-z_]\w*", re.ASCII)
_MATCH_VARIABLE = re.compile(r"0|[1-9][0-9]*")
_VALUES = frozenset(
    (
        n.VariableExpression,
        n.StringLiteral,
        n.QualifiedName,
        n.ConcatenatedString,
        n.AccessExpression,
        n.UndefLiteral,
        n.BooleanLiteral,
        n.IntegerLiteral,
        n.QualifiedReference,
        n.ArrayLiteral,
        n.HashLiteral,
    )
)
"""What most values are."""
_DEFINITIONS = (n.ClassDefinition, n.DefineDefinition, n.NodeDefinition, n.FunctionDefinition, n.TypeAliasDefinition)


def has_value(node: n.SyntaxNode, found: CheckReport) -> None:
    """Definitions and collectors have none."""
    if type(node) in _VALUES:
        return
    while isinstance(node, n.ParenthesizedExpression | n.UnaryOperation | n.TextExpression):
        node = node.operand if isinstance(node, n.UnaryOperation) else node.expression
    if isinstance(node, (n.CollectorExpression, *_DEFINITIONS)):
        found.error(f"Invalid use of expression. {sentence(node)} does not produce a value", node)


def _illegal(node: n.SyntaxNode, feature: str, container: n.SyntaxNode, found: CheckReport) -> None:
    message = f"Illegal expression. {sentence(node)} is unacceptable as {feature} in {with_article(container)}"
    found.error(message, node)


# --- literals and names -------------------------------------------------------------------------------------------


def _integer(node: n.IntegerLiteral, place: NodeContext, found: CheckReport) -> None:
    if node.value > MAX_INTEGER:
        message = f"A Literal Integer resulted in a value outside of Puppet Integer max range, got '+{node.value:#x}'"
        found.error(message, node)


def _regex(node: n.RegexpLiteral, place: NodeContext, found: CheckReport) -> None:
    try:
        _ = Regexp(node.source).pattern
    except EvaluationError as error:
        found.error(error.message, node, error.hint)


def _reserved(node: n.ReservedWord, place: NodeContext, found: CheckReport) -> None:
    found.error(f"Use of reserved word: {node.word}, must be quoted if intended to be a String value", node)


def _variable(node: n.VariableExpression, place: NodeContext, found: CheckReport) -> None:
    name = node.name
    if name in found.good_names:
        return
    if name[:1].isdigit():
        if not _MATCH_VARIABLE.fullmatch(name):
            message = f"Illegal numeric variable name, The given name '{name}' must be a decimal value if it starts with a digit 0-9"
            found.error(message, node)
    elif _VARIABLE.fullmatch(name):
        found.good_names.add(name)
    else:
        rule = "/^((::)?[a-z]\\w*)*((::)?[a-z_]\\w*)$/"
        found.error(f"Illegal variable name, The given name '{name}' does not conform to the naming rule {rule}", node)


def _array(node: n.ArrayLiteral, place: NodeContext, found: CheckReport) -> None:
    for value in node.values:
        has_value(value, found)


def _entry(node: n.HashEntry, place: NodeContext, found: CheckReport) -> None:
    has_value(node.key, found)
    has_value(node.value, found)


def _hash(node: n.HashLiteral, place: NodeContext, found: CheckReport) -> None:
    seen = set()
    for entry in node.entries:
        key = _literal(entry.key)
        if key is None:
            continue
        if key in seen:
            found.by_strict(f"The key '{key[1]}' is declared more than once", entry)
        seen.add(key)


def _literal(node: n.SyntaxNode) -> tuple[str, object] | None:
    """A key to compare literals by, and how they are shown; None for what is only known when run."""
    if isinstance(node, n.ConcatenatedString) and len(node.segments) == 1:
        node = node.segments[0]
    if isinstance(node, n.StringLiteral | n.QualifiedName):
        return "string", node.value
    if isinstance(node, n.IntegerLiteral | n.FloatLiteral):
        return type(node).__name__, node.value
    if isinstance(node, n.BooleanLiteral):
        return "boolean", str(node.value).lower()
    if isinstance(node, n.UndefLiteral):
        return "undef", ""
    if isinstance(node, n.DefaultLiteral):
        return "default", "default"
    return None


def _heredoc(node: n.HeredocExpression, place: NodeContext, found: CheckReport) -> None:
    if isinstance(node.text, n.StringLiteral):
        problem = syntaxes.problem(node.text.value, node.syntax, found.check)
        if problem:
            found.error(problem, node.text)


# --- operators and calls ------------------------------------------------------------------------------------------


def _binary(node: n.BinaryOperation, place: NodeContext, found: CheckReport) -> None:
    if node.op == "=":
        _assigned(node.left, found)
        has_value(node.right, found)
    elif node.op in ("+=", "-="):
        found.error(f"The operator '{node.op}' is no longer supported. See http://links.puppet.com/remove-plus-equals", node)
    elif node.op in ("->", "~>", "<-", "<~"):
        for side in (node.left, node.right):
            if not isinstance(side, n.CollectorExpression):
                has_value(side, found)
    else:
        has_value(node.left, found)
        has_value(node.right, found)


def _assigned(node: n.SyntaxNode, found: CheckReport) -> None:
    """The left side of an assignment."""
    pending = [node]
    while pending:
        each = pending.pop()
        if isinstance(each, n.ArrayLiteral):
            pending.extend(reversed(each.values))
        elif isinstance(each, n.AccessExpression):
            found.error("Illegal attempt to assign via [index/key]. Not an assignable reference", each)
        elif not isinstance(each, n.VariableExpression):
            found.error(f"Illegal attempt to assign to '{with_article(each)}'. Not an assignable reference", each)
        elif _MATCH_VARIABLE.fullmatch(each.name):
            message = f"Illegal attempt to assign to the numeric match result variable '${each.name}'. Numeric variables are not assignable"
            found.error(message, each)
        elif "::" in each.name:
            found.error(f"Illegal attempt to assign to '{each.name}'. Cannot assign to variables in other namespaces", each)


def _unary(node: n.UnaryOperation, place: NodeContext, found: CheckReport) -> None:
    has_value(node.operand, found)


def _inner(node: n.ParenthesizedExpression | n.TextExpression, place: NodeContext, found: CheckReport) -> None:
    has_value(node.expression, found)


def _call(node: n.FunctionCall, place: NodeContext, found: CheckReport) -> None:
    functor = node.functor
    if isinstance(functor, n.AccessExpression):
        functor = functor.left if isinstance(functor.left, n.QualifiedReference) else functor
    if isinstance(functor, n.RenderText):
        found.error("Ambiguous EPP parameter expression. Probably missing '<%-' before parameters to remove leading whitespace", node)
    elif not isinstance(functor, n.QualifiedName | n.QualifiedReference):
        _illegal(functor, "function name", node, found)


# --- choices and blocks -------------------------------------------------------------------------------------------


def _block(node: n.BlockExpression, place: NodeContext, found: CheckReport) -> None:
    untitled = untitled_resource(node)
    if untitled is not None:
        found.error(
            f"This expression is invalid. Did you try declaring a '{untitled}' resource without a title?",
            node,
            f"A resource is written {untitled} {{ 'title': attribute => value }}.",
        )
        return
    for statement in node.statements[:-1]:
        if without_effect(statement):
            message = (
                f"This {label(statement)} has no effect. A value was produced and then forgotten "
                "(one or more preceding expressions may have the wrong form)"
            )
            found.error(message, statement)
            return


def _test(node: n.IfExpression | n.UnlessExpression, place: NodeContext, found: CheckReport) -> None:
    has_value(node.test, found)


def _case(node: n.CaseExpression, place: NodeContext, found: CheckReport) -> None:
    has_value(node.test, found)
    _one_default([value for option in node.options for value in option.values], node, found)


def _case_option(node: n.CaseOption, place: NodeContext, found: CheckReport) -> None:
    for value in node.values:
        has_value(value, found)


def _selector(node: n.SelectorExpression, place: NodeContext, found: CheckReport) -> None:
    has_value(node.left, found)
    _one_default([entry.match for entry in node.entries], node, found, every=False)


def _selector_entry(node: n.SelectorEntry, place: NodeContext, found: CheckReport) -> None:
    has_value(node.match, found)


def _one_default(values: list[n.SyntaxNode], container: n.SyntaxNode, found: CheckReport, *, every: bool = True) -> None:
    defaults = [value for value in values if isinstance(value, n.DefaultLiteral)]
    for value in defaults[1 : None if every else 2]:
        found.error(f"This {label(container)} already has a 'default' entry - this is a duplicate", value)


# --- resources ----------------------------------------------------------------------------------------------------


def _resource(node: n.ResourceExpression, place: NodeContext, found: CheckReport) -> None:
    if node.form and isinstance(node.type, n.QualifiedName) and node.type.value == "class":
        found.error("Classes are not virtualizable", node)


def _body(node: n.ResourceBody, place: NodeContext, found: CheckReport) -> None:
    splats = [each for each in node.attributes if isinstance(each, n.AttributeSplat)]
    for each in splats[1:]:
        found.error("Unfolding of attributes from Hash can only be used once per resource body", each)


def _not_virtual(node: n.ResourceDefaultsExpression | n.ResourceOverrideExpression, place: NodeContext, found: CheckReport) -> None:
    if node.form:
        found.error("Resource Defaults are not virtualizable", node)


def _attribute(node: n.AttributeOperation, place: NodeContext, found: CheckReport) -> None:
    container = place.within.node if place.within else node
    if node.op == "+>" and not isinstance(container, n.CollectorExpression | n.ResourceOverrideExpression):
        message = f"Illegal +> operation on attribute {node.name}. This operator can not be used in {with_article(container)}"
        found.error(message, node)
    has_value(node.value, found)


def _splat(node: n.AttributeSplat, place: NodeContext, found: CheckReport) -> None:
    has_value(node.value, found)


def _collector(node: n.CollectorExpression, place: NodeContext, found: CheckReport) -> None:
    if not isinstance(node.type, n.QualifiedReference):
        _illegal(node.type, "type name", node, found)
    pending = [] if isinstance(node.query, n.Nop) else [node.query]
    while pending:
        each = pending.pop()
        if isinstance(each, n.ParenthesizedExpression):
            pending.append(each.expression)
        elif isinstance(each, n.BinaryOperation) and each.op in ("and", "or"):
            pending += (each.right, each.left)
        elif isinstance(each, n.BinaryOperation) and each.op in ("==", "!="):
            continue
        elif not isinstance(
            each, n.VariableExpression | n.QualifiedName | n.IntegerLiteral | n.FloatLiteral | n.StringLiteral | n.BooleanLiteral
        ):
            found.error(f"Illegal query expression. {sentence(each)} cannot be used in a query", each)


RULES: dict[type[n.SyntaxNode], Rule] = {
    n.IntegerLiteral: _integer,
    n.RegexpLiteral: _regex,
    n.ReservedWord: _reserved,
    n.VariableExpression: _variable,
    n.ArrayLiteral: _array,
    n.HashEntry: _entry,
    n.HashLiteral: _hash,
    n.HeredocExpression: _heredoc,
    n.BinaryOperation: _binary,
    n.UnaryOperation: _unary,
    n.ParenthesizedExpression: _inner,
    n.TextExpression: _inner,
    n.FunctionCall: _call,
    n.BlockExpression: _block,
    n.IfExpression: _test,
    n.UnlessExpression: _test,
    n.CaseExpression: _case,
    n.CaseOption: _case_option,
    n.SelectorExpression: _selector,
    n.SelectorEntry: _selector_entry,
    n.ResourceExpression: _resource,
    n.ResourceBody: _body,
    n.ResourceDefaultsExpression: _not_virtual,
    n.ResourceOverrideExpression: _not_virtual,
    n.AttributeOperation: _attribute,
    n.AttributeSplat: _splat,
    n.CollectorExpression: _collector,
    **definitions.RULES,
}
