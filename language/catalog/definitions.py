"""Classes, defines and nodes as they are known to an environment: their names, their parameters, and where their code comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from shared.errors import Location
from shared.regexps import Regexp

from ..codegen import CONSTANT, NONE, ParameterHeader
from ..types.kinds.base import ANY
from ..types.notation.parse import parse_type
from ..values.core import PuppetType, Value
from ..values.labels import declared_type
from ..values.variables import BUILT_IN, RESERVED

Body = Callable[..., Value]
"""The code of a definition: a function of its scope, and of the values of its parameters in their order."""

TypeCode = Callable[[Any], PuppetType]
"""The code of a parameter's type: a function of the scope."""

DefaultCode = Callable[[Any], Value]
"""The code of a parameter's default: a function of the scope."""


class DefinitionCode(Protocol):
    """The source of a definition's code, which is generated and run when it is first needed."""

    def body(self) -> Body: ...

    def parameters(self) -> tuple[Mapping[str, TypeCode], Mapping[str, DefaultCode]]:
        """Return the code of the types and of the defaults of the parameters, each by the parameter's name."""


class ParameterSpec:
    """A parameter that is passed by name; its type and default come from the file's header, or from code."""

    __slots__ = ("_code", "_type", "fixed", "has_default", "header", "name", "typed")

    def __init__(self, header: ParameterHeader, code: DefinitionCode) -> None:
        self.name = header.name
        self.header = header
        self.typed = header.type is not None
        self.has_default = header.kind != NONE
        self.fixed = header.kind == CONSTANT
        self._code = code
        self._type: PuppetType | None = None

    def type(self, scope: object) -> PuppetType:
        """Return its type, which is the same for all scopes of an environment."""
        if self._type is None:
            declared = self.header.type
            if declared is None:
                self._type = ANY
            elif isinstance(declared, str):
                self._type = parse_type(declared)
            else:
                self._type = declared_type(f"Parameter '{self.name}'", self._code.parameters()[0][self.name](scope))
        return self._type

    def run_default(self, scope: object) -> Value:
        """Run the code of its default in a scope, and return the value."""
        return self._code.parameters()[1][self.name](scope)


@dataclass(frozen=True, slots=True)
class ParameterPlan:
    """
    How the parameters of a definition get their values, as far as it is the same each time.

    Attributes:
        checks: by name, whether a value is of the parameter's type; None for a parameter that takes any value.
        required: the parameters without a default.
        steps: the constant defaults, in runs, each with the parameter behind it whose default is computed (None: the run is the last).
        collections: the parameters whose constant defaults are arrays or hashes, of which each resource gets its own.
        is_usable: the names and the constant defaults are right. If not, each binding goes step by step, and says what is wrong.
    """

    checks: Mapping[str, Callable[[Value], bool] | None]
    required: frozenset[str]
    steps: tuple[tuple[dict[str, Value], ParameterSpec | None], ...]
    collections: frozenset[str]
    is_usable: bool


class Definition:
    """
    The base of classes, defines and nodes.

    Attributes:
        kind: the word of a resource type listing: `hostclass`, `definition`, `node`.
        plan: how its parameters get their values; made when that is first done.
        is_checked: whether the types of its parameters exist.
        word: how errors write it before the name in brackets.
    """

    kind = ""
    word = ""

    def __init__(
        self,
        name: str,
        parameters: Sequence[ParameterSpec],
        code: DefinitionCode | None,
        *,
        place: Location | None = None,
        module: str = "",
    ) -> None:
        self.name = name
        self.parameters = tuple(parameters)
        self.by_name = {parameter.name: parameter for parameter in parameters}
        self.names_are_allowed = self.by_name.keys().isdisjoint(RESERVED) and self.by_name.keys().isdisjoint(BUILT_IN)
        self.code = code
        self._body: Body | None = None
        self.plan: ParameterPlan | None = None
        self.place = place or Location(None)
        self.module = module
        self.is_checked = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def has_parameter(self, name: str) -> bool:
        return name in self.by_name

    def is_child_of(self, other: Definition | None) -> bool:
        """Return whether this class inherits, directly or not, from `other`."""
        return False

    def body(self) -> Body | None:
        """Return the code of its body; None when it has none."""
        if self._body is None and self.code is not None:
            self._body = self.code.body()
        return self._body


class HostClass(Definition):
    """A class; `parent_name` is the class it inherits from."""

    kind = "hostclass"
    word = "Class"

    def __init__(
        self,
        name: str,
        parameters: Sequence[ParameterSpec],
        code: DefinitionCode | None,
        parent_name: str | None = None,
        *,
        place: Location | None = None,
        module: str = "",
    ) -> None:
        super().__init__(name, parameters, code, place=place, module=module)
        self.parent_name = parent_name.removeprefix("::").lower() if parent_name else None
        self.parent: HostClass | None = None

    def is_child_of(self, other: Definition | None) -> bool:
        ancestor = self.parent
        while ancestor is not None:
            if ancestor is other:
                return True
            ancestor = ancestor.parent
        return False


class Define(Definition):
    """A defined type."""

    kind = "definition"
    word = "Define"


class NodeBlock(Definition):
    """A node block; `matches` are exact lower-case names, regular expressions, or `default`."""

    kind = "node"
    word = "Node"

    def __init__(
        self,
        matches: Sequence[str | Regexp],
        code: DefinitionCode | None,
        parent_name: str | None = None,
        *,
        place: Location | None = None,
        module: str = "",
    ) -> None:
        first = matches[0]
        super().__init__(self.title_of(first), (), code, place=place, module=module)
        self.match = first
        self.parent_name = parent_name

    @staticmethod
    def title_of(match: str | Regexp) -> str:
        """Return the title of the node's resource. Source: language reference 5.3."""
        if isinstance(match, str):
            return match.lower()
        characters = "".join(c for c in match.source.lower() if c in "-_:." or (c.isascii() and c.isalnum()))
        return f"__node_regexp__{characters.lstrip('.')}"


def class_title(name: str) -> str:
    """Return the title of the resource of a class: `foo::bar` is `Foo::Bar`, and the class without a name is `main`."""
    return "::".join([segment.capitalize() for segment in name.removeprefix("::").split("::")]) if name else "main"
