"""The names by which error messages call constructs."""

from __future__ import annotations

from .. import nodes as n

_LABELS: dict[type[n.SyntaxNode], str] = {
    n.Nop: "Nop Expression",
    n.IntegerLiteral: "Literal Integer",
    n.FloatLiteral: "Literal Float",
    n.StringLiteral: "String",
    n.BooleanLiteral: "Boolean",
    n.UndefLiteral: "'undef' expression",
    n.DefaultLiteral: "'default' expression",
    n.RegexpLiteral: "Regular Expression",
    n.ArrayLiteral: "Array Expression",
    n.HashEntry: "Hash Entry",
    n.HashLiteral: "Hash Expression",
    n.QualifiedName: "Name",
    n.QualifiedReference: "Type-Name",
    n.TextExpression: "Expression in Interpolated String",
    n.ConcatenatedString: "Double Quoted String",
    n.VariableExpression: "Variable",
    n.ParenthesizedExpression: "Parenthesized Expression",
    n.AccessExpression: "'[]' expression",
    n.SelectorEntry: "Selector Option",
    n.SelectorExpression: "Selector Expression",
    n.BlockExpression: "Block Expression",
    n.IfExpression: "'if' statement",
    n.UnlessExpression: "'unless' Statement",
    n.CaseOption: "Case Option",
    n.CaseExpression: "'case' statement",
    n.ParameterDeclaration: "Parameter Definition",
    n.LambdaExpression: "Lambda",
    n.FunctionCall: "Function Call",
    n.MethodCall: "Method call",
    n.ResourceBody: "Resource Instance Definition",
    n.ResourceExpression: "Resource Statement",
    n.ResourceDefaultsExpression: "Resource Defaults Expression",
    n.ResourceOverrideExpression: "Resource Override",
    n.ClassDefinition: "Host Class Definition",
    n.DefineDefinition: "'define' expression",
    n.NodeDefinition: "Node Definition",
    n.FunctionDefinition: "Function Definition",
    n.PlanDefinition: "Plan Definition",
    n.TypeAliasDefinition: "Type Alias",
    n.RenderText: "Epp Text",
    n.RenderExpression: "Epp Interpolated Expression",
    n.EppExpression: "Epp Template",
}
_UNARY = {"!": "'not' expression", "-": "Unary Minus", "*": "Unfold"}


def label(node: n.SyntaxNode) -> str:
    """Return the name of a construct without an article: `Variable`, `'+' expression`, …."""
    if isinstance(node, n.BinaryOperation | n.AttributeOperation):
        return f"'{node.op}' expression"
    if isinstance(node, n.UnaryOperation):
        return _UNARY[node.op]
    if isinstance(node, n.HeredocExpression):
        return f"'@({node.syntax})' expression"
    if isinstance(node, n.CollectorExpression):
        return "Exported Query" if node.exported else "Virtual Query"
    if isinstance(node, n.ReservedWord):
        return f"Reserved Word '{node.word}'"
    return _LABELS.get(type(node), "Object")


def with_article(node: n.SyntaxNode) -> str:
    """Return the label of a construct with an article: `a Variable`, `an Access`."""
    text = label(node)
    return f"{'an' if text.lstrip(chr(39) + chr(34))[:1].lower() in 'aeiouy' else 'a'} {text}"


def sentence(node: n.SyntaxNode) -> str:
    """Return the label of a construct for the beginning of a sentence: `A Variable`."""
    text = with_article(node)
    return text[0].upper() + text[1:]
