"""
The syntax tree of the Puppet language: one frozen class a construct.

`at` is the offset (in characters) that the reference names as the construct's place: the first character of
most constructs, the operator of binary ones. `end` is the offset behind its last character. `Source.locate(at)`
turns an offset into file, line and column. Names follow the reference's own tree, so that `puppet parser dump` can
be written as one more walk over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Node:
    at: int
    end: int


# --- literals -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Nop(Node):
    """Nothing: an empty block."""


@dataclass(frozen=True, slots=True)
class Integer(Node):
    value: int
    radix: int = 10


@dataclass(frozen=True, slots=True)
class Float(Node):
    value: float


@dataclass(frozen=True, slots=True)
class String(Node):
    value: str


@dataclass(frozen=True, slots=True)
class Boolean(Node):
    value: bool


@dataclass(frozen=True, slots=True)
class Undef(Node):
    pass


@dataclass(frozen=True, slots=True)
class Default(Node):
    pass


@dataclass(frozen=True, slots=True)
class Regex(Node):
    """`/source/`; `source` as written, Ruby's flavour, with `\\/` already turned into `/`."""

    source: str


@dataclass(frozen=True, slots=True)
class Array(Node):
    values: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Entry(Node):
    """`key => value` of a hash."""

    key: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Hash(Node):
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A lower-case qualified name or a bare word: a string, a function's or a type's name, by context."""

    value: str


@dataclass(frozen=True, slots=True)
class TypeName(Node):
    """A capitalised qualified reference, as written."""

    value: str


@dataclass(frozen=True, slots=True)
class Reserved(Node):
    """A reserved word used as an expression; the checker rejects it."""

    word: str


# --- strings ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Text(Node):
    """An expression inside a string, to be turned into text."""

    expression: Node


@dataclass(frozen=True, slots=True)
class Interpolated(Node):
    """A double-quoted string: String and Text segments in order."""

    segments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Heredoc(Node):
    """`text` is a String or an Interpolated; `syntax` may be ''."""

    syntax: str
    text: Node


# --- expressions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable(Node):
    """`$name`; the name without `$`, a leading `::` kept; decimal digits for match variables."""

    name: str


@dataclass(frozen=True, slots=True)
class Parenthesized(Node):
    expression: Node


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """
    `left op right`. Operators, by kind:

    arithmetic `+ - * / % << >>`, comparison `== != < <= > >=`, match `=~ !~`, membership `in`, logic `and or`,
    assignment `= += -=`, relationship `-> ~> <- <~`.
    """

    op: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """`! x`, `- x`, or `* x` (unfold)."""

    op: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Access(Node):
    """`left[keys]`"""

    left: Node
    keys: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class SelectorEntry(Node):
    match: Node
    value: Node


@dataclass(frozen=True, slots=True)
class Selector(Node):
    left: Node
    entries: tuple[SelectorEntry, ...]


@dataclass(frozen=True, slots=True)
class Block(Node):
    """Statements in order; the value is the last one's."""

    statements: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class If(Node):
    """`elsif` is an If in `otherwise`. Nop where a branch is missing or empty."""

    test: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class Unless(Node):
    test: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True, slots=True)
class CaseOption(Node):
    values: tuple[Node, ...]
    then: Node


@dataclass(frozen=True, slots=True)
class Case(Node):
    test: Node
    options: tuple[CaseOption, ...]


@dataclass(frozen=True, slots=True)
class Parameter(Node):
    """Of a class, define, function, lambda or EPP. `splat`: `*$name`."""

    name: str
    type: Node | None = None
    default: Node | None = None
    splat: bool = False


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    parameters: tuple[Parameter, ...]
    body: Node
    returns: Node | None = None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """
    `functor(arguments) |lambda|`: functor is a Name, or any expression (a type call: `Integer('3')`).

    `value_wanted` is False for a call that is a statement (`include foo`), where the value is thrown away.
    """

    functor: Node
    arguments: tuple[Node, ...]
    lambda_: Lambda | None = None
    value_wanted: bool = True


@dataclass(frozen=True, slots=True)
class MethodCall(Node):
    """`receiver.name(arguments) |lambda|`"""

    receiver: Node
    name: str
    arguments: tuple[Node, ...]
    lambda_: Lambda | None = None


# --- resources ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Attribute(Node):
    """`name => value` or `name +> value`"""

    name: str
    op: str
    value: Node


@dataclass(frozen=True, slots=True)
class AttributeSplat(Node):
    """`* => expression`"""

    value: Node


@dataclass(frozen=True, slots=True)
class ResourceBody(Node):
    title: Node
    attributes: tuple[Attribute | AttributeSplat, ...]


@dataclass(frozen=True, slots=True)
class Resource(Node):
    """`type { title: … ; … }`; `form` is '', '@' (virtual) or '@@' (exported)."""

    form: str
    type: Node
    bodies: tuple[ResourceBody, ...]


@dataclass(frozen=True, slots=True)
class ResourceDefaults(Node):
    """`Type { attributes }`"""

    form: str
    type: Node
    attributes: tuple[Attribute | AttributeSplat, ...]


@dataclass(frozen=True, slots=True)
class ResourceOverride(Node):
    """`Type[title] { attributes }`"""

    form: str
    resources: Node
    attributes: tuple[Attribute | AttributeSplat, ...]


@dataclass(frozen=True, slots=True)
class Collector(Node):
    """`Type <| query |> { overrides }`; `exported` for `<<| |>>`. An empty query is Nop."""

    type: Node
    query: Node
    exported: bool
    attributes: tuple[Attribute | AttributeSplat, ...] = ()


# --- definitions --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClassDefinition(Node):
    """`name` is fully qualified: an enclosing class's name is already in front."""

    name: str
    parameters: tuple[Parameter, ...]
    parent: str | None
    body: Node


@dataclass(frozen=True, slots=True)
class DefineDefinition(Node):
    name: str
    parameters: tuple[Parameter, ...]
    body: Node


@dataclass(frozen=True, slots=True)
class NodeDefinition(Node):
    """`matches`: String, Interpolated (rejected by the checker), Regex or Default."""

    matches: tuple[Node, ...]
    parent: Node | None
    body: Node


@dataclass(frozen=True, slots=True)
class FunctionDefinition(Node):
    name: str
    parameters: tuple[Parameter, ...]
    body: Node
    returns: Node | None = None


@dataclass(frozen=True, slots=True)
class PlanDefinition(FunctionDefinition):
    pass


@dataclass(frozen=True, slots=True)
class TypeAlias(Node):
    """`type Name = expression`"""

    name: str
    type: Node


# --- templates and files ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RenderText(Node):
    """Literal text of an EPP template."""

    value: str


@dataclass(frozen=True, slots=True)
class RenderExpression(Node):
    """`<%= expression %>`"""

    expression: Node


@dataclass(frozen=True, slots=True)
class Epp(Node):
    """A template: `parameters` is None when it declares none (then any may be passed)."""

    parameters: tuple[Parameter, ...] | None
    body: Node


class Warned(NamedTuple):
    """Something odd but legal in the text, at an offset."""

    at: int
    message: str


@dataclass(frozen=True, slots=True)
class Program(Node):
    """
    One file: its body (an Epp for templates) and the definitions found anywhere in it, in the order in which they end.

    `warnings` are the lexer's; the checker passes them on.
    """

    body: Node
    definitions: tuple[Node, ...] = field(default=())
    warnings: tuple[Warned, ...] = ()
