"""From a node to the plain data of its catalog: the order of work."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from shared.errors import CompileError, EvaluationError, PuppetError
from shared.regexps import remembered_matches

from ..catalog.builder import CatalogBuilder
from ..catalog.definitions import HostClass
from ..catalog.relationships import validate
from ..catalog.resources import DeclaredResource
from ..catalog.wire import wire_catalog
from ..errors.control import Jump
from ..errors.locations import FINAL, locate_error, place_of, stray_jump_error
from ..host import CompilerHost, NodeInput
from ..loading.loader import Loader
from ..log import LogEntry
from .compilation import Actions, Compilation
from .declarations.classes import declare_class, include_classes
from .declarations.definitions import evaluate, evaluate_definition
from .declarations.finalize import finish
from .declarations.resource_expressions import create_resources
from .dependencies import NodeDependencies
from .site_data import ScopeDataContext
from .templates import render_epp, render_erb

# The reference's own limit, in the same message: a define that declares itself with new titles would loop for ever.
MAX_GENERATIONS = 1000
ACTIONS = Actions(include_classes, create_resources, render_epp, render_erb, ScopeDataContext)


def compile_catalog(  # noqa: PLR0913
    host: CompilerHost,
    loader: Loader,
    node: NodeInput,
    *,
    version: int | str,
    log: Callable[[LogEntry], None],
    rich: bool = True,
    exported: bool = False,
    texts: bool = False,
    debug: bool = True,
    dependencies: NodeDependencies | None = None,
) -> dict[str, Any]:
    """
    Return the catalog of a node, as plain data: `protocol reference 3.4`, without virtual resources, and those that are exported.

    Args:
        version: the output of `config_version`, or seconds since the epoch.
        rich: values that JSON lacks are encoded as `__ptype` maps; else turned into text.
        exported: exported resources stay in it, those that nobody collected marked as `virtual`.
        texts: resources have their rich values as text as well, in `texts`.
        debug: somebody reads what functions in Ruby log at that level.
        dependencies: notes what is read of the node.
    Raises:
        CompileError: located, in the reference's words.
    """
    compilation = begin(host, loader, node, log, debug=debug, dependencies=dependencies)
    with raised_recursion_limit(), remembered_matches():
        compile_node(compilation)
        try:
            return wire_catalog(compilation, version=version, rich=rich, exported=exported, texts=texts)
        finally:
            # Resources and scopes refer to each other; broken here, they do not have to wait for the garbage collector.
            compilation.dispose()


RECURSION = 10_000
"""Python frames, some eight for a class that includes another; twice as many still fit into a stack of 8 MiB."""


@contextmanager
def raised_recursion_limit() -> Iterator[None]:
    """Raise the recursion limit in the block, for classes and functions nest more deeply than Python's usual limit takes."""
    # Python's default of 1,000 frames would refuse manifests that the reference compiles.
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def begin(
    host: CompilerHost,
    loader: Loader,
    node: NodeInput,
    log: Callable[[LogEntry], None],
    *,
    debug: bool = True,
    dependencies: NodeDependencies | None = None,
) -> Compilation:
    """Return a new compilation before any evaluation; the arguments are those of `compile_catalog`."""
    return Compilation(host, loader, node, log, ACTIONS, debug=debug, dependencies=dependencies)


def compile_node(compilation: Compilation) -> CatalogBuilder:
    """
    Return the finished catalog, virtual resources still in it.

    Raises:
        CompileError: located, in the reference's words, with the node's name.
    Source: language reference 13.
    """
    try:
        _compile(compilation)
    except PuppetError as error:
        raise _failure(compilation, error) from error
    except RecursionError as error:
        place = place_of(error)
        hint = f"The deep or endless recursion passes through {place}." if place is not None else ""
        raise _failure(compilation, EvaluationError("stack level too deep", where=FINAL, hint=hint)) from error
    except Jump as jump:
        raise _failure(compilation, stray_jump_error(jump)) from jump
    return compilation.catalog


def open_top_scope(compilation: Compilation) -> None:
    """Set the node's variables, and nothing else: for templates and expressions that belong to no catalog."""
    _set_top_variables(compilation)
    compilation.scopes.by_class[""] = compilation.top


def _failure(compilation: Compilation, error: PuppetError) -> CompileError:
    error = locate_error(error)
    # Errors of the host (a missing file, a refused read) are errors of the manifest to the agent.
    if not isinstance(error, CompileError):
        error = EvaluationError(error.message, where=error.where, hint=error.hint)
    error.node = compilation.node.certname
    return error


def _compile(compilation: Compilation) -> None:
    # The order is the reference's: it decides which error is reported first and the order of resources in the catalog.
    compilation.catalog.add(_stage(compilation))
    for name in compilation.node.classes:
        compilation.catalog.classes.append(name)
    _set_top_variables(compilation)
    # Settings come before the main manifest, which may already read $settings::… at top scope.
    _evaluate_settings(compilation)
    _evaluate_main(compilation)
    _evaluate_node(compilation)
    _evaluate_node_classes(compilation)
    _generate(compilation)
    finish(compilation)
    compilation.pending.check_done()
    validate(compilation.catalog)


def _stage(compilation: Compilation) -> DeclaredResource:
    stage = DeclaredResource("Stage", "main", scope=compilation.top, native=compilation.host.types.find("stage"), kind="compilable_type")
    stage.tags = {"stage": None}
    stage.values["name"] = "main"
    return stage


def _set_top_variables(compilation: Compilation) -> None:
    top = compilation.top.vars
    for name, value in compilation.node.parameters.items():
        # A classifier's parameter `environment` must not hide the environment that is really compiled.
        if name != "environment":
            top[name] = value
    top["environment"] = compilation.host.environment
    # After the parameters, so that no classifier and no fact can replace trusted data.
    top["trusted"] = dict(compilation.node.trusted)
    top["server_facts"] = dict(compilation.node.server_facts)
    top["facts"] = dict(compilation.node.facts)


def _evaluate_settings(compilation: Compilation) -> None:
    settings = compilation.definitions.settings
    resource = DeclaredResource("Class", "Settings", scope=compilation.top, source=settings, definition=settings, kind="unknown")
    compilation.catalog.add(resource)
    resource.evaluated = True
    evaluate_definition(compilation, resource)
    scope = compilation.scopes.by_class["settings"]
    values = compilation.host.settings()
    texts = dict(values)
    scope.vars.update(texts)
    scope.vars["all_local"] = texts


def _evaluate_main(compilation: Compilation) -> None:
    bodies = compilation.loader.load_main()
    # Only now are all type aliases of the main manifests known.
    compilation.definitions.check_parameter_types()
    main = HostClass("", (), None)
    resource = DeclaredResource("Class", "main", scope=compilation.top, source=main, definition=main, kind="unknown")
    resource.tags = {"class": None}
    resource.values["name"] = "main"
    compilation.top.source = main
    compilation.top.resource = resource
    compilation.catalog.declare(resource)
    resource.evaluated = True
    variables = compilation.top.vars
    variables["module_name"] = ""
    variables["caller_module_name"] = ""
    # A node parameter or fact of this name wins, as with the reference.
    variables.setdefault("title", "main")
    variables.setdefault("name", "main")
    compilation.scopes.by_class[""] = compilation.top
    compilation.catalog.contain_in_stage(resource)
    for body in bodies:
        body(compilation.top)


def _evaluate_node(compilation: Compilation) -> None:
    if not compilation.loader.nodes:
        return
    block_and_match = compilation.loader.find_node(_node_names(compilation))
    if block_and_match is None:
        raise EvaluationError(
            f"Could not find node statement with name 'default' or '{compilation.node.certname}'",
            where=FINAL,
            hint="Add a node block for it, or `node default`.",
        )
    node, compilation.scopes.node_match = block_and_match
    resource = DeclaredResource("Node", node.name, scope=compilation.top, source=node, definition=node, kind="unknown")
    compilation.catalog.tags.update(resource.tags)
    compilation.catalog.declare(resource)
    evaluate(compilation, resource)


def _node_names(compilation: Compilation) -> list[str]:
    """Return the names that node blocks are looked up by: the certname; before Puppet 6 also `a.b` and `a` of `a.b.c`."""
    name = compilation.node.certname
    if compilation.host.setting("strict_hostname_checking") is not False:
        # The certificate decides alone: with shortened names `web1.evil.example` would match a block for `web1`.
        return [name]
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _evaluate_node_classes(compilation: Compilation) -> None:
    scope = compilation.scopes.node or compilation.top
    classes = compilation.node.classes
    # Classes with parameters first: once a class is included, it can no longer be declared with parameters.
    with_parameters = {name: values for name, values in classes.items() if values}
    for name, values in with_parameters.items():
        declare_class(compilation, compilation.definitions.class_for(name, compilation.node.certname), scope, dict(values))
    certname = compilation.node.certname
    for host_class in [compilation.definitions.class_for(name, certname) for name in classes if name not in with_parameters]:
        # The main manifest or a class before may have included it already.
        if host_class.name not in compilation.scopes.by_class:
            declare_class(compilation, host_class, scope, None)


def _generate(compilation: Compilation) -> None:
    for _ in range(MAX_GENERATIONS + 1):
        # Collectors first, as in the reference: an override may set parameters of a define that is not evaluated yet.
        has_collected = compilation.pending.run_collectors(compilation)
        if not _evaluate_definitions(compilation) and not has_collected:
            return
    raise EvaluationError(f"Somehow looped more than {MAX_GENERATIONS} times while evaluating host catalog", where=FINAL)


def _evaluate_definitions(compilation: Compilation) -> bool:
    """Evaluate the classes and defines that are declared and wait for it; an error names the place of the declaration."""
    # A list, not a generator: evaluating a define declares further resources.
    waiting = [entry for entry in compilation.catalog.declared if not entry.evaluated and not entry.virtual and entry.native is None]
    for resource in waiting:
        try:
            evaluate(compilation, resource)
        except PuppetError as error:
            located_error = locate_error(error)
            raise EvaluationError(
                f"Evaluation Error: Error while evaluating a Resource Statement, {located_error}",
                where=resource.place,
                hint=located_error.hint,
            ) from error
    return bool(waiting)
