"""One walk over the tree, every construct held against its rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from .. import nodes as n
from ..source import Source
from .issues import Issue
from .labels import label

Strict = Literal["off", "warning", "error"]


class Place(NamedTuple):
    """A node and what it stands in."""

    node: n.Node
    within: Place | None


class Findings:
    """What the rules of one file write into, and what they may know of it."""

    def __init__(self, source: Source, namespace: str | None, strict: Strict) -> None:
        self.source = source
        self.namespace = namespace
        self.strict = strict
        self.issues: list[Issue] = []

    def error(self, message: str, at: n.Node, hint: str = "") -> None:
        self.issues.append(Issue("error", message, self.source.locate(at.at), hint))

    def deprecated(self, message: str, at: n.Node) -> None:
        self.issues.append(Issue("deprecation", message, self.source.locate(at.at)))

    def by_strict(self, message: str, at: n.Node) -> None:
        """As severe as the setting `strict` says."""
        if self.strict != "off":
            self.issues.append(Issue(self.strict, message, self.source.locate(at.at)))


Rule = Callable[[Any, Place, Findings], None]


def check(program: n.Program, source: Source, *, namespace: str | None = None, strict: Strict = "warning") -> list[Issue]:
    """
    Everything wrong with a parsed file, in the order in which the reference finds it; empty when it is good.

    `namespace` is what every name defined in it has to begin with (`namespace_of` a module's file); None where anything goes (site
    manifests, templates, code that has no file). `strict` is the setting: how severe a duplicate key is.
    Source: language reference 1 to 5.
    """
    from .rules import RULES

    found = Findings(source, namespace, strict)
    found.issues.extend(Issue("warning", message, source.locate(at), lexical=True) for at, message in program.warnings)
    if namespace is not None:
        _top_constructs(program, found)
    pending = [Place(program.body, Place(program, None))]
    while pending:
        place = pending.pop()
        node = place.node
        kind = type(node)
        rule = RULES.get(kind)
        if rule:
            rule(node, place, found)
        names = CHILDREN[kind]
        if names:
            below: list[Place] = []
            for name in names:
                value = getattr(node, name)
                if type(value) is tuple:
                    below.extend([Place(each, place) for each in value])
                elif value is not None:
                    below.append(Place(value, place))
            below.reverse()
            pending.extend(below)
    return found.issues


def _top_constructs(program: n.Program, found: Findings) -> None:
    body = program.body
    for each in body.statements if isinstance(body, n.Block) else (body,):
        if not isinstance(each, n.Nop | n.ClassDefinition | n.DefineDefinition | n.FunctionDefinition | n.TypeAlias):
            found.error(f"This {label(each)} is unacceptable as a top level construct in this location", each)


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
