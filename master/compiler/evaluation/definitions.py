"""Classes, defines and nodes as they are known to an environment, and what happens when one is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from shared.errors import EvaluationError, Location
from shared.regexps import Regexp

from ..catalog.resources import METAPARAMETERS, DeclaredResource
from ..codegen import CONSTANT, NONE, READ, ParameterHeader
from ..errors.locations import FINAL
from ..host import NotFoundInData
from ..types.base import ANY, PuppetType
from ..types.descriptions.describe import check_parameters
from ..types.notation.parse import parse_type
from ..types.references import as_attribute
from ..values.core import Value
from .defaults import evaluate_defaults
from .scope import BUILT_IN, MISSING, RESERVED, MatchVariables, Scope

if TYPE_CHECKING:
    from .compilation import Compilation

__all__ = ["Define", "Definition", "DefinitionCode", "HostClass", "NodeBlock", "ParameterSpec"]

Body = Callable[..., Value]
Thunk = Callable[["Scope"], Any]


class DefinitionCode(Protocol):
    """Where the code of one definition comes from; it is written, and run, when it is first asked for."""

    def body(self) -> Body: ...

    def parameters(self) -> tuple[Mapping[str, Thunk], Mapping[str, Thunk]]:
        """Types and defaults of parameters by their names."""


class ParameterSpec:
    """A parameter that is given by name; its header says what its type and default are, or leaves that to code."""

    __slots__ = ("_code", "_type", "fixed", "has_default", "header", "name", "typed")

    def __init__(self, header: ParameterHeader, code: DefinitionCode) -> None:
        self.name = header.name
        self.header = header
        self.typed = header.type is not None
        self.has_default = header.kind != NONE
        self.fixed = header.kind == CONSTANT
        self._code = code
        self._type: PuppetType | None = None

    def type(self, scope: Scope) -> PuppetType:
        """Its type; the same for all scopes of an environment."""
        if self._type is None:
            declared = self.header.type
            if declared is None:
                self._type = ANY
            elif isinstance(declared, str):
                self._type = parse_type(declared)
            else:
                self._type = self._code.parameters()[0][self.name](scope)
        return self._type

    def value(self, scope: Scope) -> Value:
        """The value of its default."""
        header = self.header
        if self.fixed:
            return header.default
        if header.kind == READ and not (scope.pending is not None and header.default in scope.pending):
            value = scope.find(header.default)
            if value is not MISSING:
                return value
        # Whatever is wrong with a variable is told by code, which has a place.
        return self._code.parameters()[1][self.name](scope)


class Definition:
    """What classes, defines and nodes have in common."""

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
        self.code = code
        self._body: Body | None = None
        self.place = place or Location(None)
        self.module = module

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def has_parameter(self, name: str) -> bool:
        return name in self.by_name

    def check_metaparameters(self, warn: Callable[[str], None]) -> None:
        """Parameters that are called as metaparameters: a warning, or, when they have no default, an error."""
        for parameter in self.parameters:
            if parameter.name in METAPARAMETERS:
                if not parameter.has_default:
                    raise EvaluationError(
                        f"{parameter.name} is a metaparameter; please choose another parameter name in the {self.name} definition",
                        where=FINAL,
                    )
                warn(f"{parameter.name} is a metaparam; this value will inherit to all contained resources in the {self.name} definition")

    def is_child_of(self, other: Definition | None) -> bool:
        """Whether this class inherits, directly or not, from `other`."""
        return False

    def evaluate(self, compilation: Compilation, resource: DeclaredResource) -> None:
        raise NotImplementedError

    # --- parameters ---

    def bind(self, compilation: Compilation, scope: Scope, resource: DeclaredResource) -> None:
        """
        Give the scope the values of the parameters: what the resource says, the site's data, the defaults.

        Raises:
            EvaluationError: what is missing, surplus or of a wrong type, all of it in one message.
        Source: language reference 5.1.
        """
        values = resource.values
        own = scope.vars
        for parameter in self.parameters:
            name = parameter.name
            if values.get(name) is None and compilation.has_data(self):
                try:
                    found = compilation.data_for(f"{self.name}::{name}", scope)
                except NotFoundInData:
                    continue
                if found is not None or not parameter.has_default:
                    resource.set(name, found)
        given: dict[str, Value] = {}
        for name, value in values.items():
            if name in self.by_name or name not in METAPARAMETERS:
                given[name] = value
            self._refuse_name(name)
            if value is not None and name != "name":
                own[name] = value
        arguments = {name: value for name, value in given.items() if name in self.by_name}
        for name, value in evaluate_defaults(scope, self.parameters, arguments, resource.ref):
            self._refuse_name(name)
            value = as_attribute(value)
            own[name] = value
            given[name] = value
            resource.values[name] = value
        self._check(compilation, scope, resource, given)
        for parameter in self.parameters:
            own[parameter.name] = given.get(parameter.name)

    def _refuse_name(self, name: str) -> None:
        """Raise EvaluationError, placed at the definition, when no parameter may be called `name`."""
        if name in RESERVED:
            raise EvaluationError(f"Attempt to assign to a reserved variable name: '{name}'", where=self.place)
        if name in BUILT_IN:
            raise EvaluationError(f"Cannot reassign variable '${name}'", where=self.place)

    def check_unevaluated(self, compilation: Compilation, resource: DeclaredResource) -> None:
        """
        Hold what a virtual resource says against the parameters, without a scope of its own.

        Raises:
            EvaluationError: what is missing, surplus or of a wrong type; it has no place, as in the reference.
        """
        defaulted = {parameter.name for parameter in self.parameters if parameter.has_default}
        given = {name: value for name, value in resource.values.items() if value is not None or name not in defaulted}
        try:
            self._check(compilation, compilation.top, resource, given)
        except EvaluationError as error:
            raise EvaluationError(error.message, hint=error.hint, where=FINAL) from None

    def _check(self, compilation: Compilation, scope: Scope, resource: DeclaredResource, given: dict[str, Value]) -> None:
        for name, value in given.items():
            parameter = self.by_name.get(name)
            if parameter is None:
                if name == "name" or name in METAPARAMETERS:
                    continue
                break
            if parameter.typed and not parameter.type(scope).instance(value):
                break
        else:
            for parameter in self.parameters:
                if parameter.name not in given and not parameter.has_default:
                    break
            else:
                return
        wanted = [(parameter.name, parameter.type(scope), parameter.has_default) for parameter in self.parameters]
        shown = {name: value for name, value in given.items() if name in self.by_name or (name != "name" and name not in METAPARAMETERS)}
        problems = check_parameters(resource.ref, wanted, shown, deferred=compilation.deferred_type)
        if problems is not None:
            raise EvaluationError(problems)

    def run(self, scope: Scope) -> None:
        """Run the body in its scope."""
        body = self._body
        if body is None:
            if self.code is None:
                return
            body = self._body = self.code.body()
        own = scope.vars
        body(scope, *[own[parameter.name] for parameter in self.parameters])

    def _names(self, scope: Scope, resource: DeclaredResource, parent: Scope | None) -> None:
        own = scope.vars
        own["module_name"] = self.module
        caller = parent.module_name if parent is not None else ""
        own["caller_module_name"] = caller


class HostClass(Definition):
    """A class; `parent_name` is the class it inherits from."""

    kind = "hostclass"
    word = "Class"

    def __init__(
        self, name: str, parameters: Sequence[ParameterSpec], code: DefinitionCode | None, parent_name: str | None = None, **options: Any
    ) -> None:
        super().__init__(name, parameters, code, **options)
        self.parent_name = parent_name.removeprefix("::").lower() if parent_name else None
        self.parent: HostClass | None = None

    def is_child_of(self, other: Definition | None) -> bool:
        ancestor = self.parent
        while ancestor is not None:
            if ancestor is other:
                return True
            ancestor = ancestor.parent
        return False

    def evaluate(self, compilation: Compilation, resource: DeclaredResource) -> None:
        """Source: language reference 5.2."""
        declared_in = resource.scope
        inherited: Scope | None = None
        if self.parent is not None:
            parent = compilation.catalog.find("Class", class_title(self.parent.name))
            if parent is not None:
                compilation.evaluate(parent)
            inherited = compilation.class_scopes.get(self.parent.name)
        scope = Scope(compilation, "class", parent=inherited or declared_in, resource=resource, source=self)
        scope.next = inherited or compilation.node_scope_of(declared_in)
        compilation.catalog.classes.append(self.name)
        self._names(scope, resource, scope.parent)
        scope.vars["title"] = resource.title.lower()
        name = resource.values.get("name")
        scope.vars["name"] = name.lower() if isinstance(name, str) else resource.title.lower()
        compilation.class_scopes[self.name] = scope
        self.bind(compilation, scope, resource)
        compilation.contain_in_stage(resource)
        self.run(scope)


class Define(Definition):
    """A defined type."""

    kind = "definition"
    word = "Define"

    def evaluate(self, compilation: Compilation, resource: DeclaredResource) -> None:
        declared_in = resource.scope
        scope = Scope(compilation, "define", parent=declared_in, resource=resource, source=self)
        scope.next = compilation.node_scope_of(declared_in)
        self._names(scope, resource, declared_in)
        title = resource.title if resource.number_title is None else resource.number_title
        scope.vars["title"] = title
        name = resource.values.get("name")
        scope.vars["name"] = name if name is not None else title
        self.bind(compilation, scope, resource)
        self.run(scope)


class NodeBlock(Definition):
    """A node block; `matches` are exact lower-case names, regular expressions, or `default`."""

    kind = "node"
    word = "Node"

    def __init__(
        self, matches: Sequence[str | Regexp], code: DefinitionCode | None, parent_name: str | None = None, **options: Any
    ) -> None:
        first = matches[0]
        super().__init__(self.title_of(first), (), code, **options)
        self.match = first
        self.parent_name = parent_name

    @staticmethod
    def title_of(match: str | Regexp) -> str:
        """The title of the node's resource. Source: language reference 5.3."""
        if isinstance(match, str):
            return match.lower()
        kept = "".join(c for c in match.source.lower() if c in "-_:." or (c.isascii() and c.isalnum()))
        return f"__node_regexp__{kept.lstrip('.')}"

    def evaluate(self, compilation: Compilation, resource: DeclaredResource) -> None:
        declared_in = resource.scope
        scope = Scope(compilation, "node", parent=declared_in, resource=resource, source=self)
        scope.next = compilation.top
        compilation.catalog.classes.append(self.name)
        self._names(scope, resource, declared_in)
        scope.vars["title"] = resource.title
        scope.vars["name"] = resource.title
        scope.matched = MatchVariables(compilation.node_match)
        compilation.node_scope = scope
        compilation.contain_in_stage(resource)
        self.run(scope)


def class_title(name: str) -> str:
    """A class's name as its resource's title."""
    return "::".join([segment.capitalize() for segment in name.removeprefix("::").split("::")]) if name else "main"
