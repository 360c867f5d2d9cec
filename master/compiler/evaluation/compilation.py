"""From a node to its catalog: the order of work, and everything that is true for one compilation only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared.errors import CompileError, EvaluationError, Location, PuppetError, Unsupported
from shared.suggestions import did_you_mean

from ..catalog.builder import CatalogBuilder
from ..catalog.collectors import Realizer, ResourceCollector, unresolved_error
from ..catalog.definitions import Define, HostClass, class_title
from ..catalog.overrides import apply_override
from ..catalog.relationships import RelationshipEdge, validate
from ..catalog.resources import DeclaredResource, Override, capitalized_type
from ..errors.control import Jump
from ..errors.issues import LanguageError
from ..errors.locations import FINAL, current, located, place_of, stray
from ..functions import Function
from ..host import NO_ARGUMENTS, CompilerHost, DataContext, LookupArguments, NodeInput
from ..loading.loader import Loader
from ..types.base import PuppetType
from ..types.builtin import BUILTIN_TYPES
from ..types.objects import ANNOTATION
from ..types.references import ResourceType
from ..values.core import Deferred, Strictness, Value
from ..values.text import inspect
from .data_context import ScopeDataContext
from .definitions import evaluate_definition
from .dependencies import NodeDependencies, TopVariables
from .finalize import finish, similar
from .scope import MISSING, Scope, ScopeReporter, declaring_scope

__all__ = ["Compilation", "LogEntry"]

MAX_GENERATIONS = 1000


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A line of the master's log that a manifest caused; `text` is as the reference prints it."""

    level: str
    message: str
    where: Location | None = None
    source: str = ""

    @property
    def text(self) -> str:
        place = str(self.where) if self.where else ""
        return f"{self.message} {place}" if place else self.message


class Compilation:
    """
    One compilation.

    `log` gets every entry when it happens, also when the compilation fails in the end. `dependencies` notes what is read of the node.
    """

    def __init__(
        self,
        host: CompilerHost,
        loader: Loader,
        node: NodeInput,
        log: Callable[[LogEntry], None],
        *,
        dependencies: NodeDependencies | None = None,
    ) -> None:
        self.host = host
        self.loader = loader
        self.node = node
        self._log = log
        self.reporter = ScopeReporter(self, Strictness(host.setting("strict") or "warning"))
        self.strict_variables = bool(host.setting("strict_variables"))
        self.storeconfigs = bool(host.setting("storeconfigs"))
        self.catalog = CatalogBuilder()
        self.dependencies = dependencies
        self.top = Scope(self, "top")
        if dependencies is not None:
            self.top.vars = TopVariables(dependencies)
        self.node_scope: Scope | None = None
        self.node_match: Any = None
        self.class_scopes: dict[str, Scope] = {}
        self._settings = HostClass("settings", (), None)  # every catalog has it; manifests may include it as any other
        self.has_defaults = False
        self.overrides: dict[tuple[str, str], list[Override]] = {}
        self.collectors: list[ResourceCollector | Realizer] = []
        self.relationships: list[RelationshipEdge] = []
        self._warned: set[tuple[str, str]] = set()
        self._data_session: dict[str, Any] = {}

    def dispose(self) -> None:
        """Break the reference cycles of a finished compilation, so that its memory is freed at once, without the garbage collector."""
        for resource in self.catalog.declared:
            resource.contents.clear()
        vars(self).clear()

    # --- the order of work ---

    def compile(self) -> CatalogBuilder:
        """
        The finished catalog, virtual resources still in it.

        Raises:
            CompileError: located, in the reference's words, with the node's name.
        Source: language reference 13.
        """
        try:
            self._compile()
        except PuppetError as error:
            raise self._failure(error) from error
        except RecursionError as error:
            place = place_of(error)
            hint = f"What nests too deeply, or for ever, goes through {place}." if place is not None else ""
            raise self._failure(EvaluationError("stack level too deep", where=FINAL, hint=hint)) from error
        except Jump as jump:
            raise self._failure(stray(jump)) from jump
        return self.catalog

    def open_top_scope(self) -> None:
        """Set the node's variables, and nothing else: for templates and expressions that belong to no catalog."""
        self._set_top_variables()
        self.class_scopes[""] = self.top

    def _failure(self, error: PuppetError) -> CompileError:
        error = located(error)
        if not isinstance(error, CompileError):
            error = EvaluationError(error.message, where=error.where, hint=error.hint)
        error.node = self.node.certname
        return error

    def _compile(self) -> None:
        self.catalog.add(self._stage())
        for name in self.node.classes:
            self.catalog.classes.append(name)
        self._set_top_variables()
        self._evaluate_settings()
        self._evaluate_main()
        self._evaluate_node()
        self._evaluate_node_classes()
        self._generate()
        finish(self)
        if any(self.overrides.values()):
            references = [f"{type_}[{title}]" for (type_, title), waiting in self.overrides.items() for _ in waiting]
            raise EvaluationError(f"Could not find resource(s) {', '.join(references)} for overriding", where=FINAL)
        unresolved = [reference for collector in self.collectors for reference in collector.unresolved()]
        if unresolved:
            error = unresolved_error(unresolved)
            error.where = FINAL
            raise error
        validate(self.catalog)

    def _stage(self) -> DeclaredResource:
        stage = DeclaredResource("Stage", "main", scope=self.top, native=self.host.types.find("stage"), kind="compilable_type")
        stage.tags = {"stage": None}
        stage.values["name"] = "main"
        return stage

    def _set_top_variables(self) -> None:
        top = self.top.vars
        for name, value in self.node.parameters.items():
            if name != "environment":
                top[name] = value
        top["environment"] = self.host.environment
        top["trusted"] = dict(self.node.trusted)
        top["server_facts"] = dict(self.node.server_facts)
        top["facts"] = dict(self.node.facts)

    def _evaluate_settings(self) -> None:
        settings = self._settings
        resource = DeclaredResource("Class", "Settings", scope=self.top, source=settings, definition=settings, kind="unknown")
        self.catalog.add(resource)
        resource.evaluated = True
        evaluate_definition(self, resource)
        scope = self.class_scopes["settings"]
        values = self.host.settings()
        shown = dict(values)
        scope.vars.update(shown)
        scope.vars["all_local"] = shown

    def _evaluate_main(self) -> None:
        bodies = self.loader.load_main()
        if self.loader.unchecked:
            self.loader.check_parameter_types(self.top)
        main = HostClass("", (), None)
        resource = DeclaredResource("Class", "main", scope=self.top, source=main, definition=main, kind="unknown")
        resource.tags = {"class": None}
        resource.values["name"] = "main"
        self.top.source = main
        self.top.resource = resource
        self.catalog.declare(resource)
        resource.evaluated = True
        own = self.top.vars
        own["module_name"] = ""
        own["caller_module_name"] = ""
        own.setdefault("title", "main")
        own.setdefault("name", "main")
        self.class_scopes[""] = self.top
        self.catalog.contain_in_stage(resource)
        for body in bodies:
            body(self.top)

    def _evaluate_node(self) -> None:
        if not self.loader.nodes:
            return
        found = self.loader.find_node(self._node_names())
        if found is None:
            raise EvaluationError(
                f"Could not find node statement with name 'default' or '{self.node.certname}'",
                where=FINAL,
                hint="Add a node block for it, or one that says `node default`.",
            )
        node, self.node_match = found
        resource = DeclaredResource("Node", node.name, scope=self.top, source=node, definition=node, kind="unknown")
        self.catalog.tags.update(resource.tags)
        self.catalog.declare(resource)
        self.evaluate(resource)

    def _node_names(self) -> list[str]:
        """What node blocks are asked for: the certname; before Puppet 6 also `a.b` and `a` of `a.b.c`."""
        name = self.node.certname
        if self.host.setting("strict_hostname_checking") is not False:
            return [name]
        parts = name.split(".")
        return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]

    def _evaluate_node_classes(self) -> None:
        scope = self.node_scope or self.top
        given = self.node.classes
        with_parameters = {name: values for name, values in given.items() if values}
        for name, values in with_parameters.items():
            definition = self._class_for(name)
            self._declare_class(definition, scope, dict(values or {}))
        for definition in [self._class_for(name) for name in given if name not in with_parameters]:
            if definition.name not in self.class_scopes:
                self._declare_class(definition, scope, None)

    def _class_for(self, name: str) -> HostClass:
        definition = self.find_class(name)
        if definition is None:
            raise EvaluationError(f"Could not find class {name} for {self.node.certname}")
        return definition

    def _generate(self) -> None:
        for _ in range(MAX_GENERATIONS + 1):
            found = self._evaluate_collectors()
            if not self._evaluate_definitions() and not found:
                return
        raise EvaluationError(f"Somehow looped more than {MAX_GENERATIONS} times while evaluating host catalog", where=FINAL)

    def _evaluate_collectors(self) -> bool:
        found = False
        for collector in list(self.collectors):
            if collector.evaluate(self):
                found = True
        return found

    def _evaluate_definitions(self) -> bool:
        """Evaluate what is declared and waits for it; a failure is told at the place of the declaration."""
        waiting = [each for each in self.catalog.declared if not each.evaluated and not each.virtual and each.native is None]
        for resource in waiting:
            try:
                self.evaluate(resource)
            except PuppetError as error:
                told = located(error)
                raise EvaluationError(
                    f"Evaluation Error: Error while evaluating a Resource Statement, {told}", where=resource.place, hint=told.hint
                ) from error
        return bool(waiting)

    # --- classes and resources ---

    def find_class(self, name: str) -> HostClass | None:
        plain = name.removeprefix("::").lower()
        found = self.loader.find_class(plain)
        if self.loader.unchecked:
            self.loader.check_parameter_types(self.top)
        return found or (self._settings if plain == self._settings.name else None)

    def find_define(self, name: str) -> Define | None:
        found = self.loader.find_define(name)
        if self.loader.unchecked:
            self.loader.check_parameter_types(self.top)
        return found

    def include(self, names: Sequence[str], scope: Scope) -> list[DeclaredResource]:
        """
        Declare and evaluate classes by their absolute names, those that are not declared yet.

        All are declared before the first is evaluated. Source: language reference 5.2.
        """
        definitions: list[HostClass] = []
        for name in names:
            definition = self.find_class(name)
            if definition is None:
                raise EvaluationError(f"Could not find class {name} for {self.node.certname}")
            definitions.append(definition)
        included: list[DeclaredResource] = []
        new: list[DeclaredResource] = []
        for definition in definitions:
            known = self.class_scopes.get(definition.name)
            if known is not None and known.resource is not None:
                included.append(known.resource)
            else:
                new.append(self._declare_class(definition, scope, None))
        for resource in new:
            self.evaluate(resource)
        return included + new

    def _declare_class(self, definition: HostClass, scope: Scope, values: Mapping[str, Value] | None) -> DeclaredResource:
        title = class_title(definition.name)
        if values is None:
            existing = self.catalog.find("Class", title)
            if existing is not None:
                return existing
        resource = DeclaredResource("Class", title, scope=scope, source=definition, definition=definition, kind="unknown")
        if values:
            for name, value in values.items():
                resource.set(name, value)
        self.instantiate(resource)
        self.catalog.declare(resource)
        return resource

    def instantiate(self, resource: DeclaredResource) -> None:
        """Declare the class that a class inherits from, and tag the catalog."""
        definition = resource.definition
        if isinstance(definition, HostClass):
            scope = declaring_scope(resource)
            if definition.parent is not None and scope is not None:
                self._declare_class(definition.parent, scope, None)
            self.catalog.tags.update(resource.tags)

    def evaluate(self, resource: DeclaredResource) -> None:
        """Run the body of a class, define or node, once."""
        if resource.evaluated:
            return
        resource.evaluated = True
        resource.add_scope_tags()
        evaluate_definition(self, resource)

    def node_scope_of(self, scope: Scope | None) -> Scope:
        """The scope behind a class's or define's own: that of the node, once there is one, else top scope."""
        while scope is not None:
            if scope.kind in ("node", "top"):
                return scope
            scope = scope.next if scope.kind == "local" else scope.parent
        return self.top

    # --- overrides ---

    def add_override(self, override: Override) -> None:
        """Apply an override now, or keep it until its resource is declared."""
        resource = self.catalog.find(*override.reference)
        if resource is not None:
            apply_override(self, resource, override)
        else:
            self.overrides.setdefault(override.reference, []).append(override)

    # --- names ---

    def fact(self, name: str) -> Value:
        """`$facts['name']`; undef when the node has no such fact."""
        if self.dependencies is not None:
            self.dependencies.facts.add(name)
        return self.node.facts.get(name)

    def mark_uncacheable(self, reason: str) -> None:
        """Keep the catalog out of the cache: something was read that is another thing each time."""
        if self.dependencies is not None:
            self.dependencies.uncacheable_reason = reason

    def qualified(self, class_name: str, name: str) -> Value:
        """A variable of an evaluated class, or of those it inherits from; MISSING when there is none."""
        scope = self.class_scopes.get(class_name)
        while scope is not None:
            value = scope.vars.get(name, MISSING)
            if value is not MISSING:
                return value
            scope = scope.next if scope.next is not None and scope.next.kind == "class" else None
        return MISSING

    def unknown_variable(self, name: str, scope: Scope) -> None:
        """Complain about a variable that is not there, as the settings say."""
        message = f"Unknown variable: '{name}'."
        if self.strict_variables or self.reporter.strict is Strictness.ERROR:
            raise LanguageError(message, hint=self._variable_hint(name, scope))
        if self.reporter.strict is Strictness.WARNING:
            self.warn_here(message)

    def _variable_hint(self, name: str, scope: Scope) -> str:
        if "::" in name.removeprefix("::"):
            class_name = name.removeprefix("::").rpartition("::")[0]
            if class_name not in self.class_scopes:
                return f"The class '{class_name}' has not been evaluated."
        return did_you_mean(name, (known for known in scope.variables() if not known.isdecimal()), form="'${}'")

    def find_function(self, name: str) -> Function | None:
        return self.loader.find_function(name)

    def function(self, name: str) -> Function:
        """The function of that name; a LanguageError when there is none."""
        found = self.loader.functions.get(name) or self.loader.find_function(name)
        if found is None:
            raise LanguageError(
                f"Unknown function: '{name}'.", hint=similar(name, [*self.loader.functions, *self.loader.library.functions])
            )
        return found

    def find_type(self, name: str) -> PuppetType | None:
        """A type by its name: built in, a resource type, or an alias. Source: language reference 16."""
        name = name.removeprefix("::")
        lower = name.lower()
        found = BUILTIN_TYPES.get(lower)
        if found is not None and (found is not ANNOTATION or self.find_define(lower) is None):  # that name is free for defines
            return found
        if "::" not in lower and self.host.types.find(lower) is not None:
            return ResourceType(name)
        if lower not in self.loader.aliases and self.find_define(lower) is not None:
            return ResourceType(capitalized_type(lower))
        return self.loader.find_alias(name, self.top)

    def type_from_text(self, text: str) -> PuppetType:
        from ..types.notation.parse import parse_type

        return parse_type(text, self)

    def deferred_type(self, value: Deferred) -> PuppetType | None:
        """What the function of a Deferred declares to return."""
        try:
            found = self.find_function(value.name)
        except Unsupported:
            return None  # the agent may well have it
        if found is None:
            return None
        for signature in found.signatures(self):
            if signature.accepts(value.arguments or []):
                if signature.returns is None:
                    told = f"Deferred function {value.name} has no return_type, unable to guarantee value type during compilation."
                    self.warn_once("deprecations", told, told)
                return signature.returns
        raise EvaluationError(f"No matching arity found for {value.name} with arguments {inspect(value.arguments or [])}")

    # --- data ---

    def data_for(self, key: str, scope: Scope, merge: Any = None, arguments: LookupArguments = NO_ARGUMENTS) -> Value:
        """The site's data for a key; NotFoundInData when there is none."""
        return self.host.lookup(key, self.data_context(scope), merge, arguments)

    def lookup_context(self, scope: Scope, module: str | None) -> Any:
        """What works behind a `Puppet::LookupContext` that a manifest made itself."""
        return self.host.lookup_context(self.data_context(scope), module)

    def data_context(self, scope: Scope) -> DataContext:
        """Return what Hiera may ask of a scope of this compilation."""
        return ScopeDataContext(self, scope, self._data_session)

    # --- logs ---

    def log(self, level: str, message: str, *, where: Location | None = None, source: str = "") -> None:
        self._log(LogEntry(level, message, where, source))

    def warn_here(self, message: str, operand: int | None = None) -> None:
        """A warning at the place in the manifest that is being evaluated, or at an operand of it."""
        self.log("warning", message, where=current(operand))

    def warn_once(self, kind: str, key: str, message: str, *, place: bool = False, file: str = "") -> None:
        if kind in (self.host.setting("disable_warnings") or ()):
            return
        if (kind, key) not in self._warned:
            self._warned.add((kind, key))
            here = Location(file) if file else current() if place else None
            if here is None:
                self.log("warning", f"{message}\n   (file & line not available)")
            else:
                # As deprecations are printed: the place is on a line of its own.
                self.log("warning", f"{message}\n  ", where=Location(here.file, here.line))
