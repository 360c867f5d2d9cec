"""The storage of Puppet's variables in the Python function that a body becomes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from ..syntax import nodes as n

_NAMES = (
    "abs alert all any assert_type binary_file break camelcase capitalize ceiling chomp chop compare contain convert_to "
    "create_resources crit debug dig digest downcase each emerg empty epp err fail file filter find_file find_template flatten floor "
    "fqdn_rand generate get group_by include index info join keys length lest lstrip map match max md5 min module_directory new next "
    "notice partition puppetdb_query realize reduce regsubst require return reverse_each round rstrip scanf sha1 sha256 shellquote "
    "size slice sort split sprintf step strftime strip tag tagged then tree_each type unique unwrap upcase values versioncmp warning "
    "with any2array any2bool assert_private base64 basename bool2httpd bool2num bool2str concat count deep_merge defined_with_params "
    "delete delete_at delete_regex delete_undef_values delete_values difference dirname ensure_packages ensure_resource "
    "ensure_resources fact fqdn_rotate getparam grep has_key intersection is_a is_array is_hash is_string join_keys_to_values "
    "loadjson loadyaml member merge num2bool parsejson parseyaml pick pick_default prefix range reject seeded_rand shell_escape "
    "shell_join sprintf_hash stdlib::batch_escape stdlib::end_with stdlib::ensure stdlib::ensure_packages stdlib::extname "
    "stdlib::fqdn_rotate stdlib::ip_in_range stdlib::merge stdlib::shell_escape stdlib::sort_by stdlib::start_with "
    "stdlib::str2resource stdlib::to_json stdlib::to_yaml stdlib::xml_encode str2bool suffix to_bytes to_json to_yaml type_of union "
    "uriescape validate_array validate_bool validate_hash validate_re validate_string values_at zip"
)
NEED_NO_SCOPE = frozenset(_NAMES.split())
"""
Functions known to read no variables of the place that they are called from. Any other one may, as functions of modules in Ruby do: there
the variables have to be in a scope. A function that is missing here only makes the lambdas slower that call it.
"""

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
    """Return whether a function that may read variables by name is called anywhere in these."""
    for part in parts:
        if part is None:
            continue
        for node in walk(part, into_lambdas=True):
            if (
                isinstance(node, n.FunctionCall)
                and isinstance(node.functor, n.QualifiedName)
                and node.functor.value.removeprefix("::") not in NEED_NO_SCOPE
            ):
                return True
            if isinstance(node, n.MethodCall) and node.name.removeprefix("::") not in NEED_NO_SCOPE:
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
