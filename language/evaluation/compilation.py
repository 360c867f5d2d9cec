"""One compilation: its own state, and the scopes in which its code runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, TypeAlias

from shared.errors import EvaluationError, Location
from shared.regexps import Match
from shared.suggestions import did_you_mean

from ..catalog.builder import CatalogBuilder
from ..catalog.collectors import Realizer
from ..catalog.definitions import Definition
from ..catalog.pending import PendingWork
from ..catalog.resources import DeclaredResource, Override, ResourceAttribute, capitalized_type
from ..errors.issues import LanguageError, UnsetParameter
from ..functions.api import Closure, Types
from ..functions.catalog_context import CatalogContext
from ..host import NO_ARGUMENTS, CompilerHost, DataContext, LookupArguments, LookupMethods, NativeType, NodeInput
from ..loading.loader import Loader
from ..log import CompilationLog, LocatedReporter, LogEntry
from ..values.core import MISSING, MaybeValue, Reporter, Strictness, Value, refill
from ..values.variables import BUILT_IN, RESERVED
from .definition_lookup import DefinitionLookup
from .dependencies import NodeDependencies, TopVariables


@dataclass(frozen=True, slots=True)
class Actions:
    """The operations that scopes offer to functions, implemented by higher modules."""

    include: Callable[[Scope, Sequence[str]], list[DeclaredResource]]
    create_resources: Callable[..., list[Value]]
    render_epp: Callable[[Scope, str, str, str, Mapping[str, Value] | None, Scope], Value]
    render_erb: Callable[[Scope, str, str | None, str | None], str]
    data_context: Callable[[Scope], DataContext]


ResolvedType: TypeAlias = tuple[str, str, NativeType | None, Definition | None]
"""A resource type as catalogs write it, its kind on the wire, and the native type or the define that implements it."""


class Compilation:
    """
    One compilation.

    Args:
        actions: what scopes do for functions.
        log: gets every log entry when it happens, also when the compilation fails in the end.
        dependencies: records the facts and variables of the node that are read.
    Attributes:
        catalog: the catalog that is built.
        pending: the overrides, collectors and relationships that wait for resources.
        definitions: look-ups of classes, defines, functions and types by name.
        scopes: the scopes that are looked up by name: top scope, the node's, those of classes.
        data_session: what the host keeps between two look-ups of the site's data.
        template_values: by identity, values that ERB templates have set, each with the template's own object.
        changed: by identity, collections that Ruby has changed in place, each with what it is now.
        resolved_types: the resource types that were declared, by the name that was written.
        log: where log entries go.
        uses_output: whether the output of the program that is started is used.
    """

    def __init__(
        self,
        host: CompilerHost,
        loader: Loader,
        node: NodeInput,
        log: Callable[[LogEntry], None],
        actions: Actions,
        *,
        debug: bool = True,
        dependencies: NodeDependencies | None = None,
    ) -> None:
        self.actions = actions
        self.host = host
        self.loader = loader
        self.node = node
        self.log = CompilationLog(log, host.setting("disable_warnings") or (), wants_debug=debug)
        self.reporter = LocatedReporter(self.log, Strictness(host.setting("strict") or "warning"))
        self.strict_variables = bool(host.setting("strict_variables"))
        self.storeconfigs = bool(host.setting("storeconfigs"))
        self.catalog = CatalogBuilder()
        self.dependencies = dependencies
        self.top = Scope(self, "top")
        if dependencies is not None:
            # A plain dict where nobody needs dependencies: recording costs a call for each read.
            self.top.vars = TopVariables(dependencies)
        # A throw-away record where nobody asks, which spares a test at each look-up.
        reads = dependencies or NodeDependencies()
        self.scopes = ScopeTable(self.top, reads.settings)
        self.function_names = reads.functions
        self.definitions = DefinitionLookup(host, loader, self.top, self.log, reads.definitions, reads.functions)
        # Hiera's cache of this compilation: values that depend on its variables must not outlive it.
        self.data_session: dict[str, Any] = {}
        self.pending = PendingWork()
        self.template_values: dict[int, tuple[Value, Any]] = {}
        self.changed: dict[int, tuple[Value, Value]] = {}
        self._template_files: dict[str, tuple[str, str]] = {}
        self.resolved_types: dict[str, ResolvedType] = {}
        self.uses_output = True

    def dispose(self) -> None:
        """Break the reference cycles of a finished compilation, so that its memory is freed at once, without the garbage collector."""
        # Resources and scopes refer to each other; without this they live until the next garbage collection.
        for resource in self.catalog.declared:
            resource.contents.clear()
        vars(self).clear()

    def template_file(self, name: str) -> tuple[str, str] | None:
        """Return the text and the path of a template; None when there is none. Each one is read once in a compilation."""
        known = self._template_files.get(name)
        if known is None:
            file = self.host.find_file(name, "templates")
            if file is None:
                return None
            text = self.host.read_file(file).decode("utf-8", "surrogateescape")
            known = self._template_files[name] = text, file
        return known

    def add_override(self, override: Override) -> None:
        """Apply an override now, or store it until its resource is declared."""
        self.pending.add_override(self, override)

    def fact(self, name: str) -> Value:
        """Return `$facts['name']`; None when the node has no such fact."""
        if self.dependencies is not None:
            self.dependencies.facts.add(name)
        return self.node.facts.get(name)

    def mark_uncacheable(self, reason: str, where: Location | None = None) -> None:
        """Keep the catalog out of the cache: something was read that is another thing each time."""
        if self.dependencies is not None:
            self.dependencies.mark_uncacheable(reason, where)


class ScopeTable:
    """
    The scopes of one compilation.

    Attributes:
        node: the scope of the node block; None before there is one.
        node_match: the match of the node block's regular expression; None when it has none.
        by_class: the scopes of the classes that were evaluated, by lower-case name; that of the class without a name is top scope.
        has_defaults: some scope has resource defaults.
        setting_names: names of settings that were read as `$settings::name`, also in vain.
    """

    def __init__(self, top: Scope, setting_names: set[str]) -> None:
        self.top = top
        self.setting_names = setting_names
        self.node: Scope | None = None
        self.node_match: Match | None = None
        self.by_class: dict[str, Scope] = {}
        self.has_defaults = False

    def qualified(self, class_name: str, name: str) -> MaybeValue:
        """Return a variable of an evaluated class, or of those it inherits from; MISSING when there is none."""
        if class_name == "settings":
            self.setting_names.add(name)
        scope = self.by_class.get(class_name)
        while scope is not None:
            value = scope.vars.get(name, MISSING)
            if value is not MISSING:
                return value
            # Only parents are searched: a qualified name must not find a variable of the node or of top scope.
            scope = scope.next if scope.next is not None and scope.next.kind == "class" else None
        return MISSING

    def behind(self, scope: Scope | None) -> Scope:
        """Return where names are looked up after a class's or define's own scope, which `scope` declares: node scope, else top scope."""
        while scope is not None:
            if scope.kind in ("node", "top"):
                return scope
            scope = scope.next if scope.kind == "local" else scope.parent
        return self.top


class MatchVariables:
    """The match variables in force; `last` is the last successful match."""

    __slots__ = ("last",)

    def __init__(self, last: Match | None) -> None:
        self.last = last

    def __getitem__(self, number: int) -> str | None:
        match = self.last
        if match is None:
            return None
        try:
            return match[number]
        except IndexError:
            return None


def declaring_scope(resource: DeclaredResource) -> Scope | None:
    """Return the scope that a resource was declared in; None for one that no scope declared."""
    scope = resource.scope
    assert scope is None or isinstance(scope, Scope)
    return scope


@dataclass(eq=False, repr=False, slots=True)
class Scope:
    """
    Variables of one class, define instance, node, template or lambda, and of top scope.

    It is what functions get as their Context. `next` is the scope in which other names are looked up; `parent`, which
    resource defaults follow, is the scope that declared this one's resource (or that of the inherited class).
    """

    compilation: Compilation
    kind: str  # top node class define local
    _: KW_ONLY
    parent: Scope | None = None
    next: Scope | None = None
    resource: DeclaredResource | None = None
    source: Definition | None = None
    vars: dict[str, Value] = field(default_factory=dict, init=False)
    defaults: dict[str, dict[str, ResourceAttribute]] = field(default_factory=dict, init=False)
    matched: MatchVariables | None = field(default=None, init=False)
    pending: Callable[[str], str | None] | None = field(default=None, init=False)  # what to say of a variable that has no value yet

    # --- variables ---

    def get(self, name: str) -> Value:
        """Return the value of a plain `$name`; None, with the message that the settings require, when it is not set."""
        scope: Scope | None = self
        while scope is not None:
            value = scope.vars.get(name, MISSING)
            if value is not MISSING:
                return value
            # The default of an earlier parameter reads a later one, which has no value yet.
            if scope.pending is not None and (complaint := scope.pending(name)) is not None:
                raise UnsetParameter(complaint)
            scope = scope.next
        return self._unknown(name)

    def find(self, name: str) -> MaybeValue:
        """Return the value of a variable of any form of name, or MISSING. It never complains."""
        # Functions such as getvar() are called with and without the sign.
        name = name.removeprefix("$")
        if "::" in name:
            qualifier, _, leaf = name.removeprefix("::").rpartition("::")
            if not qualifier:
                return self.compilation.top.vars.get(leaf, MISSING)
            return self.compilation.scopes.qualified(qualifier, leaf)
        scope: Scope | None = self
        while scope is not None:
            value = scope.vars.get(name, MISSING)
            if value is not MISSING:
                return value
            scope = scope.next
        return MISSING

    def exists(self, name: str) -> bool:
        """Return whether a variable of any form of name is set."""
        return name.removeprefix("::") in BUILT_IN or self.find(name) is not MISSING

    def top_variable(self, name: str) -> Value:
        """Return `$::name`; None, with the message that the settings require, when it is not set."""
        value = self.compilation.top.vars.get(name, MISSING)
        return value if value is not MISSING else self._unknown(f"::{name}")

    def qualified(self, class_name: str, name: str, written: str | None = None) -> Value:
        """Return `$class::name`, as `top_variable` does; `written` is the whole name, where it is written otherwise."""
        value = self.compilation.scopes.qualified(class_name, name)
        return value if value is not MISSING else self._unknown(written or f"{class_name}::{name}")

    def _unknown(self, name: str) -> Value:
        bare = name.removeprefix("::")
        # $1 after no match and variables such as $module_name are undef without a warning, as in the reference.
        if bare in BUILT_IN or bare.isdecimal():
            return None
        self._report_unknown(name)
        return None

    def _report_unknown(self, name: str) -> None:
        """Report an unknown variable as the settings require."""
        compilation = self.compilation
        message = f"Unknown variable: '{name}'."
        strict = compilation.reporter.strict
        if compilation.strict_variables or strict is Strictness.ERROR:
            raise LanguageError(message, hint=self._variable_hint(name))
        if strict is Strictness.WARNING:
            compilation.log.warn_here(message)

    def _variable_hint(self, name: str) -> str:
        if "::" in name.removeprefix("::"):
            class_name = name.removeprefix("::").rpartition("::")[0]
            if class_name not in self.compilation.scopes.by_class:
                return f"The class '{class_name}' has not been evaluated."
        return did_you_mean(name, (known for known in self.variables() if not known.isdecimal()), form="'${}'")

    def set(self, name: str, value: Value) -> Value:
        """Set `$name = value`, and return the value; raise LanguageError or EvaluationError when it may not be set."""
        variables = self.vars
        if name in variables or name in RESERVED:
            self._refuse(name)
        variables[name] = value
        return value

    def replace(self, before: Value, after: Value) -> Value:
        """
        Give a collection that Ruby has changed in place its new content; return the one that has it.

        A parameter's changes itself, as each parameter has its own. Others, which nodes may share, are exchanged in the variables here and
        of classes; code that runs goes on with the old one.
        """
        self.compilation.template_values.pop(id(before), None)
        scopes = (*self.chain(), *self.compilation.scopes.by_class.values())
        if any(value is before for scope in scopes if scope.resource is not None for value in scope.resource.values.values()):
            refill(before, after)
            return before
        for scope in scopes:
            scope.vars.update({name: after for name, value in scope.vars.items() if value is before})
        return after

    def bind(self, name: str, value: Value) -> None:
        """Set a parameter, without a check."""
        self.vars[name] = value

    def _refuse(self, name: str) -> None:
        if name in RESERVED:
            if name == "server_facts" or name in self.vars:
                raise LanguageError(f"Attempt to assign to a reserved variable name: '${name}'")
            raise EvaluationError(f"Attempt to assign to a reserved variable name: '{name}'")
        if name in ("title", "name") and self.kind != "local":
            raise LanguageError(f"Cannot reassign built in (or already assigned) variable '${name}'")
        raise LanguageError(f"Cannot reassign variable '${name}'")

    def enter_matches(self) -> MatchVariables:
        """Return the match variables of a body: at first those of the scope around it, if a match is in force there."""
        holder = self.matched
        if holder is None:
            around = next((scope.matched for scope in self.chain() if scope.matched is not None), None)
            holder = self.matched = MatchVariables(around.last if around is not None else None)
        return holder

    def local(self) -> Scope:
        """Return a scope for a lambda or template: names are looked up here too, everything else is shared."""
        inner = Scope(self.compilation, "local", parent=self.parent, next=self, resource=self.resource, source=self.source)
        # Shared, not copied: a resource default inside a lambda counts for the whole body, as in the reference.
        inner.defaults = self.defaults
        inner.matched = self.matched
        return inner

    def global_scope(self) -> Scope:
        """Return the top scope: all a function of the language sees."""
        return self.compilation.top

    def global_local(self) -> Scope:
        return self.compilation.top.local()

    def special_names(self) -> list[str]:
        """Return the names of visible variables that the language cannot write; inner scopes come first."""
        return [
            name
            for scope in self.chain()
            for name in (scope.vars.special_names() if isinstance(scope.vars, TopVariables) else scope.vars)
            if not name.isidentifier()
        ]

    # --- whose it is ---

    @property
    def module_name(self) -> str:
        name = self.vars.get("module_name", MISSING)
        if name is MISSING and self.kind == "local" and self.next is not None:
            return self.next.module_name
        return name if isinstance(name, str) else ""

    def default_attributes(self, type_name: str) -> dict[str, ResourceAttribute] | None:
        """Return the resource defaults of a type in force here, the innermost winning; None when there are none."""
        # Without any resource default, no resource has to walk its scopes.
        if not self.compilation.scopes.has_defaults:
            return None
        attributes: dict[str, ResourceAttribute] | None = None
        scope: Scope | None = self
        chain: list[dict[str, ResourceAttribute]] = []
        while scope is not None:
            defaults = scope.defaults.get(type_name)
            if defaults:
                chain.append(defaults)
            scope = scope.parent
        # Outermost first, so that inner defaults override outer ones.
        for defaults in reversed(chain):
            attributes = {**attributes, **defaults} if attributes else dict(defaults)
        return attributes

    def is_default(self, type_name: str, name: str, value: Value) -> bool:
        """Return whether a resource default in force has this very value."""
        scope: Scope | None = self
        while scope is not None:
            defaults = scope.defaults.get(type_name)
            if defaults is not None and name in defaults and defaults[name].value == value:
                return True
            scope = scope.parent
        return False

    def name(self) -> str:
        """Return the name in logs: `Scope(Class[main])`."""
        return f"Scope({self.resource.ref})" if self.resource is not None else "Scope()"

    def chain(self) -> Iterator[Scope]:
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.next

    def variables(self) -> dict[str, Value]:
        """Return all variables visible by a plain name."""
        variables: dict[str, Value] = {}
        for scope in reversed(list(self.chain())):
            variables.update(scope.vars)
        return variables

    # --- what functions may ask: Context and CatalogContext of `functions` ---

    @property
    def reporter(self) -> Reporter:
        return self.compilation.reporter

    @property
    def types(self) -> Types:
        return self.compilation.definitions

    def log(self, level: str, message: str) -> None:
        self.compilation.log.add(level, message, source=self.name())

    def warn_once(self, kind: str, key: str, message: str, *, place: bool = False) -> None:
        self.compilation.log.warn_once(kind, key, message, place=place)

    def call_function(self, name: str, args: Sequence[Value], block: Closure | None = None) -> Value:
        return self.compilation.definitions.function(name).call(self, args, block)

    def has_function(self, name: str) -> bool:
        return self.compilation.definitions.find_function(name) is not None

    def variable(self, name: str) -> Value:
        value = self.find(name)
        if value is MISSING:
            raise KeyError(name)
        return value

    def fact(self, name: str) -> Value:
        return self.compilation.fact(name)

    def setting(self, name: str) -> Value:
        self.compilation.scopes.setting_names.add(name)
        value: Value = self.compilation.host.setting(name)
        return value

    def now(self) -> int:
        self.compilation.mark_uncacheable("the time is asked for")
        return self.compilation.host.now()

    def mark_uncacheable(self, reason: str, where: Location | None = None) -> None:
        self.compilation.mark_uncacheable(reason, where)

    doubt = mark_uncacheable  # deprecated

    def defaults_of(self, type_name: str) -> dict[str, Value]:
        """Return the defaults of a type's attributes that are in force here."""
        defaults = self.default_attributes(capitalized_type(type_name)) or {}
        return {name: attribute.value for name, attribute in defaults.items()}

    def include(self, names: Sequence[str]) -> list[DeclaredResource]:
        return self.compilation.actions.include(self, names)

    def create_resources(self, type_name: str, titles: Sequence[str], values: dict[str, Value], **origin: Any) -> list[Value]:
        return self.compilation.actions.create_resources(self, type_name, titles, values, **origin)

    def realize(self, references: list[tuple[str, str]]) -> None:
        self.compilation.pending.collectors.append(Realizer(references))

    def look_up(self, key: str, merge: Value = None, arguments: LookupArguments = NO_ARGUMENTS) -> Value:
        return self.compilation.host.lookup(key, self.data_context(), merge, arguments)

    def lookup_context(self, module: str | None) -> LookupMethods:
        return self.compilation.host.lookup_context(self.data_context(), module)

    def data_context(self) -> DataContext:
        """Return the interface of this scope for Hiera."""
        return self.compilation.actions.data_context(self)

    def render_epp(self, function: str, text: str, file: str, parameters: Mapping[str, Value] | None, *, outside: CatalogContext) -> Value:
        assert isinstance(outside, Scope)
        return self.compilation.actions.render_epp(self, function, text, file, parameters, outside)

    def render_erb(self, text: str, name: str | None = None, file: str | None = None) -> str:
        return self.compilation.actions.render_erb(self, text, name, file)
