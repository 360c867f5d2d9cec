"""
A transaction applies all resources of a catalog in their order, with events, skips and failures, and returns the result.

Source: resource layer reference 3.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.errors import PuppetError, ResourceError, text_with_hint
from shared.filesystem.files import write_atomic
from shared.models.report import ResourceStatus
from shared.ral import Ref, State, Type
from shared.ral.catalog import RalCatalog
from shared.ral.commands import keep_secret
from shared.ral.components import Component
from shared.ral.handling import Handler
from shared.ral.providers import drop_unsupported

from . import dot
from .ahead import ReadAhead
from .context import ApplyContext
from .dependencies import FailedDependencies
from .events import EventQueue
from .generate import Generator
from .graph import ContainerAnchor, Graph, Node, Walk, describe_cycles, expand, relationships
from .harness import Harness, failure_reason, failure_reason_of
from .status import EvaluationStatus

if TYPE_CHECKING:
    from shared.types.schedule import Schedule

# Bounds the command line of a joint apt-get, and the work lost when the sequence breaks off.
NEIGHBOURS = 200  # resources that may be changed together with another one


@dataclass(repr=False)  # asyncio builds the repr of a task's result, which here is a whole report
class ApplyResult:
    """The result of a transaction: statuses by reference, seconds by phase in `times`, and the error that stopped it in `error`."""

    statuses: dict[str, ResourceStatus] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    completed: bool = False
    generation_failed: bool = False
    error: PuppetError | None = None


class Transaction:
    """One application of one catalog. It is the Surroundings of the catalog's resources."""

    def __init__(self, resources: RalCatalog, context: ApplyContext) -> None:
        self.resources = resources
        self.context = context
        self.log_sink = context.log
        self.graph = Graph()
        self.harness = Harness(log=context.log, state=context.state, store=context.store, now=context.now)
        self.events = EventQueue(log=self._log_node, status=self.status_of, simulated=self._simulated, now=context.now)
        self.generator = Generator(resources, self.adopt)
        self.tags = frozenset(tag.lower() for tag in context.tags)
        self.skip_tags = frozenset(tag.lower() for tag in context.skip_tags)
        self._walk = Walk(self.graph)
        self._statuses: dict[Type, EvaluationStatus] = {}
        self._ahead = ReadAhead(lambda resource, limit: self._successors(resource, lambda other: True, limit))
        self._applied_early: set[Type] = set()  # changed already; they are evaluated in every case
        self._failed = FailedDependencies(self.status_of, self._log_node, resources.container_of, merged=context.merge_warnings)
        self._prefetched: dict[Handler[Any], Mapping[str, State | None]] = {}
        self._prefetch_failed: set[Handler[Any]] = set()
        self._without_provider: dict[str, str] = {}  # type → what its providers need
        self._logged_warnings: set[str] = set()
        self._logged_choices: set[tuple[str, str]] = set()  # types and their providers that the debug log names already
        self._evaluated = 0  # nodes so far, for evaltrace

    # --- Surroundings

    @property
    def noop(self) -> bool:
        return self.context.noop

    def find(self, ref: Ref) -> Type | None:
        return self.resources.find(ref)

    def managed(self, type_name: str) -> Sequence[Type]:
        return [resource for resource in self.resources.order if resource.ref.type == type_name]

    def same_provider_successors(self, resource: Type, fits: Callable[[Type], bool]) -> Sequence[Type]:
        return [successor for successor in self._successors(resource, fits, NEIGHBOURS) if not successor.simulated]

    def mark_applied_early(self, resources: Iterable[Type]) -> None:
        self._applied_early.update(resources)

    def path_of(self, resource: Type) -> str:
        return "/" + "/".join(self.resources.path_of(resource))

    def log(self, level: str, message: str, *, resource: Type, attribute: str = "") -> None:
        if level == "verbose" or self.log_sink.wants(level):
            source = self.path_of(resource) + (f"/{attribute}" if attribute else "")
            self.log_sink.log(level, message, source=source, tags=resource.origin.tags, where=resource.origin.where)

    def adopt(self, resource: Type) -> None:
        """Make a resource part of this transaction."""
        resource.surroundings = self
        self.log_sink.secrets.update(resource.redaction)

    def status_of(self, resource: Type) -> EvaluationStatus:
        status = self._statuses.get(resource)
        if status is None:
            status = EvaluationStatus(resource, self.resources.path_of(resource), self.context.now())
            self._statuses[resource] = status
        return status

    def statuses(self) -> dict[str, ResourceStatus]:
        """Return all statuses as the report has them, by reference."""
        return {str(resource.ref): status.to_report() for resource, status in self._statuses.items()}

    def _log_node(self, level: str, message: str, node: Node) -> None:
        if isinstance(node, Type):
            node.log(level, message)
        else:
            self.log_sink.log(level, message, source=str(node))

    def _simulated(self, node: Node) -> bool:
        return node.simulated if isinstance(node, Type) else self.noop

    # --- evaluation

    async def evaluate(self) -> None:
        """
        Evaluate all resources.

        Raises:
            ResourceError: nothing can be applied (a dependency cycle, a failed check).
        """
        for resource in list(self.resources.order):
            self.adopt(resource)
            self._schedule_of(resource)  # whose schedules are all there before anything is applied
        # Before the first change, so that a misspelt provider is reported even if the run stops early.
        self.context.providers.check_named(self.resources.order)
        for resource in list(self.resources.order):
            self._choose_provider(resource)
            await self.generator.generate_before_run(resource)
        self._check_before_run()
        if self.context.store:
            await self.context.store.load(self.log_sink)
        if self.resources.version is not None:
            self.log_sink.info(f"Applying configuration version '{self.resources.version}'")
        self.graph = relationships(self.resources, lambda resource, message: resource.log("debug", message))
        await self._draw("resources", lambda: dot.containment(self.resources))
        await self._draw("relationships", lambda: dot.ordering(self.graph, "Relationships"))
        # After the drawing of the plain relationships, which people want to see without anchors.
        expand(self.graph, self.resources)
        await self._draw("expanded_relationships", lambda: dot.ordering(self.graph, "Expanded_relationships"))
        await self._refuse_cycles()
        self._walk = Walk(self.graph)
        try:
            await self._evaluate_all(self._walk)
        finally:
            await self._tear_down()

    def _check_before_run(self) -> None:
        failed = False
        for resource in self.resources.order:
            try:
                with resource.own_errors():
                    resource.pre_run_check()
            except ResourceError as err:
                resource.log("err", failure_reason_of(resource, err))
                failed = True
        # All checks run before the first failure ends the run, so that one run names all faults.
        if failed:
            raise ResourceError("Some pre-run checks failed")

    async def _draw(self, name: str, text: Callable[[], str]) -> str:
        """Write one graph if graphs are enabled; return its path or ''."""
        if self.context.graphs is None:
            return ""
        path = self.context.graphs / f"{name}.dot"
        try:
            await asyncio.to_thread(write_atomic, path, text().encode())
        except OSError as err:
            self.log_sink.err(f"Could not write {path}: {err.strerror}")
            return ""
        return str(path)

    async def _refuse_cycles(self) -> None:
        cycles = self.graph.cycles()
        if not cycles:
            return
        file = await self._draw("cycles", lambda: dot.cycles(self.graph, cycles))
        self.log_sink.err(describe_cycles(self.graph, cycles, file))
        for cycle in cycles:
            for node in cycle:
                if isinstance(node, Type):
                    self.status_of(node).fail("resource is part of a dependency cycle", self.context.now())
        raise ResourceError("One or more resource dependency cycles detected in graph")

    async def _evaluate_all(self, walk: Walk) -> None:
        postponed: list[Type] = []
        progress = False
        # Resources that were changed already are still evaluated after a stop, otherwise the report would lack their changes.
        while self._applied_early or not self.context.stop():
            node = walk.next()
            if node is None:
                if not postponed:
                    break
                # A provider may have become suitable by resources that were applied in between.
                for resource in postponed:
                    if progress:
                        walk.queue(resource)
                    else:
                        self._give_up(resource)
                        walk.finish(resource)
                # A round without progress gives the rest up; so the loop ends.
                postponed, progress = [], False
                continue
            if isinstance(node, Type) and not self._choose_provider(node):
                postponed.append(node)
                continue
            progress = True
            if isinstance(node, Type):
                await self._prefetch(node)
                # Children are generated late, because earlier resources may create the directory that is read.
                if await self.generator.generate_children(self.graph, node):
                    walk.recount()
            await self._evaluate_node(node)
            walk.finish(node)
        else:
            for resource in postponed:
                walk.queue(resource)
            self._cancel(walk)

    def _cancel(self, walk: Walk) -> None:
        while (node := walk.next()) is not None:
            if isinstance(node, Type):
                self.status_of(node).skipped = True
                node.log("debug", "Transaction canceled, skipping")
            walk.finish(node)

    async def _tear_down(self) -> None:
        for type_name, hint in self._without_provider.items():
            self.log_sink.err(f"Could not find a suitable provider for {type_name}")
            if hint:
                self.log_sink.err(hint)
        used = dict.fromkeys(r.handler for r in self.resources.order if r.handler is not None)
        for provider in used:
            try:
                await provider.finish()
            except Exception as err:  # noqa: BLE001  # the run is over; what it did is still reported
                self.log_sink.err(f"post_resource_eval failed for provider {provider.name}: {failure_reason(err)}")
        if self.context.store:
            await self.context.store.store(self.log_sink)

    # --- providers

    def _choose_provider(self, resource: Type) -> bool:
        """Give a resource its provider; return whether the resource can be evaluated now."""
        if resource.handler is not None or resource.fault is not None or isinstance(resource, Component):
            return True
        providers = self.context.providers
        type_name = resource.declaration.name
        if not providers.of(type_name) and not any(True for _ in resource.declaration.properties):
            return True  # it has nothing to read or change
        try:
            resource.handler = providers.for_resource(resource)
        except ResourceError:
            return False
        self._log_provider_choice(resource, resource.handler)
        drop_unsupported(resource, resource.handler)
        warning = "" if resource.provider else providers.default(type_name)[1]
        if warning and warning not in self._logged_warnings:
            self._logged_warnings.add(warning)
            self.log_sink.warning(warning)
        return True

    def _log_provider_choice(self, resource: Type, provider: Handler[Any]) -> None:
        """Log, once for a type and provider, the chosen provider, the reason, and the missing requirements of the others."""
        type_name = resource.declaration.name
        if not self.log_sink.wants("debug") or (type_name, provider.name) in self._logged_choices or not provider.name:
            return
        if not any(logged_type == type_name for logged_type, _ in self._logged_choices):
            for other in self.context.providers.of(type_name):
                if missing := self.context.providers.unmet(other):
                    self.log_sink.debug(f"Provider {other.name} of {type_name} is not suitable: it needs {', '.join(missing)}")
        self._logged_choices.add((type_name, provider.name))
        why = f"{resource.ref} asks for it" if resource.provider else "the default on this host"
        self.log_sink.debug(f"Provider {provider.name} of {type_name} is used: {why}")

    def _give_up(self, resource: Type) -> None:
        """Mark a resource as failed for which no provider is suitable, now that nothing is left that could change that."""
        if self._is_deselected(resource):
            self.status_of(resource).skipped = True
            return
        try:
            self.context.providers.for_resource(resource)
        except ResourceError as err:
            if resource.provider:
                resource.strip_secrets(err)
                resource.log("err", f"{failure_reason(err)}\n{err.hint}" if err.hint else failure_reason(err))
            else:
                self._without_provider[resource.declaration.name] = err.hint
        self.status_of(resource).failed = True

    async def _prefetch(self, resource: Type) -> None:
        provider = resource.handler
        if provider is None or provider in self._prefetched or type(provider).prefetch is Handler.prefetch:
            return
        # Set first: a failing prefetch must not be tried again for each of its resources.
        self._prefetched[provider] = {}
        resources_by_key = {
            candidate.key: candidate
            for candidate in self.resources.order
            if candidate.ref.type == resource.ref.type and self._choose_provider(candidate) and candidate.handler is provider
        }
        self.log_sink.debug(f"Prefetching {provider.name} resources for {resource.declaration.name}")
        try:
            # A provider's debug output may quote any of the resources that it reads.
            with keep_secret([text for resource_to_read in resources_by_key.values() for text in resource_to_read.secrets()]):
                self._prefetched[provider] = dict(await provider.prefetch(resources_by_key))
        except Exception as err:  # noqa: BLE001  # it fails the provider's resources, not the run
            text = failure_reason(err)
            for waiting in resources_by_key.values():
                text = waiting.without_secrets(text)
            self.log_sink.err(f"Could not prefetch {resource.ref.type} provider '{provider.name}': {text}")
            self._prefetch_failed.add(provider)

    # --- one node

    async def _evaluate_node(self, node: Node) -> None:
        if not self.context.evaltrace:
            await self._evaluate_quietly(node)
            return
        self._evaluated += 1
        self._log_node("info", f"Starting to evaluate the resource ({self._evaluated} of {len(self.graph)})", node)
        began = time.perf_counter()
        await self._evaluate_quietly(node)
        self._log_node("info", f"Evaluated in {time.perf_counter() - began:.2f} seconds", node)

    async def _evaluate_quietly(self, node: Node) -> None:
        self._propagate_failure(node)
        if isinstance(node, ContainerAnchor):
            if self._should_skip(node):
                self.events.drop(node)
            else:
                await self.events.process(self.graph, node)
            return
        status = self.status_of(node)
        # Such a resource ignores tags, schedules and failures: it has been changed, and that must be in the report.
        if node in self._applied_early:
            self._applied_early.discard(node)
        elif self._should_skip(node):
            status.skipped = True
            node.log("debug", "Resource is being skipped, unscheduling all events")
            self.events.drop(node)
            if self.context.store:
                # Otherwise the next run would take the state of a skipped resource for new.
                self.context.store.carry_over(str(node.ref))
            return
        await self._ahead.read_before(node)
        await self._evaluate(node, status)
        await self.events.process(self.graph, node)
        self._ahead.note_result(node, status)

    def _successors(self, resource: Type, fits: Callable[[Type], bool], limit: int) -> list[Type]:
        """Return the resources that follow directly with the same provider, as long as they fit, without those that will be skipped."""

        def in_row(node: Node) -> bool:
            if not isinstance(node, Type) or node.pending or node.ref.type != resource.ref.type:
                return False
            self._choose_provider(node)  # a generated one has none yet
            return node.handler is resource.handler and fits(node)

        row = self._walk.successors(resource, in_row, limit=limit)
        return [successor for successor in row if isinstance(successor, Type) and self._will_be_evaluated(successor)]

    async def _evaluate(self, resource: Type, status: EvaluationStatus) -> None:
        if resource.handler is not None:
            status.provider_used = resource.handler.name or None
        status.time = self.context.now()
        prefetched = self._prefetched.get(resource.handler, {}) if resource.handler else {}
        await self.harness.evaluate(resource, status, prefetched)
        # A failed resource notifies nobody; its dependants are skipped.
        if not status.failed and not status.failed_to_restart:
            self.events.queue(self.graph, resource, status.events)

    def _propagate_failure(self, node: Node) -> None:
        if isinstance(node, Type) and node.handler in self._prefetch_failed:
            assert node.handler is not None
            self.status_of(node).fail(f"Prefetch failed for {node.ref.type} provider '{node.handler.name}'", self.context.now())
        self._failed.propagate_to(self.graph, node)

    # --- skipping

    def _is_deselected(self, node: Node) -> bool:
        tags = node.origin.tags if isinstance(node, Type) else node.tags
        return bool(self.skip_tags.intersection(tags) or (self.tags and not self.tags.intersection(tags)))

    def _should_skip(self, node: Node) -> bool:
        """Return whether a node is skipped; log the first reason that applies."""
        if self._is_deselected(node):
            self._log_node("debug", "Not selected by tags", node)
            return True
        if isinstance(node, Type) and not self._is_scheduled(node):
            node.log("debug", "Not scheduled")
            return True
        if node in self._failed:
            self._failed.log_skip(node)
            return True
        if isinstance(node, Type) and node.handler in self._prefetch_failed:
            node.log("warning", "Skipping because provider prefetch failed")
            return True
        if isinstance(node, Type) and node.declaration.apply_to == "device":
            node.log("debug", "Skipping device resources because running on a posix host")
            return True
        return False

    def _will_be_evaluated(self, resource: Type) -> bool:
        """Return whether a resource without pending dependencies will not be skipped; log nothing."""
        if self._is_deselected(resource) or self._failed.failures_before(self.graph, resource) or resource.handler in self._prefetch_failed:
            return False
        if resource.declaration.apply_to == "device":
            return False
        try:
            return self._is_scheduled(resource)
        except ResourceError:
            return False  # its evaluation will report the error

    def _is_scheduled(self, resource: Type) -> bool:
        if resource.fault is not None:
            return True  # its failure is reported at every run
        schedule = self._schedule_of(resource)
        return schedule is None or schedule.matches(self.context.state.last_checked(str(resource.ref)), self.context.now().astimezone())

    def _schedule_of(self, resource: Type) -> Schedule | None:
        """Return the schedule that counts for a resource; None: it may be applied at any time."""
        name = resource.schedule
        if self.context.ignore_schedules or not name:
            return None
        schedule = self.resources.find(Ref("schedule", name))
        if schedule is None:
            raise ResourceError(f"Could not find schedule {name}")
        from shared.types.schedule import Schedule

        if not isinstance(schedule, Schedule):
            raise ResourceError(f"The schedule {name} cannot be used")
        return schedule


async def apply_catalog(resources: RalCatalog, context: ApplyContext) -> ApplyResult:
    """
    Bring the system into the state that a catalog's resources describe; in noop, only report what would change.

    Faults of the catalog or the system are never raised: they are in the log and the statuses, and `error` is the one that stopped the
    run. State files are stored in every case.
    """
    applied = ApplyResult()
    transaction = Transaction(resources, context)
    started = time.perf_counter()
    await context.state.load(context.log)
    try:
        began = time.perf_counter()
        await transaction.evaluate()
        applied.times["transaction_evaluation"] = time.perf_counter() - began
        applied.completed = True
    except PuppetError as err:
        # This message goes into the report as a whole, past the masking of log lines.
        err.message = context.log.secrets.mask(err.message)
        applied.error = err
    finally:
        applied.statuses = transaction.statuses()
        applied.generation_failed = transaction.generator.failed
        # Also after a failure, so that the schedules count the resources that were checked.
        await context.state.store(context.log, context.now())
    if applied.error is not None:
        context.log.err(f"Failed to apply catalog: {text_with_hint(applied.error)}")
        return applied
    seconds = time.perf_counter() - started
    applied.times["catalog_application"] = seconds
    context.log.notice(f"Applied catalog in {seconds:.2f} seconds")
    return applied
