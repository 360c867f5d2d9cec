"""The rules for definitions: their places, names and parameters."""

from __future__ import annotations

import re

from .. import nodes as n
from .effects import untitled_resource, value_at_end
from .labels import label, sentence, with_article
from .report import CHILDREN, CheckReport, NodeContext, Rule

_NAME = re.compile(r"[a-z]\w*(?:::[a-z]\w*)*", re.ASCII)
_TYPE_NAME = re.compile(r"[A-Z]\w*(?:::[A-Z]\w*)*", re.ASCII)
_PARAMETER = re.compile(r"[a-z_]\w*", re.ASCII)
_NUMERIC_PARAMETER = re.compile(r"(?:0x)?[0-9]+")
_NOT_IN_HOSTNAMES = re.compile(r"[^-\w.]", re.ASCII)
_BUILT_IN_PARAMETERS = frozenset(("name", "title"))
# fmt: off
_BUILT_IN_TYPES = frozenset((
    "any", "array", "boolean", "collection", "enum", "float", "hash", "init", "integer", "numeric", "object", "optional", "pattern",
    "regexp", "runtime", "scalar", "semver", "semverrange", "sensitive", "string", "struct", "timespan", "timestamp", "tuple", "type",
    "typeset", "unit", "variant",
))
# fmt: on

Named = n.ClassDefinition | n.DefineDefinition | n.FunctionDefinition


def _check_placement(node: n.SyntaxNode, context: NodeContext, report: CheckReport) -> None:
    """Report a class, define or node that is neither at top level nor in a class, and a function or alias that is not at the very top."""
    container = context.within
    while container and isinstance(container.node, n.BlockExpression):
        outer = container.within
        inside = outer is not None and not isinstance(outer.node, n.Program)
        if inside and isinstance(node, n.FunctionDefinition | n.TypeAliasDefinition):
            report.error(f"{sentence(node)} may only appear at toplevel", node)
            return
        container = outer
    if container and not isinstance(container.node, n.ClassDefinition | n.Program):
        report.error("Classes, definitions, and nodes may only appear at toplevel or inside other classes", node)


def _check_definition(node: Named, context: NodeContext, report: CheckReport) -> None:
    _check_placement(node, context, report)
    if not _NAME.fullmatch(node.name):
        report.error(f"Unacceptable name. The name '{node.name}' is unacceptable as the name of {with_article(node)}", node)
    if report.namespace is not None and not node.name.lower().startswith(report.namespace):
        file = report.source.file or ""
        report.error(f"Unacceptable location. The name '{node.name}' is unacceptable in file '{file}'", node)
    if node.name in _BUILT_IN_TYPES:
        report.error(f"The name: '{node.name}' is already defined by Puppet and can not be used as the name of {with_article(node)}.", node)
    _warn_of_future_reserved(node.name, node, report)


def _warn_of_future_reserved(name: str, node: n.SyntaxNode, report: CheckReport) -> None:
    if name == "plan":
        report.warn_of_deprecation(f"Use of future reserved word: '{name}'", node)


def _class_or_define(node: n.ClassDefinition | n.DefineDefinition, context: NodeContext, report: CheckReport) -> None:
    _check_definition(node, context, report)
    _refuse_captures_rest(node.parameters, node, report)
    _check_unique(node.parameters, report)
    for parameter in node.parameters:
        if parameter.name in _BUILT_IN_PARAMETERS:
            report.error(f"The parameter ${parameter.name} redefines a built in parameter in the {label(node)}", parameter)
    _refuse_value_at_end(node, node.body, report)


def _function(node: n.FunctionDefinition, context: NodeContext, report: CheckReport) -> None:
    _check_definition(node, context, report)
    _check_type_reference(node.returns, node, report)
    _check_unique(node.parameters, report)


def _lambda(node: n.LambdaExpression, context: NodeContext, report: CheckReport) -> None:
    _check_captures_rest_last(node.parameters, report)
    _check_type_reference(node.returns, node, report)


def _epp(node: n.EppExpression, context: NodeContext, report: CheckReport) -> None:
    parameters = node.parameters or ()
    _check_captures_rest_last(parameters, report)
    _refuse_captures_rest(parameters, node, report)
    _check_unique(parameters, report)


def _alias(node: n.TypeAliasDefinition, context: NodeContext, report: CheckReport) -> None:
    _check_placement(node, context, report)
    if not _TYPE_NAME.fullmatch(node.name):
        report.error(f"Unacceptable name. The name '{node.name}' is unacceptable as the name of {with_article(node)}", node)
    _check_type_reference(node.type, node, report)


def _node(node: n.NodeDefinition, context: NodeContext, report: CheckReport) -> None:
    for match in node.matches:
        _check_hostname(match, node, report)
    _check_placement(node, context, report)
    _refuse_value_at_end(node, node.body, report)
    if node.parent:
        message = "Node inheritance is not supported in Puppet >= 4.0.0. See http://links.puppet.com/puppet-node-inheritance-deprecation"
        report.error(message, node.parent)


def _check_hostname(match: n.SyntaxNode, node: n.SyntaxNode, report: CheckReport) -> None:
    if isinstance(match, n.ConcatenatedString):
        inside = next((segment.expression for segment in match.segments if isinstance(segment, n.TextExpression)), match)
        report.error("An interpolated expression is not allowed in a hostname of a node", inside)
    elif isinstance(match, n.StringLiteral):
        if _NOT_IN_HOSTNAMES.search(match.value):
            message = f"The hostname '{match.value}' contains illegal characters (only letters, digits, '_', '-', and '.' are allowed)"
            report.error(message, match)
    elif isinstance(match, n.HeredocExpression):
        report.error(f"Illegal expression. {sentence(match)} is unacceptable as hostname in {with_article(node)}", match)


def _parameter(node: n.ParameterDeclaration, context: NodeContext, report: CheckReport) -> None:
    if _NUMERIC_PARAMETER.fullmatch(node.name):
        message = f"The numeric parameter name '${node.name}' cannot be used (clashes with numeric match result variables)"
        report.error(message, node)
    if not _PARAMETER.fullmatch(node.name):
        report.error(f"Illegal parameter name. The given name '{node.name}' does not conform to the naming rule /^[a-z_]\\w*$/", node)
    pending = [node.default] if node.default else []
    while pending:
        expression = pending.pop()
        if isinstance(expression, n.BinaryOperation) and expression.op in ("=", "+=", "-="):
            report.error("Assignment not allowed here", expression)
        elif not isinstance(expression, n.LambdaExpression):
            pending.extend(reversed(_child_nodes(expression)))


def _child_nodes(node: n.SyntaxNode) -> list[n.SyntaxNode]:
    below: list[n.SyntaxNode] = []
    for name in CHILDREN[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            below.extend(value)
        elif value is not None:
            below.append(value)
    return below


def _check_captures_rest_last(parameters: tuple[n.ParameterDeclaration, ...], report: CheckReport) -> None:
    for parameter in parameters[:-1]:
        if parameter.splat:
            report.error(f"Parameter ${parameter.name} is not last, and has 'captures rest'", parameter)


def _refuse_captures_rest(parameters: tuple[n.ParameterDeclaration, ...], container: n.SyntaxNode, report: CheckReport) -> None:
    for parameter in parameters:
        if parameter.splat:
            message = f"Parameter ${parameter.name} has 'captures rest' - not supported in {with_article(container)}"
            report.error(message, parameter)


def _check_unique(parameters: tuple[n.ParameterDeclaration, ...], report: CheckReport) -> None:
    seen: set[str] = set()
    for parameter in parameters:
        if parameter.name in seen:
            report.error(f"The parameter '{parameter.name}' is declared more than once in the parameter list", parameter)
        seen.add(parameter.name)


def _check_type_reference(node: n.SyntaxNode | None, container: n.SyntaxNode, report: CheckReport) -> None:
    if node is None:
        return
    named = node.left if isinstance(node, n.AccessExpression) else node
    if isinstance(named, n.QualifiedReference):
        _warn_of_future_reserved(named.value.lower(), node, report)
    else:
        message = f"Illegal expression. {sentence(node)} is unacceptable as a type reference in {with_article(container)}"
        report.error(message, node)


def _refuse_value_at_end(node: n.SyntaxNode, body: n.SyntaxNode, report: CheckReport) -> None:
    value = value_at_end(body)
    if value and untitled_resource(value) is None:
        message = f"This {label(value)} has no effect. {sentence(node)} can not end with a value-producing expression without other effect"
        report.error(message, value)


RULES: dict[type[n.SyntaxNode], Rule] = {
    n.ClassDefinition: _class_or_define,
    n.DefineDefinition: _class_or_define,
    n.NodeDefinition: _node,
    n.FunctionDefinition: _function,
    n.PlanDefinition: _function,
    n.LambdaExpression: _lambda,
    n.EppExpression: _epp,
    n.TypeAliasDefinition: _alias,
    n.ParameterDeclaration: _parameter,
}
