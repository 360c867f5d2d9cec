"""Resources, their defaults and overrides, and collectors."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from shared.errors import Unsupported

from ..syntax import nodes as n
from ..syntax.checker.labels import sentence
from .writer import Writer, constant_of, load

Attributes = Sequence[n.AttributeOperation | n.AttributeSplat]
_FORMS = {"": 0, "@": 1, "@@": 2}


def resource(writer: Writer, node: n.ResourceExpression) -> ast.expr:
    if writer.marks is not None:
        operands: dict[str, n.SyntaxNode] = {"type": node.type}
        for index, body in enumerate(node.bodies):
            operands[f"title {index}"] = body.title
            operands |= {
                f"attribute {attribute.name}": attribute for attribute in body.attributes if isinstance(attribute, n.AttributeOperation)
            }
        writer.mark(node, "a Resource Statement", **operands)
    parts: list[n.SyntaxNode] = [] if isinstance(node.type, n.QualifiedName) else [node.type]
    for body in node.bodies:
        parts.append(body.title)
        parts.extend(attribute.value for attribute in body.attributes)
    values = iter(writer.operands(parts))
    if isinstance(node.type, n.QualifiedName):
        type_: ast.expr = constant_of(node.type.value)
    else:
        writer.mark(node.type, "a Resource Statement")
        acceptable = isinstance(node.type, n.QualifiedReference) or (
            isinstance(node.type, n.AccessExpression) and isinstance(node.type.left, n.QualifiedReference)
        )
        type_ = writer.at(node.type, writer.runtime_call("_declarable", next(values), constant_of(acceptable)))
    bodies: list[ast.expr] = []
    for body in node.bodies:
        title = next(values)
        attribute_values = [next(values) for _ in body.attributes]
        attributes = _attributes(writer, body.attributes, attribute_values, node)
        bodies.append(writer.at(body, ast.Tuple([title, attributes, _lines(writer, body.attributes)], ast.Load())))
    line = constant_of(writer.source.line(node.at))
    return writer.at(
        node, writer.runtime_call("_declare", writer.scope(), type_, constant_of(_FORMS[node.form]), load("_file"), line, *bodies)
    )


def _attributes(writer: Writer, attributes: Attributes, values: Sequence[ast.expr], node: n.SyntaxNode) -> ast.expr:
    """Return a dict of the attributes of one body, or the call that makes one and sees to an attribute that comes twice."""
    names = [attribute.name for attribute in attributes if isinstance(attribute, n.AttributeOperation)]
    if len(names) == len(attributes) and len(set(names)) == len(names):
        return writer.at(node, ast.Dict([constant_of(name) for name in names], list(values)))
    pairs: list[ast.expr] = []
    for attribute, value in zip(attributes, values, strict=True):
        if isinstance(attribute, n.AttributeSplat):
            writer.mark(attribute, "an Object", value=attribute.value)
            value = writer.at(attribute, writer.runtime_call("_splat", value))
            pairs.append(writer.at(attribute, ast.Tuple([constant_of(None), value], ast.Load())))
        else:
            pairs.append(writer.at(attribute, ast.Tuple([constant_of(attribute.name), value], ast.Load())))
    return writer.at(node, writer.runtime_call("_attributes", *pairs))


def _lines(writer: Writer, attributes: Attributes) -> ast.expr:
    """Return the constant `((name, line), …)` of the attributes, `*` for those of a splat, for errors that name the place of one."""
    return constant_of(
        tuple(
            (attribute.name if isinstance(attribute, n.AttributeOperation) else "*", writer.source.line(attribute.at))
            for attribute in attributes
        )
    )


def _appended_names(attributes: Attributes) -> ast.expr:
    """Return the constant of the names of the attributes to which `+>` appends."""
    return constant_of(
        tuple(attribute.name for attribute in attributes if isinstance(attribute, n.AttributeOperation) and attribute.op == "+>")
    )


def defaults(writer: Writer, node: n.ResourceDefaultsExpression) -> ast.expr:
    operands: dict[str, n.SyntaxNode] = {"type": node.type}
    operands |= {f"attribute {attribute.name}": attribute for attribute in node.attributes if isinstance(attribute, n.AttributeOperation)}
    writer.mark(node, "a Resource Defaults Expression", **operands)
    values = writer.operands([node.type, *[attribute.value for attribute in node.attributes]])
    attributes = _attributes(writer, node.attributes, values[1:], node)
    line = constant_of(writer.source.line(node.at))
    lines = _lines(writer, node.attributes)
    return writer.at(node, writer.runtime_call("_set_defaults", writer.scope(), values[0], load("_file"), line, attributes, lines))


def override(writer: Writer, node: n.ResourceOverrideExpression) -> ast.expr:
    operands = {f"attribute {attribute.name}": attribute for attribute in node.attributes if isinstance(attribute, n.AttributeOperation)}
    writer.mark(node, "a Resource Override", **operands)
    values = writer.operands([node.resources, *[attribute.value for attribute in node.attributes]])
    attributes = _attributes(writer, node.attributes, values[1:], node)
    line = constant_of(writer.source.line(node.at))
    lines, appended = _lines(writer, node.attributes), _appended_names(node.attributes)
    return writer.at(node, writer.runtime_call("_override", writer.scope(), values[0], load("_file"), line, attributes, lines, appended))


# --- collectors ---------------------------------------------------------------------------------------------------


def collector(writer: Writer, node: n.CollectorExpression) -> ast.expr:
    operands: dict[str, n.SyntaxNode] = {"type": node.type}
    operands |= {f"attribute {attribute.name}": attribute for attribute in node.attributes if isinstance(attribute, n.AttributeOperation)}
    writer.mark(node, "an Exported Query" if node.exported else "a Virtual Query", **operands)
    type_ = _collector_type(node.type)
    query: ast.expr = constant_of(None)
    if not isinstance(node.query, n.Nop):
        query = _query(writer, node.query, node)
    values = writer.operands([attribute.value for attribute in node.attributes])
    attributes: ast.expr = constant_of(None)
    if node.attributes:
        attributes = _attributes(writer, node.attributes, values, node)
    line = constant_of(writer.source.line(node.at))
    lines, appended = _lines(writer, node.attributes), _appended_names(node.attributes)
    call = writer.runtime_call(
        "_collect",
        writer.scope(),
        constant_of(type_),
        constant_of(node.exported),
        query,
        attributes,
        load("_file"),
        line,
        lines,
        appended,
    )
    return writer.at(node, call)


def _collector_type(node: n.SyntaxNode) -> str:
    if isinstance(node, n.QualifiedReference | n.QualifiedName):
        return node.value
    raise Unsupported(f"Collecting resources of {type(node).__name__} is not supported")


def _query(writer: Writer, node: n.SyntaxNode, statement: n.SyntaxNode) -> ast.expr:
    """
    Return a test of one resource.

    query = attribute ('==' | '!=') (value | query) | query ('and' | 'or') query | '(' query ')'
    """
    if isinstance(node, n.ParenthesizedExpression):
        return _query(writer, node.expression, statement)
    if isinstance(node, n.BinaryOperation) and node.op in ("and", "or"):
        left, right = _query(writer, node.left, statement), _query(writer, node.right, statement)
        return writer.at(node, writer.runtime_call("_query_all" if node.op == "and" else "_query_any", left, right))
    if isinstance(node, n.BinaryOperation) and node.op in ("==", "!="):
        left_node, right_node = node.left, node.right
        while isinstance(left_node, n.ParenthesizedExpression):
            left_node = left_node.expression
        while isinstance(right_node, n.ParenthesizedExpression):
            right_node = right_node.expression
        is_named = isinstance(left_node, n.QualifiedName | n.StringLiteral | n.VariableExpression)
        if is_named and isinstance(right_node, _QUERY_VALUES):
            name, value = writer.operands([left_node, right_node])
            return writer.at(node, writer.runtime_call("_query_is", name, value, constant_of(node.op == "==")))
        if is_named and isinstance(right_node, n.BinaryOperation) and right_node.op in ("==", "!=", "and", "or"):
            (name,) = writer.operands([left_node])
            value = _query(writer, right_node, statement)
            return writer.at(node, writer.runtime_call("_query_is", name, value, constant_of(node.op == "==")))
        node = right_node if is_named else left_node
    refused = writer.runtime_call("_illegal_query", constant_of(sentence(node)))
    return writer.at(statement, refused)


_QUERY_VALUES = (
    n.StringLiteral,
    n.IntegerLiteral,
    n.FloatLiteral,
    n.BooleanLiteral,
    n.QualifiedName,
    n.UndefLiteral,
    n.VariableExpression,
    n.ConcatenatedString,
    n.AccessExpression,
)

RULES = {
    n.ResourceExpression: resource,
    n.ResourceDefaultsExpression: defaults,
    n.ResourceOverrideExpression: override,
    n.CollectorExpression: collector,
}
