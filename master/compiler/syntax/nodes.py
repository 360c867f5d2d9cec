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
class SyntaxNode:
    at: int
    end: int


# --- literals -----------------------------------------------------------------------------------------------------


@construct
class Nop(SyntaxNode):
    """Nothing: an empty block."""


@construct
class IntegerLiteral(SyntaxNode):
    value: int
    radix: int = 10


@construct
class FloatLiteral(SyntaxNode):
    value: float


@construct
class StringLiteral(SyntaxNode):
    value: str


@construct
class BooleanLiteral(SyntaxNode):
    value: bool


@construct
class UndefLiteral(SyntaxNode):
    pass


@construct
class DefaultLiteral(SyntaxNode):
    pass


@construct
class RegexpLiteral(SyntaxNode):
    """`/source/`; `source` as written, Ruby's flavour, with `\\/` already turned into `/`."""

    source: str


@construct
class ArrayLiteral(SyntaxNode):
    values: tuple[SyntaxNode, ...]


@construct
class HashEntry(SyntaxNode):
    """`key => value` of a hash."""

    key: SyntaxNode
    value: SyntaxNode


@construct
class HashLiteral(SyntaxNode):
    entries: tuple[HashEntry, ...]


@construct
class QualifiedName(SyntaxNode):
    """A lower-case qualified name or a bare word: a string, a function's or a type's name, by context."""

    value: str


@construct
class QualifiedReference(SyntaxNode):
    """A capitalised qualified reference, as written."""

    value: str


@construct
class ReservedWord(SyntaxNode):
    """A reserved word used as an expression; the checker rejects it."""

    word: str


# --- strings ------------------------------------------------------------------------------------------------------


@construct
class TextExpression(SyntaxNode):
    """An expression inside a string, to be turned into text."""

    expression: SyntaxNode


@construct
class ConcatenatedString(SyntaxNode):
    """A double-quoted string: String and Text segments in order."""

    segments: tuple[SyntaxNode, ...]


@construct
class HeredocExpression(SyntaxNode):
    """`text` is a String or an Interpolated; `syntax` may be ''."""

    syntax: str
    text: SyntaxNode


# --- expressions --------------------------------------------------------------------------------------------------


@construct
class VariableExpression(SyntaxNode):
    """`$name`; the name without `$`, a leading `::` kept; decimal digits for match variables."""

    name: str


@construct
class ParenthesizedExpression(SyntaxNode):
    expression: SyntaxNode


@construct
class BinaryOperation(SyntaxNode):
    """
    `left op right`. Operators, by kind:

    arithmetic `+ - * / % << >>`, comparison `== != < <= > >=`, match `=~ !~`, membership `in`, logic `and or`,
    assignment `= += -=`, relationship `-> ~> <- <~`.
    """

    op: str
    left: SyntaxNode
    right: SyntaxNode


@construct
class UnaryOperation(SyntaxNode):
    """`! x`, `- x`, or `* x` (unfold)."""

    op: str
    operand: SyntaxNode


@construct
class AccessExpression(SyntaxNode):
    """`left[keys]`"""

    left: SyntaxNode
    keys: tuple[SyntaxNode, ...]


@construct
class SelectorEntry(SyntaxNode):
    match: SyntaxNode
    value: SyntaxNode


@construct
class SelectorExpression(SyntaxNode):
    left: SyntaxNode
    entries: tuple[SelectorEntry, ...]


@construct
class BlockExpression(SyntaxNode):
    """Statements in order; the value is the last one's."""

    statements: tuple[SyntaxNode, ...]


@construct
class IfExpression(SyntaxNode):
    """`elsif` is an If in `otherwise`. Nop where a branch is missing or empty."""

    test: SyntaxNode
    then: SyntaxNode
    otherwise: SyntaxNode


@construct
class UnlessExpression(SyntaxNode):
    test: SyntaxNode
    then: SyntaxNode
    otherwise: SyntaxNode


@construct
class CaseOption(SyntaxNode):
    values: tuple[SyntaxNode, ...]
    then: SyntaxNode


@construct
class CaseExpression(SyntaxNode):
    test: SyntaxNode
    options: tuple[CaseOption, ...]


@construct
class ParameterDeclaration(SyntaxNode):
    """Of a class, define, function, lambda or EPP. `splat`: `*$name`."""

    name: str
    type: SyntaxNode | None = None
    default: SyntaxNode | None = None
    splat: bool = False


@construct
class LambdaExpression(SyntaxNode):
    parameters: tuple[ParameterDeclaration, ...]
    body: SyntaxNode
    returns: SyntaxNode | None = None


@construct
class FunctionCall(SyntaxNode):
    """
    `functor(arguments) |lambda|`: functor is a Name, or any expression (a type call: `Integer('3')`).

    `value_wanted` is False for a call that is a statement (`include foo`), where the value is thrown away.
    """

    functor: SyntaxNode
    arguments: tuple[SyntaxNode, ...]
    lambda_: LambdaExpression | None = None
    value_wanted: bool = True


@construct
class MethodCall(SyntaxNode):
    """`receiver.name(arguments) |lambda|`"""

    receiver: SyntaxNode
    name: str
    arguments: tuple[SyntaxNode, ...]
    lambda_: LambdaExpression | None = None


# --- resources ----------------------------------------------------------------------------------------------------


@construct
class AttributeOperation(SyntaxNode):
    """`name => value` or `name +> value`"""

    name: str
    op: str
    value: SyntaxNode


@construct
class AttributeSplat(SyntaxNode):
    """`* => expression`"""

    value: SyntaxNode


@construct
class ResourceBody(SyntaxNode):
    title: SyntaxNode
    attributes: tuple[AttributeOperation | AttributeSplat, ...]


@construct
class ResourceExpression(SyntaxNode):
    """`type { title: … ; … }`; `form` is '', '@' (virtual) or '@@' (exported)."""

    form: str
    type: SyntaxNode
    bodies: tuple[ResourceBody, ...]


@construct
class ResourceDefaultsExpression(SyntaxNode):
    """`Type { attributes }`"""

    form: str
    type: SyntaxNode
    attributes: tuple[AttributeOperation | AttributeSplat, ...]


@construct
class ResourceOverrideExpression(SyntaxNode):
    """`Type[title] { attributes }`"""

    form: str
    resources: SyntaxNode
    attributes: tuple[AttributeOperation | AttributeSplat, ...]


@construct
class CollectorExpression(SyntaxNode):
    """`Type <| query |> { overrides }`; `exported` for `<<| |>>`. An empty query is Nop."""

    type: SyntaxNode
    query: SyntaxNode
    exported: bool
    attributes: tuple[AttributeOperation | AttributeSplat, ...] = ()


# --- definitions --------------------------------------------------------------------------------------------------


@construct
class ClassDefinition(SyntaxNode):
    """`name` is fully qualified: an enclosing class's name is already in front."""

    name: str
    parameters: tuple[ParameterDeclaration, ...]
    parent: str | None
    body: SyntaxNode


@construct
class DefineDefinition(SyntaxNode):
    name: str
    parameters: tuple[ParameterDeclaration, ...]
    body: SyntaxNode


@construct
class NodeDefinition(SyntaxNode):
    """`matches`: String, Interpolated (rejected by the checker), Regex or Default."""

    matches: tuple[SyntaxNode, ...]
    parent: SyntaxNode | None
    body: SyntaxNode


@construct
class FunctionDefinition(SyntaxNode):
    name: str
    parameters: tuple[ParameterDeclaration, ...]
    body: SyntaxNode
    returns: SyntaxNode | None = None


@construct
class PlanDefinition(FunctionDefinition):
    pass


@construct
class TypeAliasDefinition(SyntaxNode):
    """`type Name = expression`"""

    name: str
    type: SyntaxNode


# --- templates and files ------------------------------------------------------------------------------------------


@construct
class RenderText(SyntaxNode):
    """Literal text of an EPP template."""

    value: str


@construct
class RenderExpression(SyntaxNode):
    """`<%= expression %>`"""

    expression: SyntaxNode


@construct
class EppExpression(SyntaxNode):
    """A template: `parameters` is None when it declares none (then any may be passed)."""

    parameters: tuple[ParameterDeclaration, ...] | None
    body: SyntaxNode


class LexerWarning(NamedTuple):
    """Something odd but legal in the text, at an offset."""

    at: int
    message: str


@construct
class Program(SyntaxNode):
    """
    One file: its body (an Epp for templates) and the definitions found anywhere in it, in the order in which they end.

    `warnings` are the lexer's; the checker passes them on.
    """

    body: SyntaxNode
    definitions: tuple[SyntaxNode, ...] = field(default=())
    warnings: tuple[LexerWarning, ...] = ()
