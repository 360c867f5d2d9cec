"""The walk over the tree of a file that applies the rules to every node."""

from __future__ import annotations

from .. import nodes as n
from ..source import Source
from .diagnostics import Diagnostic
from .labels import label
from .report import CHILDREN, CheckReport, NodeContext, Strict
from .rules import RULES

_UNCHECKED = frozenset(kind for kind, below in CHILDREN.items() if not below and kind not in RULES) | {type(None)}
"""The classes of nodes that have neither a rule nor children."""


def check(program: n.Program, source: Source, *, namespace: str | None = None, strict: Strict = "warning") -> list[Diagnostic]:
    """
    Return the errors and warnings of a parsed file, in the order in which the reference finds them.

    Args:
        namespace: the beginning that every name defined in the file must have (`namespace_of` a module's file); None when any name is
            allowed (site manifests, templates, code that has no file).
        strict: the setting, which is the severity of a duplicate key.
    Source: language reference 1 to 5.
    """
    report = CheckReport(source, namespace, strict, check)
    report.diagnostics.extend(Diagnostic("warning", message, source.locate(at), lexical=True) for at, message in program.warnings)
    if namespace is not None:
        _check_top_constructs(program, report)
    pending = [NodeContext(program.body, NodeContext(program, None))]
    while pending:
        context = pending.pop()
        node = context.node
        kind = type(node)
        rule = RULES.get(kind)
        if rule:
            rule(node, context, report)
        names = CHILDREN[kind]
        if names:
            below: list[NodeContext] = []
            for name in names:
                value = getattr(node, name)
                inner = type(value)
                if inner is tuple:
                    below.extend([NodeContext(child, context) for child in value if type(child) not in _UNCHECKED])
                elif inner not in _UNCHECKED:
                    below.append(NodeContext(value, context))
            below.reverse()
            pending.extend(below)
    return report.diagnostics


def _check_top_constructs(program: n.Program, report: CheckReport) -> None:
    body = program.body
    for statement in body.statements if isinstance(body, n.BlockExpression) else (body,):
        if not isinstance(statement, n.Nop | n.ClassDefinition | n.DefineDefinition | n.FunctionDefinition | n.TypeAliasDefinition):
            report.error(f"This {label(statement)} is unacceptable as a top level construct in this location", statement)
