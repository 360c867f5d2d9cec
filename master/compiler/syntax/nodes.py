"""
The syntax tree of the Puppet language: one frozen class a construct.

`at` is the offset (in characters) that the reference names as the construct's place: the first character of
most constructs, the operator of binary ones. `end` is the offset behind its last character. `Source.locate(at)`
turns an offset into file, line and column. Names follow the reference's own tree, so that `puppet parser dump` can
be written as one more walk over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def construct(cls: type[T]) -> type[T]:
    """
    A class of the tree. Types hold it to be frozen, which nothing at run time checks: that would double the cost of making one,
    and a file has thousands.
    """
    return dataclass(slots=True)(cls)


@construct
class Node:
    at: int
    end: int


# --- literals -----------------------------------------------------------------------------------------------------


@construct
class Nop(Node):
    """Nothing: an empty block."""


@construct
class Integer(Node):
    value: int
    radix: int = 10


@construct
class Float(Node):
    value: float


@construct
class String(Node):
    value: str


@construct
class Boolean(Node):
    value: bool


@construct
class Undef(Node):
    pass


@construct
class Default(Node):
    pass


@construct
class Regex(Node):
    """`/source/`; `source` as written, Ruby's flavour, with `\\/` already turned into `/`."""

    source: str


@construct
class Array(Node):
    values: tuple[Node, ...]


@construct
class Entry(Node):
    """`key => value` of a hash."""

    key: Node
    value: Node


@construct
class Hash(Node):
    entries: tuple[Entry, ...]


@construct
class Name(Node):
    """A lower-case qualified name or a bare word: a string, a function's or a type's name, by context."""

    value: str


@construct
class TypeName(Node):
    """A capitalised qualified reference, as written."""

    value: str


@construct
class Reserved(Node):
    """A reserved word used as an expression; the checker rejects it."""

    word: str


# --- strings ------------------------------------------------------------------------------------------------------


@construct
class Text(Node):
    """An expression inside a string, to be turned into text."""

    expression: Node


@construct
class Interpolated(Node):
    """A double-quoted string: String and Text segments in order."""

    segments: tuple[Node, ...]


@construct
class Heredoc(Node):
    """`text` is a String or an Interpolated; `syntax` may be ''."""

    syntax: str
    text: Node


# --- expressions --------------------------------------------------------------------------------------------------


@construct
class Variable(Node):
    """`$name`; the name without `$`, a leading `::` kept; decimal digits for match variables."""

    name: str


@construct
class Parenthesized(Node):
    expression: Node


@construct
class Binary(Node):
    """
    `left op right`. Operators, by kind:

    arithmetic `+ - * / % << >>`, comparison `== != < <= > >=`, match `=~ !~`, membership `in`, logic `and or`,
    assignment `= += -=`, relationship `-> ~> <- <~`.
    """

    op: str
    left: Node
    right: Node


@construct
class Unary(Node):
    """`! x`, `- x`, or `* x` (unfold)."""

    op: str
    operand: Node


@construct
class Access(Node):
    """`left[keys]`"""

    left: Node
    keys: tuple[Node, ...]


@construct
class SelectorEntry(Node):
    match: Node
    value: Node


@construct
class Selector(Node):
    left: Node
    entries: tuple[SelectorEntry, ...]


@construct
class Block(Node):
    """Statements in order; the value is the last one's."""

    statements: tuple[Node, ...]


@construct
class If(Node):
    """`elsif` is an If in `otherwise`. Nop where a branch is missing or empty."""

    test: Node
    then: Node
    otherwise: Node


@construct
class Unless(Node):
    test: Node
    then: Node
    otherwise: Node


@construct
class CaseOption(Node):
    values: tuple[Node, ...]
    then: Node


@construct
class Case(Node):
    test: Node
    options: tuple[CaseOption, ...]


@construct
class Parameter(Node):
    """Of a class, define, function, lambda or EPP. `splat`: `*$name`."""

    name: str
    type: Node | None = None
    default: Node | None = None
    splat: bool = False


@construct
class Lambda(Node):
    parameters: tuple[Parameter, ...]
    body: Node
    returns: Node | None = None


@construct
class Call(Node):
    """
    `functor(arguments) |lambda|`: functor is a Name, or any expression (a type call: `Integer('3')`).

    `value_wanted` is False for a call that is a statement (`include foo`), where the value is thrown away.
    """

    functor: Node
    arguments: tuple[Node, ...]
    lambda_: Lambda | None = None
    value_wanted: bool = True


@construct
class MethodCall(Node):
    """`receiver.name(arguments) |lambda|`"""

    receiver: Node
    name: str
    arguments: tuple[Node, ...]
    lambda_: Lambda | None = None


# --- resources ----------------------------------------------------------------------------------------------------


@construct
class Attribute(Node):
    """`name => value` or `name +> value`"""

    name: str
    op: str
    value: Node


@construct
class AttributeSplat(Node):
    """`* => expression`"""

    value: Node


@construct
class ResourceBody(Node):
    title: Node
    attributes: tuple[Attribute | AttributeSplat, ...]


@construct
class Resource(Node):
    """`type { title: … ; … }`; `form` is '', '@' (virtual) or '@@' (exported)."""

    form: str
    type: Node
    bodies: tuple[ResourceBody, ...]


@construct
class ResourceDefaults(Node):
    """`Type { attributes }`"""

    form: str
    type: Node
    attributes: tuple[Attribute | AttributeSplat, ...]


@construct
class ResourceOverride(Node):
    """`Type[title] { attributes }`"""

    form: str
    resources: Node
    attributes: tuple[Attribute | AttributeSplat, ...]


@construct
class Collector(Node):
    """`Type <| query |> { overrides }`; `exported` for `<<| |>>`. An empty query is Nop."""

    type: Node
    query: Node
    exported: bool
    attributes: tuple[Attribute | AttributeSplat, ...] = ()


# --- definitions --------------------------------------------------------------------------------------------------


@construct
class ClassDefinition(Node):
    """`name` is fully qualified: an enclosing class's name is already in front."""

    name: str
    parameters: tuple[Parameter, ...]
    parent: str | None
    body: Node


@construct
class DefineDefinition(Node):
    name: str
    parameters: tuple[Parameter, ...]
    body: Node


@construct
class NodeDefinition(Node):
    """`matches`: String, Interpolated (rejected by the checker), Regex or Default."""

    matches: tuple[Node, ...]
    parent: Node | None
    body: Node


@construct
class FunctionDefinition(Node):
    name: str
    parameters: tuple[Parameter, ...]
    body: Node
    returns: Node | None = None


@construct
class PlanDefinition(FunctionDefinition):
    pass


@construct
class TypeAlias(Node):
    """`type Name = expression`"""

    name: str
    type: Node


# --- templates and files ------------------------------------------------------------------------------------------


@construct
class RenderText(Node):
    """Literal text of an EPP template."""

    value: str


@construct
class RenderExpression(Node):
    """`<%= expression %>`"""

    expression: Node


@construct
class Epp(Node):
    """A template: `parameters` is None when it declares none (then any may be passed)."""

    parameters: tuple[Parameter, ...] | None
    body: Node


class Warned(NamedTuple):
    """Something odd but legal in the text, at an offset."""

    at: int
    message: str


@construct
class Program(Node):
    """
    One file: its body (an Epp for templates) and the definitions found anywhere in it, in the order in which they end.

    `warnings` are the lexer's; the checker passes them on.
    """

    body: Node
    definitions: tuple[Node, ...] = field(default=())
    warnings: tuple[Warned, ...] = ()
