"""What error messages call a construct."""

from __future__ import annotations

from .. import nodes as n

_LABELS: dict[type[n.Node], str] = {
    n.Nop: "Nop Expression",
    n.Integer: "Literal Integer",
    n.Float: "Literal Float",
    n.String: "String",
    n.Boolean: "Boolean",
    n.Undef: "'undef' expression",
    n.Default: "'default' expression",
    n.Regex: "Regular Expression",
    n.Array: "Array Expression",
    n.Entry: "Hash Entry",
    n.Hash: "Hash Expression",
    n.Name: "Name",
    n.TypeName: "Type-Name",
    n.Text: "Expression in Interpolated String",
    n.Interpolated: "Double Quoted String",
    n.Variable: "Variable",
    n.Parenthesized: "Parenthesized Expression",
    n.Access: "'[]' expression",
    n.SelectorEntry: "Selector Option",
    n.Selector: "Selector Expression",
    n.Block: "Block Expression",
    n.If: "'if' statement",
    n.Unless: "'unless' Statement",
    n.CaseOption: "Case Option",
    n.Case: "'case' statement",
    n.Parameter: "Parameter Definition",
    n.Lambda: "Lambda",
    n.Call: "Function Call",
    n.MethodCall: "Method call",
    n.ResourceBody: "Resource Instance Definition",
    n.Resource: "Resource Statement",
    n.ResourceDefaults: "Resource Defaults Expression",
    n.ResourceOverride: "Resource Override",
    n.ClassDefinition: "Host Class Definition",
    n.DefineDefinition: "'define' expression",
    n.NodeDefinition: "Node Definition",
    n.FunctionDefinition: "Function Definition",
    n.PlanDefinition: "Plan Definition",
    n.TypeAlias: "Type Alias",
    n.RenderText: "Epp Text",
    n.RenderExpression: "Epp Interpolated Expression",
    n.Epp: "Epp Template",
}
_UNARY = {"!": "'not' expression", "-": "Unary Minus", "*": "Unfold"}


def label(node: n.Node) -> str:
    """`Variable`, `'+' expression`, …: the name of a construct, without an article."""
    if isinstance(node, n.Binary | n.Attribute):
        return f"'{node.op}' expression"
    if isinstance(node, n.Unary):
        return _UNARY[node.op]
    if isinstance(node, n.Heredoc):
        return f"'@({node.syntax})' expression"
    if isinstance(node, n.Collector):
        return "Exported Query" if node.exported else "Virtual Query"
    if isinstance(node, n.Reserved):
        return f"Reserved Word '{node.word}'"
    return _LABELS.get(type(node), "Object")


def with_article(node: n.Node) -> str:
    """`a Variable`, `an Access`: the label behind its article."""
    text = label(node)
    return f"{'an' if text.lstrip(chr(39) + chr(34))[:1].lower() in 'aeiouy' else 'a'} {text}"


def sentence(node: n.Node) -> str:
    """`A Variable`, to begin a sentence with."""
    text = with_article(node)
    return text[0].upper() + text[1:]
