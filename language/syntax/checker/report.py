"""The arguments of the checker's rules: the context of a node, and the report of a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from .. import nodes as n
from ..source import Source
from .diagnostics import Diagnostic
from .syntaxes import Check

Strict = Literal["off", "warning", "error"]


class NodeContext(NamedTuple):
    """A node and the context of the node that contains it."""

    node: n.SyntaxNode
    within: NodeContext | None


class CheckReport:
    """The receiver of one file's diagnostics, which also gives the checking rules their information about the file."""

    def __init__(self, source: Source, namespace: str | None, strict: Strict, check: Check) -> None:
        self.source = source
        self.namespace = namespace
        self.strict = strict
        self.check = check  # for a manifest inside a heredoc
        self.diagnostics: list[Diagnostic] = []
        self.good_names: set[str] = set()  # names of variables that were checked already

    def error(self, message: str, at: n.SyntaxNode, hint: str = "") -> None:
        """Add an error at a node."""
        self.diagnostics.append(Diagnostic("error", message, self.source.locate(at.at), hint))

    def warn_of_deprecation(self, message: str, at: n.SyntaxNode) -> None:
        self.diagnostics.append(Diagnostic("deprecation", message, self.source.locate(at.at)))

    def add_by_strictness(self, message: str, at: n.SyntaxNode) -> None:
        """Add a diagnostic with the severity that the setting `strict` demands."""
        if self.strict != "off":
            self.diagnostics.append(Diagnostic(self.strict, message, self.source.locate(at.at)))


Rule = Callable[[Any, NodeContext, CheckReport], None]

# The fields that hold nodes, in the order of the reference's walk.
CHILDREN: dict[type[n.SyntaxNode], tuple[str, ...]] = {
    n.Nop: (),
    n.IntegerLiteral: (),
    n.FloatLiteral: (),
    n.StringLiteral: (),
    n.BooleanLiteral: (),
    n.UndefLiteral: (),
    n.DefaultLiteral: (),
    n.RegexpLiteral: (),
    n.QualifiedName: (),
    n.QualifiedReference: (),
    n.ReservedWord: (),
    n.VariableExpression: (),
    n.RenderText: (),
    n.ArrayLiteral: ("values",),
    n.HashEntry: ("key", "value"),
    n.HashLiteral: ("entries",),
    n.TextExpression: ("expression",),
    n.ConcatenatedString: ("segments",),
    n.HeredocExpression: ("text",),
    n.ParenthesizedExpression: ("expression",),
    n.BinaryOperation: ("left", "right"),
    n.UnaryOperation: ("operand",),
    n.AccessExpression: ("left", "keys"),
    n.SelectorEntry: ("match", "value"),
    n.SelectorExpression: ("left", "entries"),
    n.BlockExpression: ("statements",),
    n.IfExpression: ("test", "then", "otherwise"),
    n.UnlessExpression: ("test", "then", "otherwise"),
    n.CaseOption: ("values", "then"),
    n.CaseExpression: ("test", "options"),
    n.ParameterDeclaration: ("default", "type"),
    n.LambdaExpression: ("parameters", "body", "returns"),
    n.FunctionCall: ("functor", "arguments", "lambda_"),
    n.MethodCall: ("receiver", "arguments", "lambda_"),
    n.AttributeOperation: ("value",),
    n.AttributeSplat: ("value",),
    n.ResourceBody: ("title", "attributes"),
    n.ResourceExpression: ("type", "bodies"),
    n.ResourceDefaultsExpression: ("type", "attributes"),
    n.ResourceOverrideExpression: ("resources", "attributes"),
    n.CollectorExpression: ("type", "query", "attributes"),
    n.ClassDefinition: ("parameters", "body"),
    n.DefineDefinition: ("parameters", "body"),
    n.NodeDefinition: ("parent", "matches", "body"),
    n.FunctionDefinition: ("parameters", "body", "returns"),
    n.PlanDefinition: ("parameters", "body", "returns"),
    n.TypeAliasDefinition: ("type",),
    n.RenderExpression: ("expression",),
    n.EppExpression: ("parameters", "body"),
}
