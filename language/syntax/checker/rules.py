"""The rules by construct. Each is called once for each node of its class, outer nodes first."""

from __future__ import annotations

import json
import re

from shared.errors import EvaluationError
from shared.regexps import Regexp

from .. import nodes as n
from . import definitions, syntaxes
from .effects import is_without_effect, untitled_resource
from .labels import label, sentence, with_article
from .report import CheckReport, NodeContext, Rule

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
"""The kind of most values."""
_DEFINITIONS = (n.ClassDefinition, n.DefineDefinition, n.NodeDefinition, n.FunctionDefinition, n.TypeAliasDefinition)


def check_has_value(node: n.SyntaxNode, report: CheckReport) -> None:
    """Report a definition or collector that is used as a value."""
    if type(node) in _VALUES:
        return
    while isinstance(node, n.ParenthesizedExpression | n.UnaryOperation | n.TextExpression):
        node = node.operand if isinstance(node, n.UnaryOperation) else node.expression
    if isinstance(node, (n.CollectorExpression, *_DEFINITIONS)):
        report.error(f"Invalid use of expression. {sentence(node)} does not produce a value", node)


def _refuse_construct(node: n.SyntaxNode, feature: str, container: n.SyntaxNode, report: CheckReport) -> None:
    message = f"Illegal expression. {sentence(node)} is unacceptable as {feature} in {with_article(container)}"
    report.error(message, node)


# --- literals and names -------------------------------------------------------------------------------------------


def _integer(node: n.IntegerLiteral, context: NodeContext, report: CheckReport) -> None:
    if node.value > MAX_INTEGER:
        message = f"A Literal Integer resulted in a value outside of Puppet Integer max range, got '+{node.value:#x}'"
        report.error(message, node)


def _regex(node: n.RegexpLiteral, context: NodeContext, report: CheckReport) -> None:
    try:
        _ = Regexp(node.source).pattern
    except EvaluationError as error:
        report.error(error.message, node, error.hint)


def _reserved(node: n.ReservedWord, context: NodeContext, report: CheckReport) -> None:
    report.error(f"Use of reserved word: {node.word}, must be quoted if intended to be a String value", node)


def _variable(node: n.VariableExpression, context: NodeContext, report: CheckReport) -> None:
    name = node.name
    if name in report.good_names:
        return
    if name[:1].isdigit():
        if not _MATCH_VARIABLE.fullmatch(name):
            message = f"Illegal numeric variable name, The given name '{name}' must be a decimal value if it starts with a digit 0-9"
            report.error(message, node)
    elif _VARIABLE.fullmatch(name):
        report.good_names.add(name)
    else:
        rule = "/^((::)?[a-z]\\w*)*((::)?[a-z_]\\w*)$/"
        report.error(f"Illegal variable name, The given name '{name}' does not conform to the naming rule {rule}", node)


def _array(node: n.ArrayLiteral, context: NodeContext, report: CheckReport) -> None:
    for value in node.values:
        check_has_value(value, report)


def _entry(node: n.HashEntry, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.key, report)
    check_has_value(node.value, report)


def _hash(node: n.HashLiteral, context: NodeContext, report: CheckReport) -> None:
    seen = set()
    for entry in node.entries:
        key = _literal(entry.key)
        if key is None:
            continue
        if key in seen:
            report.add_by_strictness(f"The key '{key[1]}' is declared more than once", entry)
        seen.add(key)


def _literal(node: n.SyntaxNode) -> tuple[str, object] | None:
    """Return the class of a literal and its value, by which duplicates are found; None for other expressions."""
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
    if isinstance(node, n.ArrayLiteral):
        return _collection("array", "[]", [_inspected(value) for value in node.values])
    if isinstance(node, n.HashLiteral):
        texts = [(_inspected(entry.key), _inspected(entry.value)) for entry in node.entries]
        return _collection("hash", "{}", [None if key is None or value is None else f"{key}=>{value}" for key, value in texts])
    return None


def _collection(kind: str, brackets: str, parts: list[str | None]) -> tuple[str, str] | None:
    known = [part for part in parts if part is not None]
    return (kind, f"{brackets[0]}{', '.join(known)}{brackets[1]}") if len(known) == len(parts) else None


def _inspected(node: n.SyntaxNode) -> str | None:
    """Return a literal inside another one as Ruby shows it; None for other expressions."""
    literal = _literal(node)
    if literal is None:
        return None
    kind, value = literal
    return {"string": json.dumps(value, ensure_ascii=False), "undef": "nil", "default": ":default"}.get(kind, str(value))


def _heredoc(node: n.HeredocExpression, context: NodeContext, report: CheckReport) -> None:
    if isinstance(node.text, n.StringLiteral):
        problem = syntaxes.problem(node.text.value, node.syntax, report.check)
        if problem:
            report.error(problem, node.text)


# --- operators and calls ------------------------------------------------------------------------------------------


def _binary(node: n.BinaryOperation, context: NodeContext, report: CheckReport) -> None:
    if node.op == "=":
        _check_assignable(node.left, report)
        check_has_value(node.right, report)
    elif node.op in ("+=", "-="):
        report.error(f"The operator '{node.op}' is no longer supported. See http://links.puppet.com/remove-plus-equals", node)
    elif node.op in ("->", "~>", "<-", "<~"):
        for side in (node.left, node.right):
            if not isinstance(side, n.CollectorExpression):
                check_has_value(side, report)
    else:
        check_has_value(node.left, report)
        check_has_value(node.right, report)


def _check_assignable(node: n.SyntaxNode, report: CheckReport) -> None:
    """Report the parts of the left side of an assignment that cannot be assigned to."""
    pending = [node]
    while pending:
        target = pending.pop()
        if isinstance(target, n.ArrayLiteral):
            pending.extend(reversed(target.values))
        elif isinstance(target, n.AccessExpression):
            report.error("Illegal attempt to assign via [index/key]. Not an assignable reference", target)
        elif not isinstance(target, n.VariableExpression):
            report.error(f"Illegal attempt to assign to '{with_article(target)}'. Not an assignable reference", target)
        elif _MATCH_VARIABLE.fullmatch(target.name):
            message = (
                f"Illegal attempt to assign to the numeric match result variable '${target.name}'. Numeric variables are not assignable"
            )
            report.error(message, target)
        elif "::" in target.name:
            report.error(f"Illegal attempt to assign to '{target.name}'. Cannot assign to variables in other namespaces", target)


def _unary(node: n.UnaryOperation, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.operand, report)


def _inner(node: n.ParenthesizedExpression | n.TextExpression, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.expression, report)


def _call(node: n.FunctionCall, context: NodeContext, report: CheckReport) -> None:
    functor = node.functor
    if isinstance(functor, n.AccessExpression):
        functor = functor.left if isinstance(functor.left, n.QualifiedReference) else functor
    if isinstance(functor, n.RenderText):
        report.error("Ambiguous EPP parameter expression. Probably missing '<%-' before parameters to remove leading whitespace", node)
    elif not isinstance(functor, n.QualifiedName | n.QualifiedReference):
        _refuse_construct(functor, "function name", node, report)


# --- choices and blocks -------------------------------------------------------------------------------------------


def _block(node: n.BlockExpression, context: NodeContext, report: CheckReport) -> None:
    untitled = untitled_resource(node)
    if untitled is not None:
        report.error(
            f"This expression is invalid. Did you try declaring a '{untitled}' resource without a title?",
            node,
            f"A resource is written {untitled} {{ 'title': attribute => value }}.",
        )
        return
    for statement in node.statements[:-1]:
        if is_without_effect(statement):
            message = (
                f"This {label(statement)} has no effect. A value was produced and then forgotten "
                "(one or more preceding expressions may have the wrong form)"
            )
            report.error(message, statement)
            return


def _test(node: n.IfExpression | n.UnlessExpression, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.test, report)


def _case(node: n.CaseExpression, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.test, report)
    _check_one_default([value for option in node.options for value in option.values], node, report)


def _case_option(node: n.CaseOption, context: NodeContext, report: CheckReport) -> None:
    for value in node.values:
        check_has_value(value, report)


def _selector(node: n.SelectorExpression, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.left, report)
    _check_one_default([entry.match for entry in node.entries], node, report, every=False)


def _selector_entry(node: n.SelectorEntry, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.match, report)


def _check_one_default(values: list[n.SyntaxNode], container: n.SyntaxNode, report: CheckReport, *, every: bool = True) -> None:
    defaults = [value for value in values if isinstance(value, n.DefaultLiteral)]
    for value in defaults[1 : None if every else 2]:
        report.error(f"This {label(container)} already has a 'default' entry - this is a duplicate", value)


# --- resources ----------------------------------------------------------------------------------------------------


def _resource(node: n.ResourceExpression, context: NodeContext, report: CheckReport) -> None:
    if node.form and isinstance(node.type, n.QualifiedName) and node.type.value == "class":
        report.error("Classes are not virtualizable", node)


def _body(node: n.ResourceBody, context: NodeContext, report: CheckReport) -> None:
    splats = [splat for splat in node.attributes if isinstance(splat, n.AttributeSplat)]
    for splat in splats[1:]:
        report.error("Unfolding of attributes from Hash can only be used once per resource body", splat)


def _not_virtual(node: n.ResourceDefaultsExpression | n.ResourceOverrideExpression, context: NodeContext, report: CheckReport) -> None:
    if node.form:
        report.error("Resource Defaults are not virtualizable", node)


def _attribute(node: n.AttributeOperation, context: NodeContext, report: CheckReport) -> None:
    container = context.within.node if context.within else node
    if node.op == "+>" and not isinstance(container, n.CollectorExpression | n.ResourceOverrideExpression):
        message = f"Illegal +> operation on attribute {node.name}. This operator can not be used in {with_article(container)}"
        report.error(message, node)
    check_has_value(node.value, report)


def _splat(node: n.AttributeSplat, context: NodeContext, report: CheckReport) -> None:
    check_has_value(node.value, report)


def _collector(node: n.CollectorExpression, context: NodeContext, report: CheckReport) -> None:
    if not isinstance(node.type, n.QualifiedReference):
        _refuse_construct(node.type, "type name", node, report)
    pending = [] if isinstance(node.query, n.Nop) else [node.query]
    while pending:
        part = pending.pop()
        if isinstance(part, n.ParenthesizedExpression):
            pending.append(part.expression)
        elif isinstance(part, n.BinaryOperation) and part.op in ("and", "or"):
            pending += (part.right, part.left)
        elif isinstance(part, n.BinaryOperation) and part.op in ("==", "!="):
            continue
        elif not isinstance(
            part, n.VariableExpression | n.QualifiedName | n.IntegerLiteral | n.FloatLiteral | n.StringLiteral | n.BooleanLiteral
        ):
            report.error(f"Illegal query expression. {sentence(part)} cannot be used in a query", part)


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
