"""The rules for definitions: where they may stand, what they may be called, what their parameters may be."""

from __future__ import annotations

import re

from .. import nodes as n
from .effects import untitled_resource, value_at_end
from .findings import CHILDREN, CheckReport, NodeContext, Rule
from .labels import label, sentence, with_article

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


def _at_top(node: n.SyntaxNode, place: NodeContext, found: CheckReport) -> None:
    """Classes, defines and nodes at top level or in classes; functions and aliases only at the very top."""
    container = place.within
    while container and isinstance(container.node, n.BlockExpression):
        outer = container.within
        inside = outer is not None and not isinstance(outer.node, n.Program)
        if inside and isinstance(node, n.FunctionDefinition | n.TypeAliasDefinition):
            found.error(f"{sentence(node)} may only appear at toplevel", node)
            return
        container = outer
    if container and not isinstance(container.node, n.ClassDefinition | n.Program):
        found.error("Classes, definitions, and nodes may only appear at toplevel or inside other classes", node)


def _named(node: Named, place: NodeContext, found: CheckReport) -> None:
    _at_top(node, place, found)
    if not _NAME.fullmatch(node.name):
        found.error(f"Unacceptable name. The name '{node.name}' is unacceptable as the name of {with_article(node)}", node)
    if found.namespace is not None and not node.name.lower().startswith(found.namespace):
        file = found.source.file or ""
        found.error(f"Unacceptable location. The name '{node.name}' is unacceptable in file '{file}'", node)
    if node.name in _BUILT_IN_TYPES:
        found.error(f"The name: '{node.name}' is already defined by Puppet and can not be used as the name of {with_article(node)}.", node)
    _future_reserved(node.name, node, found)


def _future_reserved(name: str, node: n.SyntaxNode, found: CheckReport) -> None:
    if name == "plan":
        found.deprecated(f"Use of future reserved word: '{name}'", node)


def _class_or_define(node: n.ClassDefinition | n.DefineDefinition, place: NodeContext, found: CheckReport) -> None:
    _named(node, place, found)
    _no_captures_rest(node.parameters, node, found)
    _unique(node.parameters, found)
    for parameter in node.parameters:
        if parameter.name in _BUILT_IN_PARAMETERS:
            found.error(f"The parameter ${parameter.name} redefines a built in parameter in the {label(node)}", parameter)
    _no_value_at_end(node, node.body, found)


def _function(node: n.FunctionDefinition, place: NodeContext, found: CheckReport) -> None:
    _named(node, place, found)
    _type_reference(node.returns, node, found)
    _unique(node.parameters, found)


def _lambda(node: n.LambdaExpression, place: NodeContext, found: CheckReport) -> None:
    _captures_rest_last(node.parameters, found)
    _type_reference(node.returns, node, found)


def _epp(node: n.EppExpression, place: NodeContext, found: CheckReport) -> None:
    parameters = node.parameters or ()
    _captures_rest_last(parameters, found)
    _no_captures_rest(parameters, node, found)
    _unique(parameters, found)


def _alias(node: n.TypeAliasDefinition, place: NodeContext, found: CheckReport) -> None:
    _at_top(node, place, found)
    if not _TYPE_NAME.fullmatch(node.name):
        found.error(f"Unacceptable name. The name '{node.name}' is unacceptable as the name of {with_article(node)}", node)
    _type_reference(node.type, node, found)


def _node(node: n.NodeDefinition, place: NodeContext, found: CheckReport) -> None:
    for match in node.matches:
        _hostname(match, node, found)
    _at_top(node, place, found)
    _no_value_at_end(node, node.body, found)
    if node.parent:
        message = "Node inheritance is not supported in Puppet >= 4.0.0. See http://links.puppet.com/puppet-node-inheritance-deprecation"
        found.error(message, node.parent)


def _hostname(match: n.SyntaxNode, node: n.SyntaxNode, found: CheckReport) -> None:
    if isinstance(match, n.ConcatenatedString):
        inside = next((each.expression for each in match.segments if isinstance(each, n.TextExpression)), match)
        found.error("An interpolated expression is not allowed in a hostname of a node", inside)
    elif isinstance(match, n.StringLiteral):
        if _NOT_IN_HOSTNAMES.search(match.value):
            message = f"The hostname '{match.value}' contains illegal characters (only letters, digits, '_', '-', and '.' are allowed)"
            found.error(message, match)
    elif isinstance(match, n.HeredocExpression):
        found.error(f"Illegal expression. {sentence(match)} is unacceptable as hostname in {with_article(node)}", match)


def _parameter(node: n.ParameterDeclaration, place: NodeContext, found: CheckReport) -> None:
    if _NUMERIC_PARAMETER.fullmatch(node.name):
        message = f"The numeric parameter name '${node.name}' cannot be used (clashes with numeric match result variables)"
        found.error(message, node)
    if not _PARAMETER.fullmatch(node.name):
        found.error(f"Illegal parameter name. The given name '{node.name}' does not conform to the naming rule /^[a-z_]\\w*$/", node)
    pending = [node.default] if node.default else []
    while pending:
        each = pending.pop()
        if isinstance(each, n.BinaryOperation) and each.op in ("=", "+=", "-="):
            found.error("Assignment not allowed here", each)
        elif not isinstance(each, n.LambdaExpression):
            pending.extend(reversed(_below(each)))


def _below(node: n.SyntaxNode) -> list[n.SyntaxNode]:
    below: list[n.SyntaxNode] = []
    for name in CHILDREN[type(node)]:
        value = getattr(node, name)
        if isinstance(value, tuple):
            below.extend(value)
        elif value is not None:
            below.append(value)
    return below


def _captures_rest_last(parameters: tuple[n.ParameterDeclaration, ...], found: CheckReport) -> None:
    for parameter in parameters[:-1]:
        if parameter.splat:
            found.error(f"Parameter ${parameter.name} is not last, and has 'captures rest'", parameter)


def _no_captures_rest(parameters: tuple[n.ParameterDeclaration, ...], container: n.SyntaxNode, found: CheckReport) -> None:
    for parameter in parameters:
        if parameter.splat:
            message = f"Parameter ${parameter.name} has 'captures rest' - not supported in {with_article(container)}"
            found.error(message, parameter)


def _unique(parameters: tuple[n.ParameterDeclaration, ...], found: CheckReport) -> None:
    seen: set[str] = set()
    for parameter in parameters:
        if parameter.name in seen:
            found.error(f"The parameter '{parameter.name}' is declared more than once in the parameter list", parameter)
        seen.add(parameter.name)


def _type_reference(node: n.SyntaxNode | None, container: n.SyntaxNode, found: CheckReport) -> None:
    if node is None:
        return
    named = node.left if isinstance(node, n.AccessExpression) else node
    if isinstance(named, n.QualifiedReference):
        _future_reserved(named.value.lower(), node, found)
    else:
        message = f"Illegal expression. {sentence(node)} is unacceptable as a type reference in {with_article(container)}"
        found.error(message, node)


def _no_value_at_end(node: n.SyntaxNode, body: n.SyntaxNode, found: CheckReport) -> None:
    value = value_at_end(body)
    if value and untitled_resource(value) is None:
        message = f"This {label(value)} has no effect. {sentence(node)} can not end with a value-producing expression without other effect"
        found.error(message, value)


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
