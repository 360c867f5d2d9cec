"""
The tree of a template in the subset that is translated: one class for each construct.

`at` and `end` are offsets in the template's text, as in the tree of the language, whose writer writes these nodes too.
"""

from __future__ import annotations

from ..syntax.nodes import SyntaxNode, construct


@construct
class Text(SyntaxNode):
    """Text of the template."""

    text: str


@construct
class RubyOutput(SyntaxNode):
    """`<%= value %>`"""

    value: SyntaxNode


@construct
class Body(SyntaxNode):
    """Statements; the value is the last one's."""

    statements: tuple[SyntaxNode, ...]


@construct
class Literal(SyntaxNode):
    """nil, true, false, a number, or a string without expressions."""

    value: str | int | float | bool | None


@construct
class SymbolLiteral(SyntaxNode):
    name: str


@construct
class RubyRegexpLiteral(SyntaxNode):
    """A regular expression without expressions in it; `source` has its options embedded."""

    source: str


@construct
class Interpolation(SyntaxNode):
    """A string with expressions in it; its text segments are Literals."""

    parts: tuple[SyntaxNode, ...]


@construct
class RubyArrayLiteral(SyntaxNode):
    items: tuple[SyntaxNode, ...]


@construct
class RubyHashLiteral(SyntaxNode):
    pairs: tuple[tuple[SyntaxNode, SyntaxNode], ...]
    parts: tuple[SyntaxNode, ...]  # keys and values in turn


@construct
class RangeLiteral(SyntaxNode):
    first: SyntaxNode
    last: SyntaxNode
    is_exclusive: bool


@construct
class InstanceVariable(SyntaxNode):
    name: str


@construct
class LocalVariable(SyntaxNode):
    python_name: str


@construct
class Assignment(SyntaxNode):
    target: InstanceVariable | LocalVariable
    value: SyntaxNode


@construct
class SeveralAssignments(SyntaxNode):
    """`a, b = value`"""

    targets: tuple[InstanceVariable | LocalVariable, ...]
    value: SyntaxNode


@construct
class ConditionalAssignment(SyntaxNode):
    """`||=` and `&&=`"""

    target: InstanceVariable | LocalVariable
    value: SyntaxNode
    when_set: bool


@construct
class Defined(SyntaxNode):
    """`defined?` of an instance variable."""

    name: str


@construct
class And(SyntaxNode):
    left: SyntaxNode
    right: SyntaxNode


@construct
class Or(SyntaxNode):
    left: SyntaxNode
    right: SyntaxNode


@construct
class RubyNot(SyntaxNode):
    operand: SyntaxNode


@construct
class If(SyntaxNode):
    test: SyntaxNode
    then: SyntaxNode
    otherwise: SyntaxNode
    negated: bool


@construct
class Case(SyntaxNode):
    """`subject` is None for a case without one; `options` are patterns, each with the code for it."""

    subject: SyntaxNode | None
    options: tuple[tuple[tuple[SyntaxNode, ...], SyntaxNode], ...]
    otherwise: SyntaxNode


@construct
class ClassName(SyntaxNode):
    """A class of Ruby's core in a `when`, or as the argument of `is_a?`."""

    name: str


@construct
class RubyNext(SyntaxNode):
    value: SyntaxNode


@construct
class RubyBreak(SyntaxNode):
    pass


@construct
class RubyParameter(SyntaxNode):
    """A parameter of a block: the Python name of a variable, or parameters that an array is destructured to."""

    python_name: str
    inner: tuple[RubyParameter, ...] = ()


@construct
class Block(SyntaxNode):
    """A block of a method; `own` are the variables that are first assigned in it, `outer` those of around it that it assigns."""

    parameters: tuple[RubyParameter, ...]
    body: SyntaxNode
    own: tuple[str, ...]
    outer: tuple[str, ...]


@construct
class RubyMethodCall(SyntaxNode):
    """A method of Ruby's core; operators are methods too."""

    receiver: SyntaxNode
    name: str
    arguments: tuple[SyntaxNode, ...]
    block: Block | None
    is_safe: bool = False


@construct
class ClassTest(SyntaxNode):
    """`is_a?` and `kind_of?`, `instance_of?`"""

    value: SyntaxNode
    name: str


@construct
class Conversion(SyntaxNode):
    """`Array(…)`, `Integer(…)`, `String(…)`, `Float(…)`, `format(…)`"""

    name: str
    arguments: tuple[SyntaxNode, ...]


@construct
class ScopeVariable(SyntaxNode):
    """`scope['name']`, `scope.lookupvar('name')`"""

    name: SyntaxNode


@construct
class HasVariable(SyntaxNode):
    """`has_variable?('name')`"""

    name: SyntaxNode


@construct
class RubyFunctionCall(SyntaxNode):
    """`scope.function_name([…])`, `scope.call_function('name', […])`"""

    name: str
    arguments: SyntaxNode


@construct
class MethodDefinition(SyntaxNode):
    """`def name(…) … end`: `own` are its variables."""

    python_name: str
    parameters: tuple[str, ...]
    body: SyntaxNode
    own: tuple[str, ...]


@construct
class OwnCall(SyntaxNode):
    """A call of a method that the template defines."""

    python_name: str
    name: str
    arguments: tuple[SyntaxNode, ...]


@construct
class Raise(SyntaxNode):
    """`raise`: an error of Ruby's, of any class."""

    message: SyntaxNode


@construct
class MatchTest(SyntaxNode):
    """`=~`; `notes_groups` when `$1` and the like may be read afterwards."""

    left: SyntaxNode
    right: SyntaxNode
    notes_groups: bool


@construct
class MatchGroup(SyntaxNode):
    """`$1`"""

    number: int


@construct
class ScopeAssignment(SyntaxNode):
    """`scope.setvar('name', value)`"""

    name: SyntaxNode
    value: SyntaxNode


@construct
class MatchData(SyntaxNode):
    """`match` in a template that may read `$1` and the like."""

    receiver: SyntaxNode
    argument: SyntaxNode


@construct
class PatternSplit(SyntaxNode):
    """`split` by an expression, in a template that may read `$1` and the like."""

    receiver: SyntaxNode
    argument: SyntaxNode


@construct
class ScopeHash(SyntaxNode):
    """`scope.to_hash`"""
