"""What the rules of the checker are given: the place of a node, and where to put what they find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from .. import nodes as n
from ..source import Source
from .diagnostics import Diagnostic
from .syntaxes import Check

Strict = Literal["off", "warning", "error"]


class Place(NamedTuple):
    """A node and what it stands in."""

    node: n.Node
    within: Place | None


class Findings:
    """What the rules of one file write into, and what they may know of it."""

    def __init__(self, source: Source, namespace: str | None, strict: Strict, check: Check) -> None:
        self.source = source
        self.namespace = namespace
        self.strict = strict
        self.check = check  # for a manifest inside a heredoc
        self.issues: list[Diagnostic] = []
        self.good_names: set[str] = set()  # of variables, seen already

    def error(self, message: str, at: n.Node, hint: str = "") -> None:
        self.issues.append(Diagnostic("error", message, self.source.locate(at.at), hint))

    def deprecated(self, message: str, at: n.Node) -> None:
        self.issues.append(Diagnostic("deprecation", message, self.source.locate(at.at)))

    def by_strict(self, message: str, at: n.Node) -> None:
        """As severe as the setting `strict` says."""
        if self.strict != "off":
            self.issues.append(Diagnostic(self.strict, message, self.source.locate(at.at)))


Rule = Callable[[Any, Place, Findings], None]

# The fields that hold nodes, in the order of the reference's walk.
CHILDREN: dict[type[n.Node], tuple[str, ...]] = {
    n.Nop: (),
    n.Integer: (),
    n.Float: (),
    n.String: (),
    n.Boolean: (),
    n.Undef: (),
    n.Default: (),
    n.Regex: (),
    n.Name: (),
    n.TypeName: (),
    n.Reserved: (),
    n.Variable: (),
    n.RenderText: (),
    n.Array: ("values",),
    n.Entry: ("key", "value"),
    n.Hash: ("entries",),
    n.Text: ("expression",),
    n.Interpolated: ("segments",),
    n.Heredoc: ("text",),
    n.Parenthesized: ("expression",),
    n.Binary: ("left", "right"),
    n.Unary: ("operand",),
    n.Access: ("left", "keys"),
    n.SelectorEntry: ("match", "value"),
    n.Selector: ("left", "entries"),
    n.Block: ("statements",),
    n.If: ("test", "then", "otherwise"),
    n.Unless: ("test", "then", "otherwise"),
    n.CaseOption: ("values", "then"),
    n.Case: ("test", "options"),
    n.Parameter: ("default", "type"),
    n.Lambda: ("parameters", "body", "returns"),
    n.Call: ("functor", "arguments", "lambda_"),
    n.MethodCall: ("receiver", "arguments", "lambda_"),
    n.Attribute: ("value",),
    n.AttributeSplat: ("value",),
    n.ResourceBody: ("title", "attributes"),
    n.Resource: ("type", "bodies"),
    n.ResourceDefaults: ("type", "attributes"),
    n.ResourceOverride: ("resources", "attributes"),
    n.Collector: ("type", "query", "attributes"),
    n.ClassDefinition: ("parameters", "body"),
    n.DefineDefinition: ("parameters", "body"),
    n.NodeDefinition: ("parent", "matches", "body"),
    n.FunctionDefinition: ("parameters", "body", "returns"),
    n.PlanDefinition: ("parameters", "body", "returns"),
    n.TypeAlias: ("type",),
    n.RenderExpression: ("expression",),
    n.Epp: ("parameters", "body"),
}
