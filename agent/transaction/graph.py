"""
The order of a transaction: a graph of the dependencies between resources, with a pair of anchors for each container. Pure.

Source: resource layer reference 3.2.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from shared.ral import Ref, Type
from shared.ral.catalog import RalCatalog
from shared.ral.components import Component

NONE = "NONE"
ALL_EVENTS = "ALL_EVENTS"
REFRESH = "refresh"

Priority = tuple[int, ...]


@dataclass(eq=False, slots=True)
class ContainerAnchor:
    """The begin or the end of a container (Puppet's whit): nothing is done at it, but order and events pass through."""

    label: str  # its name in logs: `Class[Main]`
    completed: bool
    tags: tuple[str, ...] = ()

    @property
    def sort_key(self) -> str:
        return f"Whit[{'completed' if self.completed else 'admissible'}_{self.label}]"

    def __str__(self) -> str:
        return self.label


Node = Type | ContainerAnchor


@dataclass(frozen=True, slots=True)
class EdgeLabel:
    """The effect of an edge: the events of one name (or all, or none), and the method that they call at the target."""

    event: str = NONE
    callback: str = ""

    def carries(self, event: str) -> bool:
        return self.event == ALL_EVENTS or (self.event != NONE and self.event == event)


ORDER = EdgeLabel()
EVENTS = EdgeLabel(ALL_EVENTS, REFRESH)


@dataclass(slots=True)
class Graph:
    """Nodes with their priorities, and labelled edges; edges keep the order in which they were added."""

    priorities: dict[Node, Priority] = field(default_factory=dict)
    _out: dict[Node, dict[Node, list[EdgeLabel]]] = field(default_factory=dict)
    _in: dict[Node, dict[Node, None]] = field(default_factory=dict)
    _last_number: dict[Priority, int] = field(default_factory=dict)

    def __contains__(self, node: Node) -> bool:
        return node in self._out

    def __len__(self) -> int:
        return len(self._out)

    @property
    def nodes(self) -> list[Node]:
        return list(self._out)

    def add(self, node: Node, priority: Priority | None = None) -> None:
        """Add a node, behind all others unless a priority is given."""
        if node not in self._out:
            self._out[node] = {}
            self._in[node] = {}
            self.priorities[node] = priority or self._next_priority(())

    def priority_within(self, node: Node) -> Priority:
        """Return a new priority, directly behind `node` and all that was put behind it before."""
        return self._next_priority(self.priorities[node])

    def _next_priority(self, prefix: Priority) -> Priority:
        number = self._last_number.get(prefix, 0) + 1
        self._last_number[prefix] = number
        return (*prefix, number)

    def link(self, source: Node, target: Node, label: EdgeLabel = ORDER) -> None:
        """Add an edge: `target` waits for `source`."""
        # A list, because one edge can carry both an order and events.
        labels = self._out[source].setdefault(target, [])
        if label not in labels:
            labels.append(label)
        self._in[target][source] = None

    def unlink(self, source: Node, target: Node) -> list[EdgeLabel]:
        """Remove all edges from `source` to `target`; return their labels."""
        del self._in[target][source]
        return self._out[source].pop(target)

    def linked(self, source: Node, target: Node) -> bool:
        return target in self._out.get(source, ())

    def remove(self, node: Node) -> None:
        for target in list(self._out[node]):
            self.unlink(node, target)
        for source in list(self._in[node]):
            self.unlink(source, node)
        del self._out[node], self._in[node], self.priorities[node]

    def dependencies(self, node: Node) -> list[Node]:
        return list(self._in[node])

    def dependents(self, node: Node) -> list[Node]:
        return list(self._out[node])

    def edges_from(self, node: Node) -> Iterator[tuple[Node, EdgeLabel]]:
        for target, labels in list(self._out[node].items()):
            for label in labels:
                yield target, label

    # --- cycles

    def cycles(self) -> list[list[Node]]:
        """Return the sets of nodes that wait for each other, each sorted by reference; [] when the graph can be ordered."""
        # The usual case, in linear time and without recursion.
        if self._has_order():
            return []
        components = [c for c in self._components() if len(c) > 1 or self.linked(c[0], c[0])]
        ordered = [sorted(component, key=sort_key) for component in components]
        return sorted(ordered, key=lambda component: [sort_key(node) for node in component])

    def _has_order(self) -> bool:
        waiting = {node: len(sources) for node, sources in self._in.items()}
        free = [node for node, count in waiting.items() if not count]
        seen = 0
        while free:
            node = free.pop()
            seen += 1
            for target in self._out[node]:
                waiting[target] -= 1
                if not waiting[target]:
                    free.append(target)
        return seen == len(self._out)

    def _components(self) -> list[list[Node]]:
        """Return the strongly connected components, by Tarjan's algorithm without recursion."""
        index: dict[Node, int] = {}
        low: dict[Node, int] = {}
        stack: list[Node] = []
        on_stack: set[Node] = set()
        components: list[list[Node]] = []
        for root in self._out:
            if root in index:
                continue
            index[root] = low[root] = len(index)
            stack.append(root)
            on_stack.add(root)
            work = [(root, iter(self._out[root]))]
            # Tarjan's algorithm with a stack of its own: a chain of 10,000 resources would exceed Python's recursion limit.
            while work:
                node, targets = work[-1]
                for target in targets:
                    if target not in index:
                        index[target] = low[target] = len(index)
                        stack.append(target)
                        on_stack.add(target)
                        work.append((target, iter(self._out[target])))
                        break
                    if target in on_stack:
                        low[node] = min(low[node], index[target])
                else:
                    work.pop()
                    if work:
                        low[work[-1][0]] = min(low[work[-1][0]], low[node])
                    if low[node] == index[node]:
                        component: list[Node] = []
                        while not component or component[-1] is not node:
                            component.append(stack.pop())
                            on_stack.discard(component[-1])
                        components.append(component)
        return components

    def path_in(self, cycle: Sequence[Node]) -> list[Node]:
        """Return one short path round a cycle, which ends with its first node again."""
        members = set(cycle)
        parents: dict[Node, Node | None] = {cycle[0]: None}
        queue = deque([cycle[0]])
        while queue:
            node = queue.popleft()
            for target in self._out[node]:
                if target in parents:
                    trail = _trail(parents, node)
                    if target in trail:
                        return [*trail, target]
                elif target in members:
                    parents[target] = node
                    queue.append(target)
        return list(cycle)


def _trail(parents: dict[Node, Node | None], node: Node) -> list[Node]:
    """Return the path from the root of a search to `node`."""
    trail = [node]
    while (parent := parents[trail[-1]]) is not None:
        trail.append(parent)
    return trail[::-1]


def sort_key(node: Node) -> str:
    """Return the sort key of a node in messages about cycles."""
    return node.sort_key if isinstance(node, ContainerAnchor) else str(node.ref)


def describe_cycles(graph: Graph, cycles: Sequence[Sequence[Node]], file: str = "") -> str:
    """Return the message about cycles as Puppet prints it, with a backslash and an n between its parts. `file` is the graph of them."""
    count = len(cycles)
    lines = "".join(f"({' => '.join(map(str, graph.path_in(cycle)))})\\n" for cycle in cycles)
    hint = "Try the '--graph' option and opening the resulting '.dot' file in OmniGraffle or GraphViz"
    if file:
        hint = f"Cycle graph written to {file}."
    return f"Found {count} dependency cycle{'s' if count > 1 else ''}:\n{lines}{hint}"


Note = Callable[[Type, str], None]


def relationships(resources: RalCatalog, note: Note) -> Graph:
    """Return the graph as manifests declare it, with containers as nodes."""
    graph = Graph()
    for resource in resources.order:
        graph.add(resource)
    for resource in resources.order:
        for source, target, label in explicit_edges(resources, resource):
            graph.link(source, target, label)
    for resource in resources.order:
        _link_automatic(graph, resources, resource, note)
    return graph


def explicit_edges(resources: RalCatalog, resource: Type) -> Iterator[tuple[Type, Type, EdgeLabel]]:
    """Yield (source, target, label) for the relationship metaparameters of one resource."""
    for refs, incoming, label in (
        (resource.require, True, ORDER),
        (resource.subscribe, True, EVENTS),
        (resource.before, False, ORDER),
        (resource.notify, False, EVENTS),
    ):
        for other in _resources_of(resources, refs):
            yield (other, resource, label) if incoming else (resource, other, label)


def _resources_of(resources: RalCatalog, refs: Iterable[Ref]) -> Iterator[Type]:
    for ref in refs:
        resource = resources.find(ref)
        if resource is not None:
            yield resource


def _link_automatic(graph: Graph, resources: RalCatalog, resource: Type, note: Note) -> None:
    for kind, refs, incoming, label in (
        ("require", resource.autorequire, True, ORDER),
        ("subscribe", resource.autosubscribe, True, EVENTS),
        ("before", resource.autobefore, False, ORDER),
        ("notify", resource.autonotify, False, EVENTS),
    ):
        with resource.own_errors():
            found = list(refs())
        for other in _resources_of(resources, found):
            source, target = (other, resource) if incoming else (resource, other)
            # What a name of a class or define would be is no type of the agent's, so that the reference knows nothing to relate to.
            if other is resource or isinstance(other, Component) or graph.linked(source, target):
                continue
            if graph.linked(target, source):
                note(resource, f"Skipping automatic relationship with {other}")
                continue
            note(resource, f"Adding auto{kind} relationship with {other}")
            graph.link(source, target, label)


def expand(graph: Graph, resources: RalCatalog) -> None:
    """Replace each class, define and stage by an admissible and a completed anchor."""
    containers = [r for r in resources.order if isinstance(r, Component) or r.declaration.name == "stage"]
    first: dict[Node, ContainerAnchor] = {}
    last: dict[Node, ContainerAnchor] = {}
    for container in containers:
        for anchors, completed in ((first, False), (last, True)):
            anchors[container] = ContainerAnchor(str(container.ref), completed, container.origin.tags)
            graph.add(anchors[container], graph.priorities[container])
    for container in containers:
        begin, end = first[container], last[container]
        children = resources.children(container)
        if not children:
            graph.link(begin, end)
        for child in children:
            graph.link(begin, first.get(child, child), EVENTS)
            graph.link(last.get(child, child), end, EVENTS)
        for source in graph.dependencies(container):
            for label in graph.unlink(source, container):
                graph.link(last.get(source, source), begin, label)
        for target in graph.dependents(container):
            for label in graph.unlink(container, target):
                graph.link(end, first.get(target, target), label)
    for container in containers:
        graph.remove(container)


class Walk:
    """An iteration over a graph's nodes in order, while the graph may still grow: the ready node of the smallest priority comes first."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._ready: list[tuple[Priority, int, Node]] = []
        self._queued = 0
        self._done: set[Node] = set()
        self._blockers = {node: len(graph.dependencies(node)) for node in graph.nodes}
        for node, count in self._blockers.items():
            if not count:
                self.queue(node)

    def queue(self, node: Node) -> None:
        self._queued += 1  # between two of the same priority, the first queued comes first
        heapq.heappush(self._ready, (self.graph.priorities[node], self._queued, node))

    def next(self) -> Node | None:
        """Return the next node; None when no node is ready."""
        return heapq.heappop(self._ready)[2] if self._ready else None

    def successors(self, node: Node, fits: Callable[[Node], bool], *, limit: int) -> list[Node]:
        """
        Return the nodes that follow `node`, which is not finished yet, in order and as long as they fit; `limit` at most.

        The list ends before a node that would be preceded by one that only becomes ready then. No node is taken or finished.
        """
        row: list[tuple[Priority, int, Node]] = []
        finished: dict[Node, int] = {}  # how many nodes of the row a node waits for
        soonest: Priority | None = None  # of the nodes that the row makes ready
        last = node
        while True:
            for target in self.graph.dependents(last):
                finished[target] = finished.get(target, 0) + 1
                blockers = self._blockers.get(target)
                if (self._waits_for(target) if blockers is None else blockers) <= finished[target]:
                    priority = self.graph.priorities[target]
                    soonest = priority if soonest is None else min(soonest, priority)
            if (
                len(row) == limit
                or not self._ready
                or (soonest is not None and soonest <= self._ready[0][0])
                or not fits(self._ready[0][2])
            ):
                break
            row.append(heapq.heappop(self._ready))
            last = row[-1][2]
        for entry in row:
            heapq.heappush(self._ready, entry)
        return [entry[2] for entry in row]

    def recount(self) -> None:
        """Recount the dependencies after the graph has grown; nodes that were ready but now wait are taken back."""
        self._blockers.clear()
        still_ready = [entry for entry in self._ready if not self._waits_for(entry[2])]
        if len(still_ready) != len(self._ready):
            self._ready = still_ready
            heapq.heapify(self._ready)

    def _waits_for(self, node: Node) -> int:
        return sum(1 for dependency in self.graph.dependencies(node) if dependency not in self._done)

    def finish(self, node: Node) -> None:
        """Mark a node as done; nodes that waited only for it become ready."""
        self._done.add(node)
        for target in self.graph.dependents(node):
            blockers = self._blockers.get(target)
            blockers = self._waits_for(target) if blockers is None else blockers - 1
            self._blockers[target] = blockers
            if blockers <= 0:
                self.queue(target)
