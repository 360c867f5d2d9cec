"""The storage of Puppet's variables in the Python function that a body becomes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..syntax import nodes as n

# Functions that read the variables of the place they are called from by name; there the variables have to be in a scope.
SCOPE_READERS = frozenset(
    (
        "call",
        "defined",
        "getvar",
        "hiera",
        "hiera_array",
        "hiera_hash",
        "hiera_include",
        "inline_epp",
        "inline_template",
        "lookup",
        "template",
    )
)

_OWN_FRAME = (n.LambdaExpression, n.ClassDefinition, n.DefineDefinition, n.NodeDefinition, n.FunctionDefinition)


def children(node: n.SyntaxNode) -> Iterator[n.SyntaxNode]:
    """Yield the nodes directly below `node`, in source order."""
    names: tuple[str, ...] = type(node).__match_args__[2:]  # a dataclass' fields; the first two are its place
    for name in names:
        value = getattr(node, name)
        if isinstance(value, n.SyntaxNode):
            yield value
        elif isinstance(value, tuple):
            for item in value:
                if isinstance(item, n.SyntaxNode):
                    yield item


def walk(node: n.SyntaxNode, *, into_lambdas: bool) -> Iterator[n.SyntaxNode]:
    """Yield `node` and all below it that is evaluated in its body; definitions inside are bodies of their own."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        for child in children(current):
            if not isinstance(child, _OWN_FRAME) or (into_lambdas and isinstance(child, n.LambdaExpression)):
                pending.append(child)


def uses_matches(text: str, *parts: n.SyntaxNode | None) -> bool:
    """Return whether `$0`, `$1`, … can be read anywhere in these, parts of the file `text`; if not, matches are not recorded."""
    # A cheap test of the text spares the walk over the tree for nearly all files.
    if not _MAY_USE_MATCHES.search(text):
        return False
    for part in parts:
        if part is None:
            continue
        for node in walk(part, into_lambdas=True):
            if isinstance(node, n.VariableExpression) and node.name.isdecimal():
                return True
            if isinstance(node, n.FunctionCall) and isinstance(node.functor, n.QualifiedName) and node.functor.value == "inline_epp":
                return True
    return False


_MAY_USE_MATCHES = re.compile(r"\$(?:::)?\d|\$\{(?![A-Za-z_])|inline_epp")
"""Of a text without this the tree need not be looked through."""


def reads_scope(*parts: n.SyntaxNode | None) -> bool:
    """Return whether a function that reads variables by name is called anywhere in these."""
    for part in parts:
        if part is None:
            continue
        for node in walk(part, into_lambdas=True):
            if (
                isinstance(node, n.FunctionCall)
                and isinstance(node.functor, n.QualifiedName)
                and node.functor.value.removeprefix("::") in SCOPE_READERS
            ):
                return True
            if isinstance(node, n.MethodCall) and node.name in SCOPE_READERS:
                return True
    return False


def assigned_names(body: n.SyntaxNode) -> set[str]:
    """Return the variables that `body` itself assigns, lambdas left out."""
    names: set[str] = set()
    for node in walk(body, into_lambdas=False):
        if isinstance(node, n.BinaryOperation) and node.op == "=":
            names.update(targets(node.left))
    return names


def targets(node: n.SyntaxNode) -> Iterator[str]:
    """Yield the names of a (destructuring) assignment's left side."""
    if isinstance(node, n.VariableExpression):
        yield node.name
    elif isinstance(node, n.ArrayLiteral):
        for item in node.values:
            yield from targets(item)
    elif isinstance(node, n.ParenthesizedExpression):
        yield from targets(node.expression)


@dataclass
class Frame:
    """
    A Python function that is being written.

    A frame either has its variables in a scope and, where that is certain, in Python locals as well (`scoped`: bodies
    of classes, defines, nodes, manifests, and lambdas in which somebody reads variables by name), or in Python locals
    alone (most lambdas and functions). Puppet's variables are assigned once, so a copy is never stale.
    """

    kind: str  # main class define node function lambda epp default
    scope: str = "scope"  # the Python name of the scope in force
    scoped: bool = True
    outer: Frame | None = None  # lambdas: where they are written
    known: set[str] = field(default_factory=set)  # assigned for certain at this point
    locals: set[str] = field(default_factory=set)  # frames that are not scoped: every name they assign
    seen: set[str] = field(default_factory=set)  # assigned further up, maybe in a branch not taken
    unset: set[str] = field(default_factory=set)  # locals that have to start as "not set"
    matches: str | None = None  # the Python name of the match data holder
    body: list[ast.stmt] = field(default_factory=list)
    block: list[ast.stmt] = field(default_factory=list)  # where statements go now
    checks_result: bool = False  # functions: a return type is declared
    output: str | None = None  # EPP: the Python name of the text so far
    depth: int = 0

    def __post_init__(self) -> None:
        self.block = self.body
        self.depth = 0 if self.outer is None else self.outer.depth + 1

    def python_name(self, variable: str) -> str:
        # The depth keeps a lambda's variable apart from one of the same name around it.
        return f"v{self.depth}_{variable}"
