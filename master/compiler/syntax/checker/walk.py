"""One walk over the tree, every construct held against its rules."""

from __future__ import annotations

from .. import nodes as n
from ..source import Source
from .diagnostics import Diagnostic
from .findings import CHILDREN, CheckReport, NodeContext, Strict
from .labels import label
from .rules import RULES

_NOTHING_TO_SAY = frozenset(kind for kind, below in CHILDREN.items() if not below and kind not in RULES) | {type(None)}
"""Kinds of nodes that no rule is about, and nothing is below."""


def check(program: n.Program, source: Source, *, namespace: str | None = None, strict: Strict = "warning") -> list[Diagnostic]:
    """
    Everything wrong with a parsed file, in the order in which the reference finds it; empty when it is good.

    `namespace` is what every name defined in it has to begin with (`namespace_of` a module's file); None where anything goes (site
    manifests, templates, code that has no file). `strict` is the setting: how severe a duplicate key is.
    Source: language reference 1 to 5.
    """
    found = CheckReport(source, namespace, strict, check)
    found.issues.extend(Diagnostic("warning", message, source.locate(at), lexical=True) for at, message in program.warnings)
    if namespace is not None:
        _top_constructs(program, found)
    pending = [NodeContext(program.body, NodeContext(program, None))]
    while pending:
        place = pending.pop()
        node = place.node
        kind = type(node)
        rule = RULES.get(kind)
        if rule:
            rule(node, place, found)
        names = CHILDREN[kind]
        if names:
            below: list[NodeContext] = []
            for name in names:
                value = getattr(node, name)
                inner = type(value)
                if inner is tuple:
                    below.extend([NodeContext(each, place) for each in value if type(each) not in _NOTHING_TO_SAY])
                elif inner not in _NOTHING_TO_SAY:
                    below.append(NodeContext(value, place))
            below.reverse()
            pending.extend(below)
    return found.issues


def _top_constructs(program: n.Program, found: CheckReport) -> None:
    body = program.body
    for each in body.statements if isinstance(body, n.BlockExpression) else (body,):
        if not isinstance(each, n.Nop | n.ClassDefinition | n.DefineDefinition | n.FunctionDefinition | n.TypeAliasDefinition):
            found.error(f"This {label(each)} is unacceptable as a top level construct in this location", each)
