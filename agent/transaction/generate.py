"""
Resources that come from resources: before the run (`generate`), and while one is evaluated (`eval_generate`).

Source: resource layer reference 3.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from shared.errors import ResourceError
from shared.ral import Ref, Type
from shared.ral.catalog import RalCatalog
from shared.ral.core import own_tags
from shared.ral.handling import Handler

from .graph import EVENTS, ORDER, ContainerAnchor, EdgeLabel, Graph, Node
from .harness import failure_reason_of


class Generator:
    """Adds generated resources to a transaction. A failure is logged and sets `failed`, and the transaction continues."""

    def __init__(self, resources: RalCatalog, adopt: Callable[[Type], None]) -> None:
        self.resources = resources
        self.adopt = adopt
        self.failed = False

    async def generate_before_run(self, resource: Type) -> None:
        """Add the resources that `generate` of a resource's provider returns, and those that they generate in turn."""
        if not _overrides(resource.handler, "generate"):
            return
        children = await self._generate(resource, "generate")
        deep = resource.declaration.depth_first
        for child in children if deep else reversed(children):
            self._add(resource, child, {"before": resource} if deep else {"after": resource})
            _order_before_run(resource, child)
            await self.generate_before_run(child)

    async def generate_children(self, graph: Graph, resource: Type) -> bool:
        """Add the resources that `eval_generate` of a resource's provider returns, contained in it; return whether the graph has grown."""
        if not _overrides(resource.handler, "eval_generate"):
            return False
        children = await self._generate(resource, "eval_generate")
        if not children:
            return False
        for child in children:
            if child not in graph:
                priority = graph.priority_within(resource)
                self._add(resource, child, {})
                graph.add(child, priority)
        by_key = {child.key: child for child in children}
        self._contain(graph, resource, by_key)
        for child in children:
            nearest = next((by_key[key] for key in child.ancestors() if key in by_key and by_key[key] is not child), resource)
            _link(graph, nearest, child, ORDER)
        return True

    async def _generate(self, resource: Type, method: str) -> Sequence[Type]:
        assert resource.handler is not None
        try:
            children = await getattr(resource.handler, method)(resource)
        except Exception as err:  # noqa: BLE001  # the other resources are still applied; the run counts as failed
            self.failed = True
            resource.log("err", f"Failed to generate additional resources using '{method}': {failure_reason_of(resource, err)}")
            return ()
        return [self.resources.find(child.ref) or child for child in children]

    def _add(self, parent: Type, child: Type, place: dict[str, Type]) -> None:
        if self.resources.find(child.ref) is not None:
            return
        tags = tuple(dict.fromkeys((*own_tags(child.ref.type, child.title), *child.origin.tags, *parent.origin.tags)))
        child.origin = replace(child.origin, tags=tags)
        try:
            self.resources.add(child, within=self.resources.container_of(parent), **place)
        except ResourceError as err:
            parent.log("err", failure_reason_of(child, err))
            self.failed = True
            return
        self.adopt(child)

    def _contain(self, graph: Graph, resource: Type, children_by_key: dict[str, Type]) -> None:
        """Let all that waits for the resource wait for its children too: an anchor behind them takes over its edges."""
        end = ContainerAnchor(resource.title, True, resource.origin.tags)
        graph.add(end, graph.priority_within(resource))
        children = set(children_by_key.values())
        for target in graph.dependents(resource):
            if target in children:
                continue
            for label in graph.unlink(resource, target):
                graph.link(end, target, label)
        for child in children_by_key.values():
            _link(graph, child, end, EVENTS)
        _link(graph, resource, end, EVENTS)


def _link(graph: Graph, source: Node, target: Node, label: EdgeLabel) -> None:
    if not graph.linked(target, source):
        graph.link(source, target, label)


def _overrides(provider: Handler[Type] | None, method: str) -> bool:
    return provider is not None and getattr(type(provider), method) is not getattr(Handler, method)


def _order_before_run(parent: Type, child: Type) -> None:
    """Add an edge between a resource and one that it generated, unless the manifest already orders the two."""
    first, second = (child, parent) if parent.declaration.depth_first else (parent, child)
    refs: set[Ref] = {ref for name in ("require", "subscribe", "before", "notify") for ref in parent.value_of(name)}
    back: set[Ref] = {ref for name in ("require", "subscribe", "before", "notify") for ref in child.value_of(name)}
    if child.ref not in refs and parent.ref not in back:
        first.assign("before", [*first.before, second.ref])
