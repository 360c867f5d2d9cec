"""
The syntax tree of the Puppet language: one frozen class for each construct.

`at` is the offset (in characters) that the reference reports as the construct's place: the first character of most constructs, the
operator of binary ones. `end` is the offset behind its last character. `Source.locate(at)` converts an offset to file, line and column.
The structure follows the reference's own tree, so that `puppet parser dump` is one more walk over it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def construct(cls: type[T]) -> type[T]:
    """
    Make a class of the tree. Type checkers take it for frozen; at run time nothing checks that, because it would double the cost of
    creating a node, and a file has thousands.
    """
    return dataclass(slots=True)(cls)


@construct
class SyntaxNode:
    at: int
    end: int


# --- literals -----------------------------------------------------------------------------------------------------


@construct
class Nop(SyntaxNode):
    """An empty block."""


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
    """A lower-case qualified name or a bare word; by context a string, or the name of a function or type."""

    value: str


@construct
class QualifiedReference(SyntaxNode):
    """A capitalized name, as written."""

    value: str


@construct
class ReservedWord(SyntaxNode):
    """A reserved word used as an expression; the checker rejects it."""

    word: str


# --- strings ------------------------------------------------------------------------------------------------------


@construct
class TextExpression(SyntaxNode):
    """An expression inside a string."""

    expression: SyntaxNode


@construct
class ConcatenatedString(SyntaxNode):
    """A double-quoted string; the segments are StringLiterals and TextExpressions."""

    segments: tuple[SyntaxNode, ...]


@construct
class HeredocExpression(SyntaxNode):
    """A heredoc; `text` is a StringLiteral or a ConcatenatedString, and `syntax` may be ''."""

    syntax: str
    text: SyntaxNode


# --- expressions --------------------------------------------------------------------------------------------------


@construct
class VariableExpression(SyntaxNode):
    """`$name`. The name has no `$`, but a leading `::`; it is decimal digits for match variables."""

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
    """Statements in order; the value of the block is that of the last one."""

    statements: tuple[SyntaxNode, ...]


@construct
class IfExpression(SyntaxNode):
    """`if`; an `elsif` is an IfExpression in `otherwise`. A branch that is missing or empty is Nop."""

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
    """A parameter of a class, define, function, lambda or EPP template; `splat` for `*$name`."""

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
    `functor(arguments) |lambda|`; the functor is a QualifiedName, or any expression in a call of a type: `Integer('3')`.

    `value_wanted` is False for a call that is a statement (`include foo`), whose value is not used.
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
    """`type { title: … ; … }`. `form` is '', '@' (virtual) or '@@' (exported)."""

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
    """A class; `name` is fully qualified, with the name of an enclosing class in front."""

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
    """A node; `matches` are StringLiterals, RegexpLiterals, DefaultLiterals or ConcatenatedStrings, which the checker rejects."""

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
    """A warning about legal text, at an offset."""

    at: int
    message: str


@construct
class Program(SyntaxNode):
    """
    One file: its body (an EppExpression for templates) and all definitions in it, in the order in which they end.

    `warnings` are the lexer's; the checker passes them on.
    """

    body: SyntaxNode
    definitions: tuple[SyntaxNode, ...] = field(default=())
    warnings: tuple[LexerWarning, ...] = ()
