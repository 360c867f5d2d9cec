"""From a node to its catalog: the order of work, and everything that is true for one compilation only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.errors import CompileError, EvaluationError, Location, PuppetError

from ..catalog.builder import CatalogBuilder
from ..catalog.definitions import HostClass
from ..catalog.pending import PendingWork
from ..catalog.relationships import validate
from ..catalog.resources import DeclaredResource, Override
from ..errors.control import Jump
from ..errors.locations import FINAL, locate_error, place_of, stray_jump_error
from ..host import CompilerHost, NodeInput
from ..loading.loader import Loader
from ..log import CompilationLog, LocatedReporter, LogEntry
from ..values.core import Strictness, Value
from .declarations.classes import declare_class, include_classes
from .declarations.definitions import evaluate_definition
from .declarations.finalize import finish
from .declarations.resource_expressions import create_resources
from .definition_lookup import DefinitionLookup
from .dependencies import NodeDependencies, TopVariables
from .scopes.scope import Scope
from .scopes.scope_table import ScopeTable
from .site_data import SiteData
from .templates import render_epp, render_erb

MAX_GENERATIONS = 1000


class Compilation:
    """
    One compilation.

    Args:
        log: gets every log entry when it happens, also when the compilation fails in the end.
        dependencies: notes what is read of the node.
    Attributes:
        catalog: the catalog that is built.
        pending: the overrides, collectors and relationships that wait for resources.
        definitions: look-ups of classes, defines, functions and types by name.
        scopes: the scopes that are looked up by name: top scope, the node's, those of classes.
        data: the site's data.
        template_values: by identity, values that ERB templates have set, each with the template's own object.
        log: where log entries go.
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
        self.log = CompilationLog(log, host.setting("disable_warnings") or ())
        self.reporter = LocatedReporter(self.log, Strictness(host.setting("strict") or "warning"))
        self.strict_variables = bool(host.setting("strict_variables"))
        self.storeconfigs = bool(host.setting("storeconfigs"))
        self.catalog = CatalogBuilder()
        self.dependencies = dependencies
        self.top = Scope(self, "top")
        if dependencies is not None:
            self.top.vars = TopVariables(dependencies)
        reads = dependencies or NodeDependencies()
        self.scopes = ScopeTable(self.top, reads.settings)
        self.function_names = reads.functions
        self.definitions = DefinitionLookup(host, loader, self.top, self.log, reads.definitions, reads.functions)
        self.data = SiteData(self)
        self.pending = PendingWork()
        self.template_values: dict[int, tuple[Value, Any]] = {}

    def dispose(self) -> None:
        """Break the reference cycles of a finished compilation, so that its memory is freed at once, without the garbage collector."""
        for resource in self.catalog.declared:
            resource.contents.clear()
        vars(self).clear()

    # --- the order of work ---

    def compile(self) -> CatalogBuilder:
        """
        Return the finished catalog, virtual resources still in it.

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
            raise self._failure(stray_jump_error(jump)) from jump
        return self.catalog

    def open_top_scope(self) -> None:
        """Set the node's variables, and nothing else: for templates and expressions that belong to no catalog."""
        self._set_top_variables()
        self.scopes.by_class[""] = self.top

    def _failure(self, error: PuppetError) -> CompileError:
        error = locate_error(error)
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
        self.pending.check_done()
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
        settings = self.definitions.settings
        resource = DeclaredResource("Class", "Settings", scope=self.top, source=settings, definition=settings, kind="unknown")
        self.catalog.add(resource)
        resource.evaluated = True
        evaluate_definition(self, resource)
        scope = self.scopes.by_class["settings"]
        values = self.host.settings()
        texts = dict(values)
        scope.vars.update(texts)
        scope.vars["all_local"] = texts

    def _evaluate_main(self) -> None:
        bodies = self.loader.load_main()
        self.definitions.check_parameter_types()
        main = HostClass("", (), None)
        resource = DeclaredResource("Class", "main", scope=self.top, source=main, definition=main, kind="unknown")
        resource.tags = {"class": None}
        resource.values["name"] = "main"
        self.top.source = main
        self.top.resource = resource
        self.catalog.declare(resource)
        resource.evaluated = True
        variables = self.top.vars
        variables["module_name"] = ""
        variables["caller_module_name"] = ""
        variables.setdefault("title", "main")
        variables.setdefault("name", "main")
        self.scopes.by_class[""] = self.top
        self.catalog.contain_in_stage(resource)
        for body in bodies:
            body(self.top)

    def _evaluate_node(self) -> None:
        if not self.loader.nodes:
            return
        block_and_match = self.loader.find_node(self._node_names())
        if block_and_match is None:
            raise EvaluationError(
                f"Could not find node statement with name 'default' or '{self.node.certname}'",
                where=FINAL,
                hint="Add a node block for it, or one that says `node default`.",
            )
        node, self.scopes.node_match = block_and_match
        resource = DeclaredResource("Node", node.name, scope=self.top, source=node, definition=node, kind="unknown")
        self.catalog.tags.update(resource.tags)
        self.catalog.declare(resource)
        self.evaluate(resource)

    def _node_names(self) -> list[str]:
        """Return the names that node blocks are looked up by: the certname; before Puppet 6 also `a.b` and `a` of `a.b.c`."""
        name = self.node.certname
        if self.host.setting("strict_hostname_checking") is not False:
            return [name]
        parts = name.split(".")
        return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]

    def _evaluate_node_classes(self) -> None:
        scope = self.scopes.node or self.top
        classes = self.node.classes
        with_parameters = {name: values for name, values in classes.items() if values}
        for name, values in with_parameters.items():
            declare_class(self, self.definitions.class_for(name, self.node.certname), scope, dict(values))
        for host_class in [self.definitions.class_for(name, self.node.certname) for name in classes if name not in with_parameters]:
            if host_class.name not in self.scopes.by_class:
                declare_class(self, host_class, scope, None)

    def _generate(self) -> None:
        for _ in range(MAX_GENERATIONS + 1):
            has_collected = self.pending.run_collectors(self)
            if not self._evaluate_definitions() and not has_collected:
                return
        raise EvaluationError(f"Somehow looped more than {MAX_GENERATIONS} times while evaluating host catalog", where=FINAL)

    def _evaluate_definitions(self) -> bool:
        """Evaluate the classes and defines that are declared and wait for it; an error names the place of the declaration."""
        waiting = [entry for entry in self.catalog.declared if not entry.evaluated and not entry.virtual and entry.native is None]
        for resource in waiting:
            try:
                self.evaluate(resource)
            except PuppetError as error:
                located_error = locate_error(error)
                raise EvaluationError(
                    f"Evaluation Error: Error while evaluating a Resource Statement, {located_error}",
                    where=resource.place,
                    hint=located_error.hint,
                ) from error
        return bool(waiting)

    def evaluate(self, resource: DeclaredResource) -> None:
        """Run the body of a class, define or node, once."""
        if resource.evaluated:
            return
        resource.evaluated = True
        resource.add_scope_tags()
        evaluate_definition(self, resource)

    # --- what functions ask for ---

    def include(self, names: Sequence[str], scope: Scope) -> list[DeclaredResource]:
        """Declare and evaluate the classes of these names that are not declared yet; return the resources of all."""
        return include_classes(self, names, scope)

    def create_resources(self, scope: Scope, type_name: str, titles: Sequence[str], values: dict[str, Value], **origin: Any) -> list[Value]:
        """Declare one resource per title; return references to them. `origin`: as `resource_expressions.create_resources` takes it."""
        return create_resources(scope, type_name, titles, values, **origin)

    def render_epp(
        self, scope: Scope, function: str, text: str, file: str, parameters: Mapping[str, Value] | None, outside: Scope
    ) -> Value:
        """Return the text of a template; it sees the variables of the scope `outside`."""
        return render_epp(scope, function, text, file, parameters, outside=outside)

    def render_erb(self, scope: Scope, text: str, name: str | None, file: str | None) -> str:
        """Return the text of an ERB template that a scope renders."""
        return render_erb(scope, text, name, file)

    # --- what the parts of a compilation tell it ---

    def add_override(self, override: Override) -> None:
        """Apply an override now, or keep it until its resource is declared."""
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
